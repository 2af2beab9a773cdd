"""Connections to honest upstreams: whole answers through TLS, and a new connection for each."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from lookout.demo.sim.server import CERTIFICATE, load_or_make
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import DIRECT, AccessTable, Request
from lookout.protocols.client.session import open_session

HEAD: Final = b"HTTP/1.1 200 OK\r\n"
ANSWERS: Final = 3


def body_of(number: int) -> bytes:
    """All of the same length, so that an old one in the place of a new one would fit."""
    return b'{"height":2100000%d}' % number


def sized(body: bytes) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body)


def chunked(body: bytes) -> list[bytes]:
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    return [head, b"%x\r\n" % len(body), body[:5], body[5:], b"\r\n0\r\n\r\n"]


@asynccontextmanager
async def a_server(answers: list[list[bytes]], tls: ssl.SSLContext | None) -> AsyncIterator[tuple[str, list[int]]]:
    """Gives its address, and a list with a number for each connection."""
    connections: list[int] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(len(connections))
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                for part in answers.pop(0):
                    writer.write(part)  # each is a record of its own under TLS
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1", 0, ssl=tls)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http{'s' if tls else ''}://{host}:{port}/", connections


@pytest.mark.clause("M9", "M17")
@pytest.mark.parametrize("is_tls", [True, False], ids=["through TLS", "plainly"])
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(lambda body: [sized(body) + body], id="at once"),
        pytest.param(lambda body: [sized(body), body], id="the head first"),
        pytest.param(lambda body: [sized(body) + body[:9], body[9:11], body[11:]], id="in parts"),
        pytest.param(chunked, id="in chunks"),
        pytest.param(lambda body: [sized(body * 4_000) + body * 4_000], id="longer than is read at a time"),
    ],
)
async def test_answers_are_whole_and_each_comes_on_a_connection_of_its_own(parts, is_tls: bool, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    bodies = [body_of(number) for number in range(ANSWERS)]
    tls = load_or_make(tmp_path, "127.0.0.1") if is_tls else None
    access = AccessTable(ca_file=(tmp_path / CERTIFICATE).read_text()) if is_tls else DIRECT
    async with a_server([parts(body) for body in bodies], tls) as (url, connections), open_session(5) as session:
        found = [await session.fetch(Request("GET", url, access)) for _ in bodies]
    assert found == [body * (len(found[0]) // len(body)) for body in bodies]
    assert len(connections) == ANSWERS


@pytest.mark.clause("S1", "S2")
async def test_a_service_that_no_longer_accepts_connections_is_refused_at_once_though_it_keeps_open_ones() -> None:
    """Every wallet would be refused; a connection that the last answer left open proves nothing."""
    connections: list[asyncio.StreamWriter] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        while await reader.read(65_536):
            writer.write(sized(b"{}") + b"{}")

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with open_session(5) as session:
        asked = Request("GET", f"http://{host}:{port}/")
        assert await session.fetch(asked) == b"{}"
        server.close()
        with pytest.raises(ProbeFailed, match="refused"):
            await session.fetch(asked)
    assert len(connections) == 1
    connections[0].close()
