"""What is wrong with an address, in words that hold no part of it."""

from typing import Final

import pytest

from lookout.base.url import find_proxy_mistake, find_url_mistake
from tests.cases import cases

HOST: Final = (
    "has no host, or a host or a port that cannot be one; write it as in http://host:8545 or http://[::1]:8545"
)
USER: Final = "has a #, / or ? in its user or password, which ends them; write %23, %2F or %3F instead"


@pytest.mark.parametrize("url", cases("url", "nothing is wrong with an address that can be asked"))
def test_nothing_is_wrong_with_an_address_that_can_be_asked(url: str) -> None:
    assert find_url_mistake(url) is None


@pytest.mark.parametrize(("url", "mistake"), cases("url", "a mistake in an address is named"))
def test_a_mistake_in_an_address_is_named(url: str, mistake: str) -> None:
    assert find_url_mistake(url) == mistake


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        pytest.param("http://proxy.example:3128", None, id="a host and a port"),
        pytest.param("http://user:pass@proxy.example/", None, id="a slash at the end"),
        pytest.param("http://user:pa#ss@proxy.example", USER, id="a # in a password"),
        pytest.param("http://proxy.example:x", HOST, id="a bad port"),
        pytest.param("http://proxy.example/a", "has to end after its host and port: a proxy has no path", id="a path"),
        pytest.param("http://proxy.example?a", "has to end after its host and port: a proxy has no path", id="a query"),
        *(
            pytest.param(url, "has to begin with http://: no other kind of proxy is asked", id=url)
            for url in ("https://proxy.example", "socks5://proxy.example", "proxy.example:3128", "ws://proxy.example")
        ),
    ],
)
def test_a_proxy_is_http_and_has_no_path(url: str, mistake: str | None) -> None:
    assert find_proxy_mistake(url) == mistake
