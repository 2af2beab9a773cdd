"""The connections that this process has accepted, as the system knows them: their server shows them to nobody."""

import os
import socket
from struct import Struct
from typing import Final, NamedTuple

_FILES: Final = "/proc/self/fd"
# What is needed of struct tcp_info (linux/tcp.h), which only ever grows at its end: the state, unacked, bytes_acked,
# bytes_received and notsent_bytes.
_INFO: Final = Struct("=B23xI92xQQ8xI")
_LISTENS: Final = 10
_SO_COOKIE: Final = 57  # a number that no other socket of this machine ever has
_COOKIE_BYTES: Final = 8
_RESET: Final = Struct("=ii").pack(1, 0)


class ConnectionProgress(NamedTuple):
    """How far a connection got, in bytes."""

    taken: int  # by the reader, of our answers
    received: int
    has_unread: bool  # there is more of our answers, which the reader has not taken yet

    def is_ahead_of(self, earlier: "ConnectionProgress") -> bool:
        """Whether it went on since then. With answers left to read, asking for more of them is no progress."""
        if self.taken != earlier.taken or self.has_unread != earlier.has_unread:
            return True
        return self.received != earlier.received and not self.has_unread


class ConnectionSnapshot(NamedTuple):
    cookie: bytes
    progress: ConnectionProgress


def list_open_files() -> list[int]:
    """The numbers of all files of this process, connections among them."""
    return [int(name) for name in os.listdir(_FILES)]  # noqa: PTH208  a Path for each would take as long as the look


def take_snapshot(number: int) -> ConnectionSnapshot | None:
    """None if this file is not a TCP connection. Nothing about it is changed."""
    try:
        # Not socket.socket: its wrapper takes a third of the time, and this is done for every connection every second.
        looked_at = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, number)
    except OSError:  # no socket, or closed meanwhile
        return None
    try:
        return _read_snapshot(looked_at)
    except OSError:  # of another kind
        return None
    finally:
        looked_at.detach()


def find_peer(number: int, cookie: bytes, port: int) -> str | None:
    """Whose connection this is; None if it was not accepted at this port, or is gone."""
    try:
        with socket.socket(fileno=os.dup(number)) as own:
            if _read_cookie(own) != cookie or own.getsockname()[1] != port:
                return None
            return str(own.getpeername()[0])
    except OSError:
        return None


def close_connection(number: int, snapshot: ConnectionSnapshot) -> bool:
    """Have the server close this connection; False if it is gone. Bytes that nobody reads are not kept for later."""
    try:
        # A descriptor of our own first: its number could be another connection's by the time it is used.
        with socket.socket(fileno=os.dup(number)) as own:
            if _read_cookie(own) != snapshot.cookie:
                return False
            if snapshot.progress.has_unread:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            own.shutdown(socket.SHUT_RDWR)
    except OSError:
        return False
    return True


def _read_snapshot(looked_at: socket.SocketType) -> ConnectionSnapshot | None:
    info = looked_at.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    state, unacked, taken, received, unsent = _INFO.unpack(info)
    if state == _LISTENS:
        return None
    return ConnectionSnapshot(_read_cookie(looked_at), ConnectionProgress(taken, received, unacked + unsent > 0))


def _read_cookie(looked_at: socket.SocketType) -> bytes:
    return looked_at.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, _COOKIE_BYTES)
