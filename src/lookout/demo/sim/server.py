"""The simulated upstreams on one port, with a control route for faults, and how a faulty upstream behaves on the
wire."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from lookout.demo.sim.faults import FAULTS, Fault, FaultKind, line_of
from lookout.demo.sim.upstreams import (
    DOCUMENT,
    ENDPOINT,
    NODE,
    SQUID,
    Asked,
    Upstream,
    UpstreamReply,
    json_reply,
    text_reply,
)
from lookout.demo.sim.waku import MESSAGES, PEERS
from lookout.demo.sim.world import World, launch_world

UPSTREAMS: Final = (ENDPOINT, NODE, MESSAGES, PEERS, SQUID, DOCUMENT)
_HANG_S: Final = 600.0
_SHUTDOWN_S: Final = 0.1
_BACKLOG: Final = 1_024


class Simulation:
    """The upstreams of one world as HTTP handlers. ``now`` is the world's time in milliseconds since 1970."""

    def __init__(self, world: World, now: Callable[[], int]) -> None:
        self._world = world
        self._now = now

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/control", self._overview),
                web.post("/control", self._order),
                *(
                    web.route(upstream.method, f"{line}{upstream.route}", self._handler(upstream))
                    for upstream in UPSTREAMS
                    for line in ("", "/line/{place}")
                ),
            ]
        )
        application.on_response_prepare.append(self._date)
        return application

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        """Use the world's time, as the blocks do."""
        response.headers["Date"] = formatdate(self._now() / 1000, usegmt=True)

    async def _overview(self, _: web.Request) -> web.Response:
        overview = {
            "set": self._world.faults.ordered_at(self._now()),
            "targets": list(self._world.addresses),
            "faults": {name: _describe(kind) for name, kind in FAULTS.items()},
        }
        return _respond(json_reply(overview))

    async def _order(self, request: web.Request) -> web.Response:
        """Apply an order and list the orders in force; a wrong order changes nothing."""
        at = self._now()
        try:
            self._world.faults.order(json.loads(await request.read()), at)
        except ValueError as problem:
            return _respond(json_reply({"error": str(problem)}, 400))
        return _respond(json_reply({"set": self._world.faults.ordered_at(at)}))

    def _handler(self, upstream: Upstream) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            address = upstream.address.format(**request.match_info)
            place = request.match_info.get("place")
            way = (address,) if place is None else (line_of(place, address), address)
            for part in way:
                if part not in self._world.addresses:
                    return _respond(text_reply(f"there is no {part} in this world", 404))
            body = await request.read()
            fault = next(filter(None, (self._world.wire_fault(part, self._now()) for part in way)), None)
            if fault is not None and fault.kind == "late":
                await asyncio.sleep(fault.size / 1000)
            elif fault is not None:
                return await _misbehave(request, fault)
            return _respond(upstream.reply(Asked(self._world, address, request.query, body, self._now())))

        return answer


async def _misbehave(request: web.Request, fault: Fault) -> web.Response:
    match fault.kind:
        case "garbage":
            return _respond(UpstreamReply(b"\xff is not JSON"))
        case "status":
            return _respond(text_reply("out of order", fault.size))
        case "hang":
            await asyncio.sleep(_HANG_S)
    return _reset(request)


def _respond(reply: UpstreamReply) -> web.Response:
    return web.Response(body=reply.body, status=reply.http_code, headers={"Content-Type": reply.content_type})


def _reset(request: web.Request) -> web.Response:
    transport = request.transport
    if transport is not None:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


def _describe(kind: FaultKind) -> dict[str, object]:
    described: dict[str, object] = {"what": kind.what, "appliesTo": kind.applies_to}
    if kind.parameter is not None:
        described |= {"parameter": kind.parameter.name, "default": kind.parameter.default}
    return described


@asynccontextmanager
async def serving(host: str, port: int, world: World, now: Callable[[], int]) -> AsyncIterator[tuple[str, int]]:
    """Serve a world's upstreams during the block. Gives the bound host and port, also for port 0."""
    runner = web.AppRunner(
        Simulation(world, now).application(),
        access_log=None,
        handler_cancellation=True,  # a hanging request ends when its client leaves
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
        bound_host, bound_port, *_ = runner.addresses[0]
        yield bound_host, bound_port
    finally:
        await runner.cleanup()


async def serve_forever(host: str, port: int, seed: int | None, ready: Callable[[str, int], None]) -> None:
    async with serving(host, port, launch_world(seed, wall_clock()), wall_clock) as (bound_host, bound_port):
        ready(bound_host, bound_port)
        await asyncio.Event().wait()


def wall_clock() -> int:
    return time.time_ns() // 1_000_000
