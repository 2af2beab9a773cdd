"""When a server closes connections that make no progress, at the launch's own time (A16)."""

import logging
import select
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from lookout.server.connection import STALLED_S
from tests.integration.guarded import connect_from
from tests.integration.raw import RawServer, a_raw_server, a_request, store
from tests.integration.served import HISTORY

_log: Final = logging.getLogger("campaign.waits")
_LARGE: Final = b"c" * 500_000
_EARLY_S: Final = 1.0
_LATE_S: Final = 5.0
_SMALL_BUFFER: Final = 2_048
_SLOW_ANSWERS: Final = 6
_READER: Final = "127.0.0.1"


class Stall(NamedTuple):
    what: str
    sent: bytes


STALLS: Final = (
    Stall("a connection on which nothing is said", b""),
    Stall("half a request", a_request()[:20]),
    Stall("a connection that is kept after an answer", a_request(close=False)),
    Stall("a reader that does not read", a_request("GET", HISTORY, close=False) * 120),
)


def failures_of(folder: Path) -> Iterator[str]:
    """All stalls at once, beside a slow reader that lasts longer than they may."""
    store(folder, live=b'{"live":1}', history=_LARGE)
    with a_raw_server(folder) as server, ThreadPoolExecutor(len(STALLS) + 1) as pool:
        slow = pool.submit(_read_slowly, server)
        yield from filter(None, pool.map(partial(_stall, server), STALLS))
        if slow.result():
            yield slow.result()


def _stall(server: RawServer, stall: Stall) -> str:
    with connect_from(_READER, server, receive_bytes=_SMALL_BUFFER) as connection:
        connection.sendall(stall.sent)
        began = time.monotonic()
        end = select.poll()
        end.register(connection, select.POLLRDHUP)
        is_closed = bool(end.poll(1000 * (STALLED_S + 30)))
        took_s = time.monotonic() - began
    _log.info(f"{stall.what}: {'closed' if is_closed else 'still open'} after {took_s:.1f} s")
    if is_closed and STALLED_S - _EARLY_S <= took_s <= STALLED_S + _LATE_S:
        return ""
    return f"{stall.what} was open for {took_s:.1f} s instead of {STALLED_S:g}"


def _read_slowly(server: RawServer) -> str:
    with connect_from(_READER, server, receive_bytes=65_536) as connection:
        connection.sendall(a_request("GET", HISTORY, close=False) * (_SLOW_ANSWERS - 1) + a_request("GET", HISTORY))
        began, read = time.monotonic(), b""
        try:
            while piece := connection.recv(50_000):
                read += piece
                time.sleep(1)
        except ConnectionError as error:
            return f"a slow reader was cut off after {time.monotonic() - began:.1f} s: {error}"
    took_s = time.monotonic() - began
    _log.info(f"a slow reader: all of it after {took_s:.1f} s")
    if took_s < STALLED_S + _LATE_S:
        return f"a slow reader took only {took_s:.1f} s: nothing was tried"
    return "" if read.count(_LARGE) == _SLOW_ANSWERS else "a slow reader did not get all of it"
