"""Addresses to listen on: ``HOST:PORT``, and ``unix:PATH``, a socket that is a file for its owner alone."""

import errno
import os
import secrets
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from lookout.base.url import host_and_port

_UNIX: Final = "unix:"
_BACKLOG: Final = 4_096


class ListenError(Exception):
    """Listening on an address failed; the text says which and why."""


def is_unix(address: str) -> bool:
    return address.startswith(_UNIX)


def path_of(address: str) -> str:
    return address.removeprefix(_UNIX)


def resolve(address: str, folder: Path) -> str:
    """The address with an absolute path; unchanged unless it is ``unix:``."""
    return f"{_UNIX}{folder.absolute() / path_of(address)}" if is_unix(address) else address


def can_be_asked(address: str) -> bool:
    """Whether clients can use the address of an admin port: not if it is empty, or the system chooses the port."""
    return address != "" and (is_unix(address) or not address.endswith(":0"))


def open_listener(address: str) -> socket.socket:
    """A listening socket; port 0 stands for any free port."""
    try:
        if is_unix(address):
            return _listen_on_file(path_of(address))
        host, port = host_and_port(address)
        family, _, _, _, numeric = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # An IPv6 address without a network listens for IPv4 too.
        dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(numeric[:2], family=family, backlog=_BACKLOG, dualstack_ipv6=dual)
    except (socket.gaierror, UnicodeError):
        raise ListenError(f"{address}: there is no such host") from None
    except OSError as error:
        # The system's text alone: the library adds the address.
        why = error.strerror if is_unix(address) or error.errno is None else os.strerror(error.errno)
        raise ListenError(f"{address}: {why or error}") from None


def listen_for(key: str, address: str) -> socket.socket:
    """Like ``open_listener``, for the address of a key, which errors name."""
    try:
        return open_listener(address)
    except ListenError as error:
        raise ListenError(f"{key}: {error}") from None


def bind_briefly(address: str) -> tuple[str, int]:
    """The numeric address and the port; ListenError if they are taken."""
    with open_listener(address) as listener:
        host, port, *_ = listener.getsockname()
        return host, port


def a_free_port() -> int:
    """A port below the system's range for outgoing connections, which could take it first, and above 10080, the last
    port that browsers refuse."""
    while True:
        port = secrets.choice(range(10_081, 32_000))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def _listen_on_file(path: str) -> socket.socket:
    """Make the socket file, and replace one without a listener. OSError if another process listens on it, or if it is
    no socket."""
    if _is_left_over(path):
        Path(path).unlink()
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(path)
        Path(path).chmod(0o600)  # no client can connect before it listens
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _is_left_over(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "there is a file that is not a socket")
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(1)
        try:
            trial.connect(path)
        except ConnectionRefusedError:
            return True
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
