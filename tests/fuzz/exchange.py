"""Bytes to a server and back, whatever it does in between."""

import select
import socket
import time
from typing import Final, NamedTuple

QUIET_S: Final = 0.3  # so long nothing came: it waits for more
END_WITHIN_S: Final = 20.0
_PIECE: Final = 65_536


class Came(NamedTuple):
    said: bytes
    is_closed: bool
    """Whether the server ended the connection, at the latest after this end said that it was done."""
    is_reset: bool = False
    """Whether it did so with bytes of this end unread: the last of its answer may then be lost on the way."""


def exchange(address: tuple[str, int], sent: bytes, quiet_s: float = QUIET_S) -> Came:
    """Send all of it and hear all of the answer; once nothing came for ``quiet_s``, say that this was all. A server may
    then hang up on what it has not answered yet: a caller that needs the answer waits longer."""
    with socket.create_connection(address, timeout=END_WITHIN_S) as connection:
        connection.setblocking(False)
        left, said, is_done = memoryview(sent), b"", False
        waiting = (
            select.poll()
        )  # select() knows the first 1,024 files of a process only, and others may have taken them
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < (END_WITHIN_S if is_done else quiet_s):
            waiting.register(connection, select.POLLIN | (select.POLLOUT if left else 0))
            is_ready = sum(events for _, events in waiting.poll(50))
            try:
                if is_ready & select.POLLOUT:
                    left = left[connection.send(left) :]
                    quiet_since = time.monotonic()
                if is_ready & ~select.POLLOUT:
                    piece = connection.recv(_PIECE)
                    if not piece:
                        return Came(said, True)
                    said += piece
                    quiet_since = time.monotonic()
            except ConnectionError:
                return Came(said, True, True)
            except BlockingIOError:
                continue
            if not is_done and time.monotonic() - quiet_since >= quiet_s - 0.05:
                is_done, quiet_since = True, time.monotonic()
                try:
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    return Came(said, True, True)
    return Came(said, False)
