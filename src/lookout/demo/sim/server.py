"""The simulated upstreams on one port, speaking their own protocols, with a control route for faults."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from lookout.demo.sim.front import BARE, UpstreamFront
from lookout.demo.sim.http.control import order_reply, overview_reply
from lookout.demo.sim.http.indexers import DOCUMENT, ENVIO, INDEX_NODE, PONDER, SQUID, SUBGRAPH, deployment
from lookout.demo.sim.http.lists import DOCUMENT_LIST, PONDER_LIST
from lookout.demo.sim.http.own_services import BUNDLER, RELAYER
from lookout.demo.sim.http.ppoi import NODE
from lookout.demo.sim.http.reply import UpstreamReply, json_reply, text_reply
from lookout.demo.sim.http.rpc import ENDPOINT, PROVIDER
from lookout.demo.sim.http.trouble import Holding, misbehave, reset, respond
from lookout.demo.sim.http.upstream import Asked, Upstream
from lookout.demo.sim.http.waku import Relay, peers_reply, store_reply
from lookout.demo.sim.upstreams import Upstreams, WireFault, launch_world
from lookout.demo.sim.world import World

# The waku node, which remembers who listens, is answered for below.
RESPONDER: Final = Upstream(
    "*", "/responders/{service}/{chain}", "{service}/{chain}", lambda _: json_reply({"status": "ok"})
)
UPSTREAMS: Final = (
    *(ENDPOINT, SQUID, SUBGRAPH, DOCUMENT, INDEX_NODE, PONDER, ENVIO, NODE),
    *(PONDER_LIST, DOCUMENT_LIST, RESPONDER, PROVIDER, BUNDLER, RELAYER),
)
_LAST_WORDS_S: Final = 0.1
_BACKLOG: Final = 1_024
# The faults that leave the answer itself right.
_ANSWERING: Final = ("drip", "late", "slow-pages")


class Simulation:
    """The upstreams of one world as HTTP handlers. ``now`` tells the world's time in milliseconds since 1970."""

    def __init__(self, world: World, now: Callable[[], int]) -> None:
        self._upstreams = Upstreams(world)
        self._now = now
        self._relay = Relay(self._upstreams)
        self._holding = Holding()

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/", self._index),
                web.get("/control", self._overview),
                web.post("/control", self._order),
                web.route("*", "/waku{path:(/.*)?}", self._waku),
                *(web.route(each.method, each.route, self._handler(each)) for each in UPSTREAMS),
            ]
        )
        application.on_response_prepare.append(self._date)
        application.on_shutdown.append(self._stop)
        return application

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(
            self._now() / 1000, usegmt=True
        )  # the world's time, as its blocks have it

    async def _stop(self, _: web.Application) -> None:
        self._holding.stop()

    async def _index(self, _: web.Request) -> web.StreamResponse:
        upstreams = self._upstreams
        return respond(
            json_reply(
                {
                    "subjects": list(upstreams.addresses),
                    "deployments": {chain.chain_id: deployment(chain.chain_id) for chain in upstreams.layout},
                    "broadcasters": {
                        chain_id: [member.address for member in members]
                        for chain_id, members in upstreams.broadcasters.items()
                    },
                }
            )
        )

    async def _overview(self, _: web.Request) -> web.StreamResponse:
        return respond(overview_reply(self._upstreams, self._now()))

    async def _order(self, request: web.Request) -> web.StreamResponse:
        return respond(order_reply(await request.read(), self._upstreams, self._now()))

    def _handler(self, upstream: Upstream) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            found = request.match_info
            address, path = upstream.address.format(**found), found.get("path", "")

            def reply(body: bytes, at: int) -> UpstreamReply | None:
                return upstream.reply(Asked(self._upstreams, address, request.method, path, body, at))

            return await self._answer(request, address, reply)

        return answer

    async def _waku(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]

        def reply(body: bytes, at: int) -> UpstreamReply:
            match request.method, path:
                case "GET", "/store/v3/messages":
                    return store_reply(request.query, self._upstreams, at)
                case "POST", "/relay/v1/subscriptions":
                    return self._relay.subscribe(body, at)
                case "GET", _ if path.startswith("/relay/v1/messages/"):
                    return self._relay.read(path.removeprefix("/relay/v1/messages/"), at)
                case "GET", _:
                    about_itself = peers_reply(path, self._upstreams.peers(at))
                    if about_itself is not None:
                        return about_itself
            return text_reply("Bad Request", 400)  # as the real one answers to any path it does not know

        address = "waku/messages" if path.startswith(("/store/", "/relay/")) else "waku/peers"
        return await self._answer(request, address, reply)

    async def _answer(
        self, request: web.Request, address: str, reply: Callable[[bytes, int], UpstreamReply | None]
    ) -> web.StreamResponse:
        """The reply, unless something is wrong with the address; where there is none, silence."""
        if address not in self._upstreams.addresses:
            return respond(text_reply(f"there is no {address} in this world", 404))
        body = await request.read()
        fault = self._upstreams.wire_fault(address, self._now())
        if fault is not None and fault.name not in _ANSWERING:
            return await misbehave(request, address.partition("/")[0], fault, self._holding)
        delay_s = _delay_s(fault, request.path)
        if delay_s and not await self._holding.wait(delay_s):
            return reset(request)
        answer = reply(body, self._now())
        if answer is None:
            return await self._holding.hang(request)
        if fault is not None and fault.name == "drip":
            return await self._holding.drip(request, answer)
        return respond(answer)


def _delay_s(fault: WireFault | None, path: str) -> float:
    """How long a right answer is kept back."""
    match fault:
        case WireFault("late", delay_ms):
            return delay_ms / 1000
        case WireFault("slow-pages", delay_ms) if path.startswith("/waku/store/"):
            return delay_ms / 1000
        case _:
            return 0


@asynccontextmanager
async def serving(
    host: str, port: int, world: World, now: Callable[[], int], front: UpstreamFront = BARE
) -> AsyncIterator[tuple[str, int]]:
    """Serve a world's upstreams meanwhile; the address is the bound one, also when the port was 0."""
    application = Simulation(world, now).application()
    front.put_before(application)
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=True,  # so that a connection that its client gave up is not held
        shutdown_timeout=_LAST_WORDS_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=front.tls, backlog=_BACKLOG).start()
        bound_host, bound_port, *_ = runner.addresses[0]
        yield bound_host, bound_port
    finally:
        await runner.cleanup()


async def serve_forever(
    host: str, port: int, seed: int | None, front: UpstreamFront, ready: Callable[[str, int], None]
) -> None:
    """Serve the launch world by the wall clock until cancelled; ``ready`` is told the bound address."""
    async with serving(host, port, launch_world(seed, wall_clock()), wall_clock, front) as (bound_host, bound_port):
        ready(bound_host, bound_port)
        await asyncio.Event().wait()


def wall_clock() -> int:
    return time.time_ns() // 1_000_000
