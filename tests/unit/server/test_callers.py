"""Whom a request counts for."""

import tracemalloc
from ipaddress import ip_address
from typing import Final

import pytest

from lookout.server.request import Callers
from tests.cases import cases

PROXIES: Final = ("10.0.0.0/8", "192.0.2.7", "fd00::/8")


def packed(address: str) -> bytes:
    return ip_address(address).packed


def identify(callers: Callers, peer: str, forwarded: str | None = None) -> bytes:
    caller = callers.look_up(peer)
    return (caller if forwarded is None else callers.follow(caller, forwarded)).network


@pytest.mark.clause("E2")
@pytest.mark.parametrize(("peer", "network"), cases("callers", "a peer is counted by its network"))
def test_a_peer_is_counted_by_its_network(peer: str, network: str) -> None:
    assert identify(Callers(()), peer) == packed(network)


@pytest.mark.parametrize("peer", ["", "unix:", "localhost", "1.2.3", "1.2.3.4.5", "[", "[]:80", "::g", "?", "\0"])
def test_peers_without_an_address_are_one_caller_whatever_they_forward(peer: str) -> None:
    callers = Callers(PROXIES)
    assert identify(callers, peer, None) == identify(callers, peer, "203.0.113.9") == b"?"


@pytest.mark.clause("E6")
@pytest.mark.parametrize(
    ("peer", "forwarded", "counted"),
    [
        pytest.param("203.0.113.9:80", "198.51.100.1", "203.0.113.9", id="nobody believes a stranger"),
        pytest.param("192.0.2.8", "198.51.100.1", "192.0.2.8", id="nor a neighbour of a proxy"),
        pytest.param("10.1.2.3:80", "198.51.100.1", "198.51.100.1", id="a trusted proxy is believed"),
        pytest.param("[fd00::1]:80", "198.51.100.1", "198.51.100.1", id="also over IPv6"),
        pytest.param("::ffff:10.1.2.3", "198.51.100.1", "198.51.100.1", id="also IPv4 mapped into IPv6"),
        pytest.param("10.1.2.3", None, "10.1.2.3", id="a proxy that says nothing counts itself"),
        pytest.param("10.1.2.3", "", "10.1.2.3", id="as does one that says nothing at length"),
        pytest.param("10.1.2.3", "6.6.6.6, 198.51.100.1", "198.51.100.1", id="what a caller claims is not believed"),
        pytest.param("10.1.2.3", "6.6.6.6,198.51.100.1,192.0.2.7", "198.51.100.1", id="proxies behind proxies"),
        pytest.param("10.1.2.3", "10.9.9.9, 192.0.2.7", "10.9.9.9", id="proxies all the way: the first of them"),
        pytest.param("10.1.2.3", "6.6.6.6, unknown, 10.9.9.9", "10.9.9.9", id="garbage ends what is believed"),
        pytest.param("10.1.2.3", "nonsense", "10.1.2.3", id="garbage alone counts for the proxy"),
        pytest.param("10.1.2.3", "198.51.100.1:4711", "198.51.100.1", id="an entry with a port"),
        pytest.param("10.1.2.3", "[2001:db8:1:2::9]:80", "2001:db8:1:2::", id="an entry of IPv6 with brackets"),
        pytest.param("10.1.2.3", "2001:db8:1:2::9", "2001:db8:1:2::", id="an entry of IPv6 without"),
        pytest.param("10.1.2.3", " \t198.51.100.1 \t", "198.51.100.1", id="blanks around an entry"),
        pytest.param("10.1.2.3", "198.51.100.1, , ,", "198.51.100.1", id="empty entries are none"),
        pytest.param("10.1.2.3", "1.1.1.1" + ", 10.0.0.1" * 33, "10.0.0.1", id="nobody has so many proxies"),
        pytest.param("10.1.2.3", "1.1.1.1" + ", 10.0.0.1" * 32, "1.1.1.1", id="but a caller may have a few"),
        pytest.param("10.1.2.3", "9" * 10_000, "10.1.2.3", id="an entry that is too long"),
    ],
)
def test_forwarding_headers_are_believed_as_far_as_trusted_proxies_wrote_them(
    peer: str, forwarded: str | None, counted: str
) -> None:
    assert identify(Callers(PROXIES), peer, forwarded) == packed(counted)


@pytest.mark.clause("A16")
def test_only_a_trusted_proxys_connections_are_not_counted() -> None:
    trusted = {peer: Callers(PROXIES).look_up(peer).is_trusted for peer in ("203.0.113.9", "", "10.1.2.3", "fd00::1")}
    assert trusted == {"203.0.113.9": False, "": False, "10.1.2.3": True, "fd00::1": True}


@pytest.mark.parametrize("peer", ["203.0.113.9:80", "10.1.2.3:80"], ids=["a stranger", "a proxy"])
def test_long_headers_leave_nothing_behind_in_memory(peer: str) -> None:
    callers = Callers(PROXIES)
    identify(callers, peer, "1.1.1.1")
    tracemalloc.start()
    try:
        for number in range(200):
            identify(callers, peer, f"{number}," * 10_000 + f"{number}x" * 5_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
