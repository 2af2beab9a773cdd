"""Addresses to listen on."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lookout.base.host_port import host_and_port


class ListenError(Exception):
    """The address cannot be listened on; the text says which and why."""


@contextmanager
def listening(address: str) -> Iterator[tuple[str, int]]:
    """Listen on it meanwhile, and answer nobody. Gives the numeric address and the port; port 0 is one that is free."""
    host, port = host_and_port(address)
    try:
        family, _, _, _, numeric = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (socket.gaierror, UnicodeError):
        raise ListenError(f"{address}: there is no such host") from None
    try:
        # An IPv6 address without a network listens for IPv4 too, as it will for the server.
        dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server(numeric[:2], family=family, dualstack_ipv6=dual)
    except OSError as error:
        # The system's words alone: the library adds the address to them.
        why = os.strerror(error.errno) if error.errno is not None else str(error)
        raise ListenError(f"{address}: {why}") from None
    with listener:
        bound_host, bound_port, *_ = listener.getsockname()
        yield bound_host, bound_port


def bind_briefly(address: str) -> tuple[str, int]:
    """The numeric address and the port, after a look that nobody listens there: workers share their port, and would
    share it with another server's workers as well."""
    with listening(address) as bound:
        return bound


def is_conflict(one: str, other: str) -> bool:
    """Whether it is we who could not listen on both, however they are written. Of an address that somebody else has
    nothing can be said."""
    try:
        bind_briefly(other)
        with listening(one):
            return not _is_free(other)
    except ListenError:
        return False


def _is_free(address: str) -> bool:
    try:
        bind_briefly(address)
    except ListenError:
        return False
    return True


def check_free(key: str, address: str) -> tuple[str, int]:
    """The same for the address of a key, which the error names."""
    try:
        return bind_briefly(address)
    except ListenError as error:
        raise ListenError(f"{key}: {error}") from None


def a_free_port() -> int:
    """Below those that the system gives to outgoing connections: one of them could take it before its server does. And
    above the last that browsers refuse to ask, which is 10080."""
    while True:
        port = secrets.choice(range(10_081, 32_000))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
