"""How a faulty upstream behaves on the wire."""

import asyncio
import json
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web

from lookout.demo.sim.http.reply import UpstreamReply, html_reply, json_reply, text_reply
from lookout.demo.sim.upstreams import WireFault

_MOST_HELD: Final = 256
_LONGEST_S: Final = 600.0
_DRIP_S: Final = 1.0
_CHUNK: Final = b"0" * 65_536
# How each flood begins, and what it goes on with.
_INTERIM: Final = (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2_000)
_TINY_CHUNKS: Final = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 10_000)
_NUMBERS: Final = b"[" + b"1e308," * 170_000 + b"1e308]"
_BETWEEN_CHUNKS_S: Final = 0.002
_GARBAGE_BYTES: Final = 512
_SPEAK_JSON_RPC: Final = ("rpc", "provider", "bundler", "ppoi")


class Holding:
    """Connections that are kept open on purpose: so many at most, each so long at most, and none after ``stop``."""

    def __init__(self, most: int = _MOST_HELD, longest_s: float = _LONGEST_S) -> None:
        self._most = most
        self._longest_s = longest_s
        self._held = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def hang(self, request: web.Request) -> web.StreamResponse:
        """Say nothing."""
        with self._place() as free:
            if free:
                await self._stopped_within(self._longest_s)
        return reset(request)

    async def wait(self, seconds: float) -> bool:
        """Keep a request waiting; False if it can wait no longer."""
        with self._place() as free:
            return free and not await self._stopped_within(seconds)

    async def drip(self, request: web.Request, reply: UpstreamReply) -> web.StreamResponse:
        """Say the right thing, one byte a second."""
        response = web.StreamResponse(status=reply.http_code, headers={"Content-Type": reply.content_type})
        response.content_length = len(reply.body)
        with self._place() as free:
            if free:
                await response.prepare(request)
                for byte in reply.body[: round(self._longest_s / _DRIP_S)]:
                    await response.write(bytes([byte]))
                    if await self._stopped_within(_DRIP_S):
                        break
                else:
                    return response
        return reset(request)

    async def stream_forever(self, request: web.Request) -> web.StreamResponse:
        """Say something without an end."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        with self._place() as free:
            if free:
                await response.prepare(request)
                await response.write(b'{"jsonrpc":"2.0","id":1,"result":"0x')
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._longest_s):
                        while not await self._stopped_within(_BETWEEN_CHUNKS_S):
                            await response.write(_CHUNK)
        return reset(request)

    async def flood(self, request: web.Request, start: bytes, drop: bytes) -> web.StreamResponse:
        """Send bytes without an end, as they are."""
        transport = request.transport
        with self._place() as free, suppress(TimeoutError):
            async with asyncio.timeout(self._longest_s):
                while free and transport is not None and not transport.is_closing():
                    if not transport.get_write_buffer_size():
                        transport.write(start + drop)
                        start = b""
                    if await self._stopped_within(_BETWEEN_CHUNKS_S):
                        break
        return reset(request)

    @contextmanager
    def _place(self) -> Iterator[bool]:
        """Whether there is room for one more; it is taken meanwhile."""
        self._held += 1
        try:
            yield self._held <= self._most and not self._stopping.is_set()
        finally:
            self._held -= 1

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True


async def misbehave(request: web.Request, family: str, fault: WireFault, holding: Holding) -> web.StreamResponse:
    """Answer, or not, the way this fault does, where what would have been right plays no part."""
    match fault:
        case WireFault("hang"):
            return await holding.hang(request)
        case WireFault("endless"):
            return await holding.stream_forever(request)
        case WireFault("interim"):
            return await holding.flood(request, *_INTERIM)
        case WireFault("chunks"):
            return await holding.flood(request, *_TINY_CHUNKS)
        case WireFault("numbers"):
            return respond(UpstreamReply(_NUMBERS))
        case WireFault("garbage"):
            return respond(
                UpstreamReply(b"\xff" + random.Random(request.path).randbytes(_GARBAGE_BYTES))
            )  # never JSON, however drawn
        case WireFault("html"):
            return respond(html_reply("Attention Required! Please verify that you are human.", 200))
        case WireFault("status", http_code):
            message = HTTPStatus(http_code).phrase if http_code in set(HTTPStatus) else "Error"
            if family == "ppoi" and http_code >= 400:
                return respond(_rpc_error(await request.read(), -32603, message, http_code))
            response = respond(text_reply(message, http_code))
            if http_code < 400:
                response.headers["Location"] = "/elsewhere"
            return response
        case WireFault("rate-limit", http_code):
            if family in _SPEAK_JSON_RPC:
                return respond(_rpc_error(await request.read(), -32005, "limit exceeded", http_code))
            return respond(text_reply("Too Many Requests", http_code))
        case _:
            return reset(request)


def respond(reply: UpstreamReply) -> web.Response:
    return web.Response(body=reply.body, status=reply.http_code, headers={"Content-Type": reply.content_type})


def reset(request: web.Request) -> web.Response:
    """Close the connection with a reset; the response is for form's sake and goes nowhere."""
    transport = request.transport
    if transport is not None:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


def _rpc_error(body: bytes, code: int, message: str, http_code: int) -> UpstreamReply:
    request_id = None
    try:
        request = json.loads(body)
    except ValueError:
        pass
    else:
        request_id = request.get("id") if isinstance(request, dict) else None
    return json_reply({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": request_id}, http_code)
