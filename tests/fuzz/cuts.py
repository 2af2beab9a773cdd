"""The same bytes in one piece and in many, read at once and with pauses: a connection answers them alike."""

import asyncio
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Final

from hypothesis import strategies as st

from lookout.server.connection import Connection, HttpServer
from lookout.server.request import Callers
from tests.fuzz.hunt import Found, Kind
from tests.fuzz.requests import CONNECTIONS
from tests.unit.server.fakes import FakeReader, SetClock, a_server

_MOST_PIECES: Final = 2_000
_CODE: Final = re.compile(rb"HTTP/1\.1 (\d+)")


class CutTransport:
    """A transport whose other end reads now and then, if it is given a chance for that."""

    def __init__(self, chance: Random | None) -> None:
        self.said = b""
        self.is_reading = True
        self.end = ""
        self._chance = chance
        self._connection: Connection | None = None

    def connect(self, connection: Connection) -> None:
        self._connection = connection
        connection.connection_made(self)

    def writelines(self, wire: Sequence[bytes]) -> None:
        assert self.end == "", "nothing is written after the end"
        self.said += b"".join(wire)
        if self._chance is not None and self._connection is not None and self._chance.random() < 0.3:
            self._connection.pause_writing()
            asyncio.get_running_loop().call_soon(self._connection.resume_writing)

    def set_write_buffer_limits(self, _high: int) -> None:
        pass

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def write_eof(self) -> None:
        self.end = "half closed"

    def close(self) -> None:
        self.end = self.end or "closed"
        self.is_reading = False

    abort = close


async def _exchange(server: HttpServer, pieces: Sequence[bytes], chance: Random | None) -> tuple[bytes, str]:
    """What is answered, and how the connection ends, before its end of input and after it."""
    transport = CutTransport(chance)
    connection = Connection(server, Callers(()).look_up("127.0.0.1"))
    transport.connect(connection)
    for piece in pieces:
        await _until_read(transport)
        if transport.end:
            break
        connection.data_received(piece)
    await _until_read(transport)
    before = transport.end
    if not before:
        connection.eof_received()
        for _ in range(20 + len(b"".join(pieces)) // 16):
            await asyncio.sleep(0)
    return transport.said, f"{before}, {transport.end}"


async def _until_read(transport: CutTransport) -> None:
    while not (transport.is_reading or transport.end):  # noqa: ASYNC110  the next turn is waited for
        await asyncio.sleep(0)


@st.composite
def _cut(draw: st.DrawFn) -> tuple[bytes, list[bytes], Random]:
    """A connection's bytes, in one piece and in several, and the chance by which its other end reads."""
    case = draw(CONNECTIONS)
    everywhere = st.just(range(1, min(len(case), _MOST_PIECES)))
    at = draw(st.sets(st.integers(1, max(1, len(case) - 1)), max_size=40) | everywhere)
    return case, [case[begin:end] for begin, end in pairwise((0, *sorted(at), len(case)))], Random(draw(st.integers(0)))


async def _judge(server: HttpServer, case: bytes, pieces: list[bytes], chance: Random) -> str:
    whole = await _exchange(server, [case], None)
    server.heads.clear()
    cut = await _exchange(server, pieces, chance)
    if cut != whole:
        raise Found(f"in one piece it was answered {_words(whole)}, in several {_words(cut)}: {pieces!r}", case)
    return _words(whole)


def _words(answered: tuple[bytes, str]) -> str:
    return f"{b' '.join(_CODE.findall(answered[0])).decode()} {answered[1]}"


@contextmanager
def _judging() -> Iterator[Callable[[tuple[bytes, list[bytes], Random]], str]]:
    store = FakeReader()
    store.publish("live", b"live")
    store.publish("history", b"history")
    with asyncio.Runner() as runner, socket.socket() as nobody:
        server = a_server(store, SetClock(), rate_limit_per_minute=0).listen(nobody)
        yield lambda case: runner.run(_judge(server, *case))


CUTS: Final = Kind(_cut(), _judging)
