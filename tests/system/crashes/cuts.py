"""A connection to PostgreSQL that can be cut at any statement: a proxy that knows just enough of the protocol."""

import asyncio
import struct
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

SOCKET: Final = ".s.PGSQL.5432"
_LENGTH: Final = struct.Struct(">I")


class Harm(NamedTuple):
    """What happens at a statement, with the process that is to answer it: then it is passed on, or not, and answered,
    or not."""

    number: int
    strike: Callable[[int], None] = lambda _: None
    passes: bool = True
    strikes_first: bool = True  # before the server has it; otherwise when it has answered, and the answer is lost


class Proxy:
    """Between clients and a server, by the folders of their sockets. Harm is done once."""

    def __init__(self, server: Path, harm: Harm | None) -> None:
        self._server = server
        self._harm = harm
        self.statements: list[str] = []
        self.struck = threading.Event()

    async def serve(self, folder: Path, is_serving: threading.Event, end: asyncio.Event) -> None:
        async with await asyncio.start_unix_server(self._converse, folder / SOCKET):
            is_serving.set()
            await end.wait()

    async def _converse(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_unix_connection(self._server / SOCKET)
        except OSError:  # while the server recovers
            to_client.close()
            return
        session = _Session()
        ways = (self._pass_requests(client, to_server, session), self._pass_answers(server, to_client, session))
        await asyncio.wait(map(_until_it_ends, ways), return_when=asyncio.FIRST_COMPLETED)
        for writer in (to_server, to_client):
            writer.close()

    async def _pass_requests(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, session: "_Session"
    ) -> None:
        """A statement at a time."""
        length = await client.readexactly(4)  # of the first message, which has no kind
        to_server.write(length + await client.readexactly(_LENGTH.unpack(length)[0] - 4))
        request, kind = b"", b""
        while kind != b"X":
            kind, message = await _message(client)
            request += message
            if kind not in (b"Q", b"S", b"X"):
                continue
            if kind != b"X" and (harm := self._find_harm(request)) is not None:
                if harm.strikes_first:
                    await asyncio.to_thread(harm.strike, session.pid)
                else:
                    session.losing = harm
                if not harm.passes:
                    return
            to_server.write(request)
            request = b""
        await to_server.drain()

    def _find_harm(self, request: bytes) -> Harm | None:
        # Enough of the statement to know it: that of a simple query, or of a message that has it parsed.
        self.statements.append(request[5:].lstrip(b"\0")[:40].decode(errors="replace").strip("\0"))
        if self._harm is None or self._harm.number != len(self.statements):
            return None
        self.struck.set()
        return self._harm

    async def _pass_answers(
        self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter, session: "_Session"
    ) -> None:
        while True:
            kind, message = await _message(server)
            if kind == b"K":
                (session.pid,) = _LENGTH.unpack(message[5:9])
            if session.losing is None:
                to_client.write(message)
            elif kind == b"Z":
                await asyncio.to_thread(session.losing.strike, session.pid)
                return


class _Session:
    pid = 0
    losing: Harm | None = None  # the harm that keeps the next answer


def _until_it_ends(way: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    async def run() -> None:
        with suppress(OSError, EOFError):
            await way

    return asyncio.create_task(run())


async def _message(of: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await of.readexactly(5)
    return head[:1], head + await of.readexactly(_LENGTH.unpack(head[1:])[0] - 4)


@contextmanager
def a_proxy(server: Path, harm: Harm | None = None) -> Iterator[tuple[Proxy, Path]]:
    """One to the server with its socket in this folder; it has its own socket in another."""
    proxy, is_serving, end = Proxy(server, harm), threading.Event(), asyncio.Event()
    with tempfile.TemporaryDirectory(prefix="lookout-cut-") as folder, asyncio.Runner() as runner:
        loop = runner.get_loop()
        serving = threading.Thread(target=runner.run, args=(proxy.serve(Path(folder), is_serving, end),), daemon=True)
        serving.start()
        is_serving.wait()
        try:
            yield proxy, Path(folder)
        finally:
            loop.call_soon_threadsafe(end.set)
            serving.join()
