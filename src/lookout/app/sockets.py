"""Addresses to listen on."""

import os
import secrets
import socket
from contextlib import suppress
from typing import Final

from lookout.base.unix_socket import bind, is_unix, path_of
from lookout.base.url import host_and_port

_BACKLOG: Final = 4_096


class ListenError(Exception):
    """The address cannot be listened on; the text says which and why."""


def open_listener(address: str) -> socket.socket:
    """A socket that listens on ``HOST:PORT``, where port 0 is one that is free, or on ``unix:PATH``."""
    try:
        if is_unix(address):
            listener = socket.socket(socket.AF_UNIX)
            try:
                bind(listener, path_of(address))
                listener.listen(_BACKLOG)
            except OSError:
                listener.close()
                raise
            return listener
        host, port = host_and_port(address)
        family, _, _, _, numeric = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # An IPv6 address without a network listens for IPv4 too.
        dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(numeric[:2], family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    except (socket.gaierror, UnicodeError):
        raise ListenError(f"{address}: there is no such host") from None
    except OSError as error:
        # The system's words alone: the library adds the address to them.
        why = error.strerror if is_unix(address) or error.errno is None else os.strerror(error.errno)
        raise ListenError(f"{address}: {why or error}") from None


def listen_for(key: str, address: str) -> socket.socket:
    """The same for the address of a key, which the error names."""
    try:
        return open_listener(address)
    except ListenError as error:
        raise ListenError(f"{key}: {error}") from None


def bind_briefly(address: str) -> tuple[str, int]:
    """The numeric address and the port, after a look that nobody listens there."""
    with open_listener(address) as listener:
        host, port, *_ = listener.getsockname()
        return host, port


def is_conflict(one: str, other: str) -> bool:
    """Whether it is we who could not listen on both, however they are written. Of an address that somebody else has
    nothing can be said."""
    if not is_free(other):
        return False
    try:
        with open_listener(one):
            return not is_free(other)
    except ListenError:
        return False


def is_free(address: str) -> bool:
    """Whether nobody listens there."""
    try:
        bind_briefly(address)
    except ListenError:
        return False
    return True


def a_free_port() -> int:
    """Below those that the system gives to outgoing connections: one of them could take it before its server does. And
    above the last that browsers refuse to ask, which is 10080."""
    while True:
        port = secrets.choice(range(10_081, 32_000))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
