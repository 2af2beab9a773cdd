"""How a faulty upstream behaves on the wire."""

import asyncio
import json
import random
import socket
import struct
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from aiohttp import web

from lookout.demo.sim.faults import Fault
from lookout.demo.sim.upstream import UpstreamReply, html_reply, json_reply, rpc_error, text_reply

_LONGEST_S: Final = 600.0  # that a connection is kept open on purpose
_DRIP_S: Final = 1.0
_PAUSE_S: Final = 0.002  # between two pieces of a flood
_FLOOD_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
# How each flood begins, and the piece that it repeats.
_FLOODS: Final = {
    "endless": (_FLOOD_HEAD + b'\r\n{"jsonrpc":"2.0","id":1,"result":"0x', b"0" * 65_536),
    "interim": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2_000),
    "chunks": (_FLOOD_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 10_000),
}
_NUMBERS: Final = b"[" + b"1e308," * 170_000 + b"1e308]"
_GARBAGE_BYTES: Final = 512
_SPEAK_JSON_RPC: Final = ("rpc", "provider", "bundler", "ppoi")


async def misbehave(request: web.Request, family: str, fault: Fault) -> web.StreamResponse:
    """Answer as this fault does, where the right answer plays no part."""
    match fault.kind:
        case "hang":
            return await hang(request)
        case "endless" | "interim" | "chunks":
            return await _flood(request, *_FLOODS[fault.kind])
        case "numbers":
            return respond(UpstreamReply(_NUMBERS))
        case "garbage":  # never JSON, however drawn
            return respond(UpstreamReply(b"\xff" + random.Random(request.path).randbytes(_GARBAGE_BYTES)))
        case "html":
            return respond(html_reply("Attention Required! Please verify that you are human.", 200))
        case "status":
            return await _fail(request, family, fault.size)
        case "rate-limit" if family in _SPEAK_JSON_RPC:
            error = rpc_error(await _read_json(request), -32005, "limit exceeded")
            return respond(json_reply(error, fault.size))
        case "rate-limit":
            return respond(text_reply("Too Many Requests", fault.size))
        case _:
            return reset(request)


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(_LONGEST_S)
    return reset(request)


async def drip(request: web.Request, reply: UpstreamReply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.http_code, headers={"Content-Type": reply.content_type})
    response.content_length = len(reply.body)
    await response.prepare(request)
    for byte in reply.body[: round(_LONGEST_S / _DRIP_S)]:
        await response.write(bytes([byte]))
        await asyncio.sleep(_DRIP_S)
    return response


async def _flood(request: web.Request, start: bytes, piece: bytes) -> web.StreamResponse:
    """Send bytes without an end, as they are."""
    transport = request.transport
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_S):
            while transport is not None and not transport.is_closing():
                if not transport.get_write_buffer_size():
                    transport.write(start + piece)
                    start = b""
                await asyncio.sleep(_PAUSE_S)
    return reset(request)


async def _fail(request: web.Request, family: str, http_code: int) -> web.Response:
    message = HTTPStatus(http_code).phrase if http_code in set(HTTPStatus) else "Error"
    if family == "ppoi" and http_code >= 400:
        return respond(json_reply(rpc_error(await _read_json(request), -32603, message), http_code))
    response = respond(text_reply(message, http_code))
    if http_code < 400:
        response.headers["Location"] = "/elsewhere"
    return response


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


async def _read_json(request: web.Request) -> object:
    try:
        document: object = json.loads(await request.read())
    except ValueError:
        return None
    return document
