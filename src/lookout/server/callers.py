"""Whom a request counts for: an address, or a network where one caller has many addresses."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

from lookout.server.shared import CallerOnPath

CallerAddress = IPv4Address | IPv6Address

_PREFIX_V6: Final = 64
_LONGEST_ADDRESS: Final = 100  # with brackets, zone and port
_MOST_PROXIES: Final = 32


class Caller(NamedTuple):
    """A network, as bytes; a trusted proxy speaks for others."""

    network: bytes
    is_trusted: bool


class Peer:
    """The other end of a connection, and where the limiter counts its requests, by what they are for."""

    __slots__ = ("caller", "located")

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.located: dict[str, CallerOnPath] = {}


_UNKNOWN: Final = Caller(b"?", is_trusted=False)  # one caller, for peers without an address


class Callers:
    """Distinguishes callers. Forwarding headers are believed from trusted proxies alone (E6)."""

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._trusted = tuple(ip_network(proxy, strict=False) for proxy in trusted_proxies)

    def look_up(self, peer: str) -> Caller:
        """Who is at a connection's other end."""
        return self._find(peer) or _UNKNOWN

    def follow(self, peer: Caller, forwarded: str) -> Caller:
        """For whom somebody asks who sends this X-Forwarded-For. Each proxy appends whom it heard, so the list
        is believed from its end, as far as trusted proxies wrote it."""
        caller = peer
        entries = forwarded.rsplit(",", _MOST_PROXIES)
        while entries and caller.is_trusted:
            entry = entries.pop().strip(" \t")
            if not entry:
                continue
            before = self._find(entry) if len(entry) <= _LONGEST_ADDRESS else None
            if before is None:
                break
            caller = before
        return caller

    def _find(self, text: str) -> Caller | None:
        address = _parse_address(text)
        if address is None:
            return None
        is_trusted = any(address in network for network in self._trusted)
        if isinstance(address, IPv6Address):
            return Caller(IPv6Network((address, _PREFIX_V6), strict=False).network_address.packed, is_trusted)
        return Caller(address.packed, is_trusted)


def _parse_address(text: str) -> CallerAddress | None:
    """An address with or without a port, brackets or a zone."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
