"""The whole service on simulated upstreams, and a store that holds their past."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import aiohttp
from msgspec.structs import replace

from lookout.app.monitor_and_server import monitor_and_serve
from lookout.base.clock import SystemClock
from lookout.base.host_port import host_and_port
from lookout.base.sockets import a_free_port
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.core.history import DAY_MS
from lookout.core.plan import Plan
from lookout.demo.rehearsal import Life, Listeners, rehearse
from lookout.demo.sim.announcements import REQUIRED_LIST
from lookout.demo.sim.layout import LAUNCH, ChainLayout
from lookout.demo.sim.server import serving, wall_clock
from lookout.demo.sim.upstreams import launch_world
from lookout.demo.sim.world import World
from lookout.documents.reports import documents_of
from lookout.documents.routes import paths
from lookout.state.differ import all_pieces
from lookout.store.sqlite import open_writer

_LOOK_EVERY_S: Final = 0.1
_MINUTE_MS: Final = 60_000
_RECENT_MS: Final = 75 * _MINUTE_MS  # probed as often as ever; a chain's pace is that of the last hour
_CALM_MS: Final = 30 * _MINUTE_MS  # what is well is asked so seldom in the time before


class Demo(NamedTuple):
    """A store with a past, and its world. ``upstreams`` is where the world's upstreams are to be, as HOST:PORT."""

    settings: Settings
    world: World
    upstreams: str


def build_demo_store(folder: Path, listen: str, seed: int, progress: Callable[[float], None]) -> Demo:
    """Write a configuration and a store to the folder, as if the monitor had run for a fortnight until now.
    ``progress`` is called with the part that is done, from 0 to 1."""
    now = SystemClock().now()
    world = launch_world(seed, now)
    upstreams = f"127.0.0.1:{a_free_port()}"
    config = folder / "lookout.toml"
    config.write_text(_config(listen, f"http://{upstreams}"))
    settings = read_config(config)
    past_ms = settings.history.retention_days * DAY_MS
    plan, chance = settings.plan(), Random(seed)  # noqa: S311  the demo's luck
    listeners = Listeners(progress=lambda at: progress(1 - (now - at) / past_ms))
    long_ago = Life(now - past_ms, now - _RECENT_MS, plan=_plan_of_few_probes(plan), calm_ms=_CALM_MS)
    ledger = rehearse(plan, world, (long_ago, Life(now - _RECENT_MS, now)), chance, listeners)
    with closing(open_writer(folder / "lookout.db")) as writer:
        documents = documents_of(ledger)
        writer.write(documents, all_pieces(ledger.state()))
    progress(1)
    return Demo(settings, world, upstreams)


def _plan_of_few_probes(plan: Plan) -> Plan:
    """The same, for a past in which what is well is hardly probed: a fortnight of probes every 30 s takes a minute to
    compute. Rows and heads last until the next time, and in each bucket there are two publications."""
    half_ms = plan.span.bucket_ms // 2
    limits = replace(
        plan.limits,
        recheck_ms=2 * plan.limits.recheck_ms,
        heartbeat_ms=half_ms,
        row_lifetime_ms=_CALM_MS + half_ms,
        head_max_age_ms=_CALM_MS + half_ms,
    )
    return replace(plan, limits=limits, span=replace(plan.span, hold_ms=half_ms))


async def run_demo(folder: Path, demo: Demo, ready: Callable[[], None]) -> None:
    """Run the service on the simulated upstreams until cancelled; ``ready`` is called once it answers."""
    settings = demo.settings
    async with serving(*host_and_port(demo.upstreams), demo.world, wall_clock):
        url = f"http://{settings.server.listen}{paths(settings.protocol)[0]}"
        announcing = asyncio.create_task(_announce(url, ready), name="announce")
        try:
            await monitor_and_serve(settings, folder)
        finally:
            announcing.cancel()
            await asyncio.gather(announcing, return_exceptions=True)


async def _announce(url: str, ready: Callable[[], None]) -> None:
    async with aiohttp.ClientSession() as http:
        while not await _answers(http, url):  # noqa: ASYNC110  another process decides
            await asyncio.sleep(_LOOK_EVERY_S)
    ready()


async def _answers(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


def _config(listen: str, base: str) -> str:
    chain_ids = [chain.chain_id for chain in LAUNCH]
    return f"""
[server]
listen = "{listen}"

[admin]
monitor = "127.0.0.1:{a_free_port()}"
server = "127.0.0.1:{a_free_port()}"

[log]
level = "warning"

{"".join(_chain(chain, base) for chain in LAUNCH)}
[ppoi]
url = "{base}/ppoi"
required_list = "{REQUIRED_LIST}"
chains = {chain_ids}

[messaging]
url = "{base}/waku"

[broadcasters]
url = "{base}/waku"
chains = {chain_ids}
"""


def _chain(chain: ChainLayout, base: str) -> str:
    chain_id = chain.chain_id
    rpc = ", ".join(f'"{base}/rpc/{chain_id}/{letter}"' for letter in "abc"[: chain.endpoints])
    text = f"""
[[chains]]
id = {chain_id}
rpc = [{rpc}]
"""
    for is_there, service, path in (
        (chain.indexer, "indexer", "squid"),
        (chain.hosted_indexer, "hosted-indexer", "hosted"),
    ):
        if is_there:
            text += f"""
[[{service}]]
chain = {chain_id}
kind = "squid"
url = "{base}/{path}/{chain_id}/graphql"
confirmations = {chain.confirmations}
"""
    return text
