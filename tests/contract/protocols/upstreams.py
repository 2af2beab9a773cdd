"""Upstreams on loopback, played by small servers on ports that the system picks."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Reply = tuple[int, bytes]
Answer = Callable[[Asked], Reply]


@asynccontextmanager
async def talking(conversation: Conversation, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that does this on every connection; gives its address."""
    open_connections: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await conversation(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(converse(reader, writer))
        open_connections.add(task)
        task.add_done_callback(lambda _: writer.transport.abort())
        task.add_done_callback(open_connections.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"{'http' if tls is None else 'https'}://{host}:{port}"
    finally:
        server.close()
        for task in tuple(open_connections):
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def answering(
    answer: Answer, *, after_s: float | Callable[[Asked], float] = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, list[Asked]]]:
    """An HTTP server that keeps its connections; gives its address and a list that fills with what it was asked."""
    asked: list[Asked] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await read_request(reader)
            asked.append(request)
            http_code, body = answer(request)
            await asyncio.sleep(after_s(request) if callable(after_s) else after_s)
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (http_code, len(body), body))
            await writer.drain()

    async with talking(converse, tls) as url:
        yield url, asked


def saying(*parts: bytes) -> Conversation:
    """Reads the request, says these bytes and closes."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()

    return converse


async def silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Reads the request and never answers."""
    await reader.read(100_000)
    await asyncio.Event().wait()


async def silence_before_reading(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


def dripping(start: bytes, drop: bytes, every_s: float = 0.02) -> Conversation:
    """Answers with this, and then without end with that, slowly or as fast as it can."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100_000)
        writer.write(start)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(every_s)

    return drip


pouring = partial(dripping, every_s=0)


def resetting(start: bytes) -> Conversation:
    """Begins its answer like this and resets the connection."""

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100_000)
        writer.write(start)
        await writer.drain()
        await asyncio.sleep(0.05)
        bare: socket.socket = writer.get_extra_info("socket")
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return reset


async def read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body)
