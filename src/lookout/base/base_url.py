"""The base address of a deployment, as commands are given it."""

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

_PORTS: Final = {"http": 80, "https": 443}


class BaseUrlError(ValueError):
    """The address cannot be used; the text says why."""


class BaseUrl(NamedTuple):
    """Where a deployment is. ``prefix`` is a path before all others, mostly empty."""

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
    """``http://host:port`` or ``https://host``; BaseUrlError says what else it is."""
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
