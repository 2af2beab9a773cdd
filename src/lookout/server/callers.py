"""Whom a request counts for: an address, or a network where one caller has many addresses."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

CallerAddress = IPv4Address | IPv6Address

UNREADABLE: Final = "\ufffd"  # in the place of a header that is there, but whose bytes a server does not pass on
_UNKNOWN: Final = b"?"  # one caller, for peers without an address
_PREFIX_V6: Final = 64
_LONGEST_ADDRESS: Final = 100  # with brackets, zone and port
_MOST_PROXIES: Final = 32


class _Known(NamedTuple):
    network: bytes
    is_trusted: bool


class Callers:
    """Distinguishes callers. Forwarding headers are believed from trusted proxies alone (E6)."""

    def __init__(self, trusted_proxies: Sequence[str]) -> None:
        self._trusted = tuple(ip_network(proxy, strict=False) for proxy in trusted_proxies)
        self.trusts_some = bool(self._trusted)
        # Callers come again; the cache is bounded, however many there are and whatever they send.
        self._known = lru_cache(4096)(self._look_up)

    def identify(self, peer: str, forwarded: str | None) -> bytes | None:
        """The caller's network, as bytes. ``peer`` is the connection's other end, with or without its port, and
        ``forwarded`` what X-Forwarded-For says, if it is there. None if a trusted proxy said who it is and that cannot
        be read: to count such a request for the proxy would be a way out of a ban."""
        known = self._known(peer)
        if known is None:
            return _UNKNOWN
        if forwarded is None or not known.is_trusted:
            return known.network
        if forwarded == UNREADABLE:
            return None
        # Each proxy appends whom it heard, so the list is believed from its end, as far as trusted proxies wrote it.
        entries = forwarded.rsplit(",", _MOST_PROXIES)
        while entries and known.is_trusted:
            entry = entries.pop().strip(" \t")
            if not entry:
                continue
            before = self._known(entry) if len(entry) <= _LONGEST_ADDRESS else None
            if before is None:
                break
            known = before
        return known.network

    def find_network(self, peer: str) -> bytes | None:
        """The network of a connection's other end, as bytes; None for a trusted proxy, which has the connections of
        many."""
        known = self._known(peer)
        if known is None:
            return _UNKNOWN
        return None if known.is_trusted else known.network

    def _look_up(self, text: str) -> _Known | None:
        address = _parse_address(text)
        if address is None:
            return None
        is_trusted = any(address in network for network in self._trusted)
        if isinstance(address, IPv6Address):
            return _Known(IPv6Network((address, _PREFIX_V6), strict=False).network_address.packed, is_trusted)
        return _Known(address.packed, is_trusted)


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
