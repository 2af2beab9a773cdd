"""The same bytes in one piece and in many, read at once and with pauses: a connection answers them alike."""

import asyncio
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

from lookout.server.connection import Connection, HttpServer, Limits
from lookout.server.request import Callers
from lookout.server.responder import Responder
from lookout.server.shared import Counts
from tests.fuzz.fuzzer import Judge, Kind, Verdict, read_kept
from tests.fuzz.requests import change_connection
from tests.fuzz.web import ordinary_requests
from tests.unit.server.fakes import FakeReader, SetClock, a_poller

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

    def write(self, wire: bytes) -> None:
        assert self.end == "", "nothing is written after the end"
        self.said += wire
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


def _cut(chance: Random, case: bytes) -> list[bytes]:
    most = chance.choice((1, 3, 40, 5_000)) if len(case) < 2_000 else chance.choice((900, 20_000))
    pieces, begin = [], 0
    while begin < len(case):
        size = chance.randint(1, most)
        pieces.append(case[begin : begin + size])
        begin += size
    return pieces


async def _judge(server: HttpServer, case: bytes) -> Verdict:
    chance = Random(case)
    whole = await _exchange(server, [case], None)
    server.heads.clear()
    cut = await _exchange(server, _cut(chance, case), chance)
    outcome = f"{b' '.join(_CODE.findall(whole[0])).decode()} {whole[1]}"
    if cut == whole:
        return Verdict(outcome)
    found = f"{b' '.join(_CODE.findall(cut[0])).decode()} {cut[1]}"
    return Verdict(outcome, f"in one piece it was answered {outcome!r}, in several {found!r}")


@contextmanager
def _judging() -> Iterator[Judge]:
    clock, store = SetClock(), FakeReader()
    store.publish("live", b"live")
    store.publish("history", b"history")
    poller = a_poller(store, clock)
    poller.poll()
    responder = Responder(poller, Callers(()), None, Counts(1).attach(), clock)
    with asyncio.Runner() as runner, socket.socket() as nobody:
        server = HttpServer(nobody, responder, Limits(1), Callers(()))
        yield Judge(lambda cases: [runner.run(_judge(server, case)) for case in cases])


def _seeds() -> list[bytes]:
    return [*read_kept("http").values(), *ordinary_requests()]


CUTS: Final = Kind("the same bytes, cut otherwise", _seeds, change_connection, _judging)
