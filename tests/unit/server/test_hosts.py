"""Host: which lines of a request name one host."""

from typing import Final

import pytest

from lookout.server.hosts import is_one_host

GOOD: Final = [
    pytest.param("liveness.example", id="a name"),
    pytest.param("localhost:8080", id="with a port"),
    pytest.param("liveness.example:", id="with the port left empty, as the standard allows"),
    pytest.param("192.0.2.1:80", id="an address"),
    pytest.param("[2001:db8::1]", id="an address of IPv6"),
    pytest.param("[::ffff:192.0.2.1]:443", id="one that ends like IPv4, with a port"),
    pytest.param("a_b.example", id="an underscore, which names of containers have"),
    pytest.param("xn--bcher-kva.example", id="a name of other letters, encoded"),
    pytest.param("a%2Cb", id="a character that is percent-encoded"),
    pytest.param("a" * 300, id="as long as a host may be"),
]
BAD: Final = [
    pytest.param([], id="none"),
    pytest.param([""], id="an empty one"),
    pytest.param(["a", "a"], id="the same twice"),
    pytest.param(["a", "b"], id="two"),
    pytest.param(["a", ""], id="one and an empty one"),
    pytest.param(["a b"], id="a blank inside"),
    pytest.param(["a, b"], id="a list"),
    pytest.param(["http://a"], id="a URL"),
    pytest.param(["a/b"], id="a path"),
    pytest.param(["user@a"], id="somebody at a host"),
    pytest.param(["a?b"], id="a query"),
    pytest.param(["a:b"], id="a port that is no number"),
    pytest.param(["a:1:2"], id="two ports"),
    pytest.param(["::1"], id="IPv6 without its brackets"),
    pytest.param(["[::1"], id="a bracket that is not closed"),
    pytest.param(["[:::]"], id="brackets around no address"),
    pytest.param(["[::1]a"], id="something after the brackets"),
    pytest.param(["a%zz"], id="what is percent-encoded is no byte"),
    pytest.param([":80"], id="a port alone"),
    pytest.param(["\u00e9"], id="letters beyond ASCII"),
    pytest.param(["a\n"], id="a line break"),
    pytest.param(["a" * 301], id="longer than any host is"),
]


@pytest.mark.parametrize("text", GOOD)
def test_a_host_is_known_as_one(text: str) -> None:
    assert is_one_host([text])


@pytest.mark.parametrize("lines", BAD)
def test_anything_else_is_not(lines: list[str]) -> None:
    assert not is_one_host(lines)
