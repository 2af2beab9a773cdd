"""Addresses: upstreams' over HTTP, the base address of a deployment, and ``HOST:PORT``.

Messages and stored data hold no part of an upstream's address, which may contain a key.
"""

import re
from hashlib import blake2b
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from yarl import URL

_SCHEME: Final = re.compile(r"\s*([a-z]+)://", re.IGNORECASE)
_WEB_SOCKETS: Final = {"ws": "http", "wss": "https"}
_LAST_PORT: Final = 65_535
_PORTS: Final = {"http": 80, "https": 443}
_HOST_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w-]+(?:\.[\w-]+)*\.?):([0-9]{1,5})", re.ASCII)


def fingerprint_url(url: str) -> str:
    """Distinguishes addresses. It is too short to guess a key from, and excludes user and password."""
    parts = urlsplit(url)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2].lower())
    return blake2b(address.geturl().encode(), digest_size=4).hexdigest()


def find_url_mistake(url: str) -> str | None:
    begin = _SCHEME.match(url)
    scheme = begin[1].lower() if begin else ""
    if scheme in _WEB_SOCKETS:
        other = f"most nodes answer at the same address with {_WEB_SOCKETS[scheme]}:// too"
        return f"begins with {scheme}://, and only http:// and https:// are asked; {other}"
    if scheme not in _PORTS:
        return "has to begin with http:// or https://"
    if re.search(r"\s", url):
        return f"has a space, a tab or a line break {'in it' if url.strip() == url else 'at its beginning or end'}"
    if _has_host(url):
        return None
    if "@" in re.split("[/?#]", url.partition("://")[2], maxsplit=1)[-1]:
        return "has a #, / or ? in its user or password, which ends them; write %23, %2F or %3F instead"
    return "has no host, or a host or a port that cannot be one; write it as in http://host:8545 or http://[::1]:8545"


def find_proxy_mistake(url: str) -> str | None:
    begin = _SCHEME.match(url)
    if begin is None or begin[1].lower() != "http":
        return "has to begin with http://: no other kind of proxy is asked"
    mistake = find_url_mistake(url)
    if mistake is None and re.search("/.|[?#]", url[begin.end() :]):
        return "has to end after its host and port: a proxy has no path"
    return mistake


def _has_host(url: str) -> bool:
    try:
        address = URL(url)
    except ValueError:
        return False
    is_cut = address.raw_path == "/" and "@" in address.raw_fragment  # by a # in the user or the password
    return bool(address.raw_host) and address.port != 0 and not is_cut


class BaseUrlError(ValueError):
    """The address cannot be used; the text says why."""


class BaseUrl(NamedTuple):
    """A deployment's base address. ``prefix`` comes before all paths, and is mostly empty."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.prefix}"


def parse_base_url(url: str) -> BaseUrl:
    """``http://host:port`` or ``https://host``; BaseUrlError for other texts."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BaseUrlError(f"{url!a} is not an address: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BaseUrlError(f"{url!a} is not an address like http://host:port")
    if parts.username is not None or parts.query or parts.fragment or not re.fullmatch(r"[!-~]*", url):
        raise BaseUrlError(f"{url!a}: only a scheme, a host, a port and a path can be given")
    if port == 0:
        raise BaseUrlError(f"{url!a}: there is no port 0")
    return BaseUrl(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"))


def is_host_port(address: str) -> bool:
    """Whether it is ``HOST:PORT``, with an IPv6 host in brackets."""
    match = _HOST_PORT.fullmatch(address)
    return match is not None and int(match[2]) <= _LAST_PORT


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def format_host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
