"""The whole service on simulated upstreams, and a store that holds their past."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from lookout.app.monitor import monitor_and_serve
from lookout.app.reloader import Reloader
from lookout.base.clock import SystemClock
from lookout.base.sockets import a_free_port
from lookout.base.url import host_and_port
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.core.notices import Notices
from lookout.demo.fortnight import FORTNIGHT_MS, draw_incidents, make_events, make_note
from lookout.demo.sim.chain import LAUNCH, ChainLayout
from lookout.demo.sim.faults import PLACES
from lookout.demo.sim.server import serving, wall_clock
from lookout.demo.sim.upstreams import REQUIRED_LIST
from lookout.demo.sim.world import World, launch_world
from lookout.documents.reports import documents_of
from lookout.replay.replay import Replay
from lookout.state.codec import encode_notices, encode_state
from lookout.store.sqlite import open_writer

_CONFIG_NAME: Final = "lookout.toml"
_LOOK_EVERY_S: Final = 0.1


class Demo(NamedTuple):
    """A store with a past, and its world. ``upstreams`` is the HOST:PORT for the world's upstreams; ``witnesses`` are
    the settings of two more deployments, by their files."""

    settings: Settings
    world: World
    upstreams: str
    witnesses: dict[Path, Settings]


def build_demo_store(folder: Path, listen: str, seed: int) -> Demo:
    now = SystemClock().now()
    world = launch_world(seed, now)
    upstreams = f"127.0.0.1:{a_free_port()}"
    config = folder / _CONFIG_NAME
    servers = {place: f"127.0.0.1:{a_free_port()}" for place in PLACES}
    config.write_text(_config(listen, f"http://{upstreams}", servers))
    settings = read_config(config)
    replay, incidents = Replay(settings.plan()), draw_incidents(world, seed, now)
    for event in make_events(world, incidents, now - FORTNIGHT_MS, now):
        replay.feed(event)
    notices = encode_notices(Notices(next_number=2, declared=(make_note(incidents),)))
    with closing(open_writer(folder / "lookout.db")) as writer:
        writer.write(documents_of(replay.ledger), encode_state(replay.ledger.state(), notices).documents)
    witnesses: dict[Path, Settings] = {}
    for place, server in servers.items():
        of_witness = folder / place / _CONFIG_NAME
        of_witness.parent.mkdir()
        of_witness.write_text(_config(server, f"http://{upstreams}/line/{place}", {}))
        witnesses[of_witness] = read_config(of_witness)
    return Demo(settings, world, upstreams, witnesses)


async def run_demo(folder: Path, demo: Demo, ready: Callable[[], None]) -> None:
    """Run the service on the simulated upstreams until cancelled. ``ready`` is called when the service answers."""
    settings, has_begun = demo.settings, asyncio.Event()

    def announce() -> None:
        has_begun.set()
        ready()

    async def witness(config: Path, settings: Settings) -> None:
        await has_begun.wait()
        await monitor_and_serve(Reloader(config, settings, SystemClock()))

    async with serving(*host_and_port(demo.upstreams), demo.world, wall_clock):
        beside = [asyncio.create_task(_announce(settings.server.listen, announce), name="announce")]
        beside += [asyncio.create_task(witness(*each), name="witness") for each in demo.witnesses.items()]
        try:
            await monitor_and_serve(Reloader(folder / _CONFIG_NAME, settings, SystemClock()))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


async def _announce(listen: str, ready: Callable[[], None]) -> None:
    while True:
        try:
            _, connection = await asyncio.open_connection(*host_and_port(listen))
        except OSError:
            await asyncio.sleep(_LOOK_EVERY_S)
        else:
            connection.close()
            return ready()


def _config(listen: str, base: str, witnesses: Mapping[str, str]) -> str:
    chain_ids = [chain.chain_id for chain in LAUNCH]
    place = "Frankfurt" if witnesses else ""
    return f"""
[monitor]
place = "{place}"

[server]
listen = "{listen}"

[admin]
monitor = "127.0.0.1:{a_free_port()}"
server = "127.0.0.1:{a_free_port()}"

[log]
level = "error"

{"".join(_chain(chain, base) for chain in LAUNCH)}
{"".join(_witness(*each) for each in witnesses.items())}
[ppoi]
url = "{base}/ppoi"
required_list = "{REQUIRED_LIST}"
chains = {chain_ids}
agrees_with = "indexer"

[messaging]
url = "{base}/waku"

[broadcasters]
url = "{base}/waku"
chains = {chain_ids}
"""


def _witness(place: str, server: str) -> str:
    return f"""
[[witnesses]]
name = "{place.title()}"
url = "http://{server}"
public_url = "http://{server}"
"""


def _chain(chain: ChainLayout, base: str) -> str:
    chain_id = chain.chain_id
    rpc = ", ".join(f'"{base}/rpc/{chain_id}/{letter}"' for letter in "abc"[: chain.endpoints])
    text = f"""
[[chains]]
id = {chain_id}
rpc = [{rpc}]
"""
    for service, path in (("indexer", "squid"), ("hosted-indexer", "hosted")):
        if service == "indexer" or chain.hosted_indexer:
            text += f"""
[[{service}]]
chain = {chain_id}
kind = "squid"
url = "{base}/{path}/{chain_id}/graphql"
confirmations = {chain.confirmations}
links = {{}}
"""
    return text
