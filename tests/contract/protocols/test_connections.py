"""A new connection for each request."""

import asyncio

import pytest

from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import open_session


def sized(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)


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
