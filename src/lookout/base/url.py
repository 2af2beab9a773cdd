"""Addresses that are asked over HTTP. What is said or kept of one holds no part of it: it may have a key in it."""

import re
from hashlib import blake2b
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from yarl import URL

_SCHEME: Final = re.compile(r"\s*([a-z]+)://", re.IGNORECASE)
_PORT: Final = re.compile("0{0,9}[0-9]{1,5}")
_ASKED: Final = ("http", "https")
_WEB_SOCKETS: Final = {"ws": "http", "wss": "https"}
_ESCAPES: Final = {"#": "%23", "/": "%2F", "?": "%3F"}


def fingerprint_url(url: str) -> str:
    """Tells two addresses apart. It is too short to guess a key from; user and password are no part of it."""
    parts = urlsplit(url)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2].lower())
    return blake2b(address.geturl().encode(), digest_size=4).hexdigest()


def find_url_mistake(url: str) -> str | None:
    """What keeps this from being an address of http:// or https://, if anything does."""
    begin = _SCHEME.match(url)
    scheme = begin[1].lower() if begin else ""
    if scheme in _WEB_SOCKETS:
        other = f"most nodes answer at the same address with {_WEB_SOCKETS[scheme]}:// too"
        return f"begins with {scheme}://, and only http:// and https:// are asked; {other}"
    if begin is None or scheme not in _ASKED:
        return "has to begin with http:// or https://"
    if re.search(r"\s", url):
        return f"has a space, a tab or a line break {'in it' if url.strip() == url else 'at its beginning or end'}"
    authority = re.split("[/?#]", url[begin.end() :], maxsplit=1)[0]
    return _find_authority_mistake(url, authority, url[begin.end() + len(authority) :])


def find_proxy_mistake(url: str) -> str | None:
    """What keeps this from being the address of a proxy, if anything does."""
    begin = _SCHEME.match(url)
    if begin is None or begin[1].lower() != "http":
        return "has to begin with http://: no other kind of proxy is asked"
    mistake = find_url_mistake(url)
    if mistake is None and re.search("/.|[?#]", url[begin.end() :]):
        return "has to end after its host and port: a proxy has no path"
    return mistake


def _find_authority_mistake(url: str, authority: str, rest: str) -> str | None:
    """``authority`` is user, password, host and port, and ``rest`` what comes after them."""
    host = authority.rpartition("@")[2]
    if rest.startswith("#") and "@" in rest:
        return _explain_escape("#")
    if _is_ipv6(host) or _is_ipv6(host.rpartition(":")[0]):
        return "has an IPv6 address without brackets; write it as in http://[::1]:8545"
    if host.startswith("[") and not _has_ipv6_in_brackets(host):
        return "has something else than an IPv6 address in brackets"
    if not _has_good_port(host) or (host.endswith(":") and "@" in rest):  # the user may be before the colon
        return _explain_escape(rest[0]) if "@" in rest else "has a port that is not a number from 1 to 65535"
    if host.partition(":")[0] == "":
        return "names no host"
    return None if _can_be_sent(url) else "names a host that cannot be one"


def _explain_escape(character: str) -> str:
    return f"has a {character} in its user or password, which ends them; write {_ESCAPES[character]} instead"


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _has_ipv6_in_brackets(host: str) -> bool:
    bracketed = re.match(r"\[([^]]*)\](?=:|$)", host)
    return bracketed is not None and _is_ipv6(bracketed[1])


def _has_good_port(host: str) -> bool:
    port = host.rpartition("]")[2].partition(":")[2]
    return port == "" or (_PORT.fullmatch(port) is not None and 1 <= int(port) <= 65_535)


def _can_be_sent(url: str) -> bool:
    try:
        urlsplit(url)
        URL(url)
    except ValueError:
        return False
    return True
