"""What is wrong with an address, in words that hold no part of it."""

from typing import Final

import pytest

from lookout.base.url import find_proxy_mistake, find_url_mistake

SCHEME: Final = "has to begin with http:// or https://"
SPACE: Final = "has a space, a tab or a line break in it"
AROUND: Final = "has a space, a tab or a line break at its beginning or end"
HOST: Final = (
    "has no host, or a host or a port that cannot be one; write it as in http://host:8545 or http://[::1]:8545"
)
USER: Final = "has a #, / or ? in its user or password, which ends them; write %23, %2F or %3F instead"


def web_socket(scheme: str, other: str) -> str:
    asked = "only http:// and https:// are asked"
    return f"begins with {scheme}://, and {asked}; most nodes answer at the same address with {other}:// too"


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "https://rpc.example/v2/key",
        "HTTPS://rpc.example:443/",
        "http://127.0.0.1:8545",
        "http://[::1]:8545/a",
        "http://[fe80::1%25eth0]:80",
        "http://user:pass%23word@h:1/",
        "http://user:p:w@h",
        "http://h/a@b#c@d",
        "http://h?a=b@c",
        "http://h#a",
        "http://h:/",
        "http://h./a",
        "http://bücher.example",
    ],
)
def test_nothing_is_wrong_with_an_address_that_can_be_asked(url: str) -> None:
    assert find_url_mistake(url) is None


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        pytest.param("https://h/a b", SPACE, id="a space"),
        pytest.param(" https://h", AROUND, id="a space before it"),
        pytest.param("https://h/key\n", AROUND, id="the line break of the file that a key came from"),
        pytest.param("https://h/\u00a0a", SPACE, id="a space that does not break, as web pages have them"),
        pytest.param("http://user:pa#ss@h/", USER, id="a # in a password"),
        pytest.param("http://us#er:pass@h/", USER, id="a # in a user is not taken for the end of the host"),
        pytest.param("http://user:12#34@h/", USER, id="a # in a password that looks like a port"),
        pytest.param("http://user:pa/ss@h/", USER, id="a / in a password"),
        pytest.param("http://user:pa?ss@h/", USER, id="a ? in a password"),
        pytest.param("wss://h/v2/key", web_socket("wss", "https"), id="wss"),
        pytest.param("127.0.0.1:8545", SCHEME, id="an address without a scheme"),
        pytest.param("rpc.example/?to=https://h", SCHEME, id="a scheme elsewhere"),
        pytest.param("http:/h", SCHEME, id="one slash"),
        pytest.param("https//h", SCHEME, id="no colon"),
        pytest.param("keyhttps://h", SCHEME, id="something before the scheme, which is not shown"),
        pytest.param("ftp://h", SCHEME, id="another scheme"),
        pytest.param("", SCHEME, id="nothing"),
        pytest.param("http://h:0", HOST, id="port 0"),
        pytest.param("http://h:65536/", HOST, id="a port beyond the last"),
        pytest.param("http://[::1]:99999", HOST, id="a bad port after brackets"),
        pytest.param("http://::1:8545", HOST, id="IPv6 and a port"),
        pytest.param("http://[::1", HOST, id="half of the brackets"),
        pytest.param("http:///health", HOST, id="no host"),
        pytest.param("http://a\u200bb", HOST, id="an invisible character"),
    ],
)
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
