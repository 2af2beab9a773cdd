"""An HTTP proxy on loopback: a tunnel for CONNECT, and any other request passed on."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.contract.protocols.upstreams import Asked, read_request, talking


class Passed(NamedTuple):
    """A request as a proxy got it, and the number of the connection that it came on."""

    request: Asked
    connection: int


@asynccontextmanager
async def a_proxy(leads_to: str = "", credentials: str | None = None) -> AsyncIterator[tuple[str, list[Passed]]]:
    """Leads to the host that is asked for, or always to that one. With credentials it refuses those who do not send
    them. Gives its address and a list that fills with what it was asked."""
    passed: list[Passed] = []
    numbers = count()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(numbers)
        while True:
            request = await read_request(reader)
            passed.append(Passed(request, number))
            if credentials is not None and request.headers.get("proxy-authorization") != basic(credentials):
                writer.write(b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
                continue
            is_tunnel = request.method == "CONNECT"
            to = urlsplit(leads_to or (f"//{request.target}" if is_tunnel else request.target))
            answers, questions = await asyncio.open_connection(to.hostname, to.port)
            try:
                if is_tunnel:
                    writer.write(b"HTTP/1.1 200 Go on\r\n\r\n")
                    await asyncio.gather(carry(reader, questions), carry(answers, writer))
                    return
                questions.write(ask_for_another(request))
                writer.write(await read_answer(answers))
            finally:
                questions.close()

    async with talking(converse) as url:
        yield url, passed


def basic(credentials: str) -> str:
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def ask_for_another(request: Asked) -> bytes:
    to = urlsplit(request.target)
    kept = {name: value for name, value in request.headers.items() if not name.startswith("proxy-")}
    lines = [f"{request.method} {to.path}?{to.query} HTTP/1.1", *(f"{name}: {kept[name]}" for name in kept), "", ""]
    return "\r\n".join(lines).encode() + request.body


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0]))


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()
