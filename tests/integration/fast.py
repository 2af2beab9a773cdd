"""The whole monitor against the whole simulated world, over real sockets, in fractions of a second."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from prometheus_client import CollectorRegistry

from lookout.app import process
from lookout.base.clock import Clock, SystemClock
from lookout.config.file import read_config
from lookout.demo.sim.server import serving, wall_clock
from lookout.demo.sim.world import launch_world
from lookout.monitor.assembly import build_monitor
from lookout.monitor.board import Board
from lookout.monitor.monitor import Monitor
from lookout.monitor.recorder import Recorder
from lookout.store.sqlite import SqliteReader, open_writer
from tests.machines import a_machine
from tests.stores import once_free
from tests.wait import until_async

CHAINS = {1: 12, 42161: 0.25, 137: 1.75, 56: 0.45, 11155111: 12}
REQUIRED_LIST = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
POLICY = {
    "recheck_s": 1,  # short for tests that wait, long enough for a machine that runs other tests
    "jitter_s": 0.2,
    "backoff_cap_s": 1.2,
    "probe_timeout_s": 8,
    "heartbeat_s": 1,
}


def a_config(base: str, **policy: float) -> str:
    """The launch configuration, 21 rows, on simulated upstreams."""
    text = '[store]\nurl = "sqlite:lookout.db"\n[log]\nformat = "json"\n'
    text += '[admin]\nmonitor = ""\nserver = ""\n'  # tests at the same time would want the same ports
    for chain_id, block_time_s in CHAINS.items():
        rpc = ", ".join(f'"{base}/rpc/{chain_id}/{letter}"' for letter in "abc")
        text += f'[[chains]]\nid = {chain_id}\nname = "c{chain_id}"\nblock_time_s = {block_time_s}\nrpc = [{rpc}]\n'
        text += _indexer("indexer", f"{base}/squid", chain_id)
        if chain_id != 11155111:
            text += _indexer("hosted-indexer", f"{base}/hosted", chain_id)
    chains = list(CHAINS)
    text += f'[ppoi]\nurl = "{base}/ppoi"\nrequired_list = "{REQUIRED_LIST}"\nchains = {chains}\n'
    text += f'[messaging]\nurl = "{base}/waku"\n'
    text += f'[broadcasters]\nurl = "{base}/waku"\nchains = {chains}\nseen_s = 150\n'
    text += "[policy]\n" + "".join(f"{key} = {value}\n" for key, value in (POLICY | policy).items())
    return text + "[history]\nwrite_every_s = 0.5\n"


def _indexer(service: str, base: str, chain_id: int) -> str:
    url = f"{base}/{chain_id}/graphql"
    return f'[[{service}]]\nchain = {chain_id}\nkind = "squid"\nurl = "{url}"\nconfirmations = 5\n'


RowKey = tuple[str, int | None]  # a row's service and chain


@dataclass
class World:
    """A simulated world, and the store of the monitor that watches it."""

    folder: Path
    base: str
    http: aiohttp.ClientSession

    async def order(self, target: str, fault: str | None, **parameters: object) -> None:
        async with self.http.post(
            f"{self.base}/control", json={"target": target, "fault": fault, **parameters}
        ) as answer:
            assert answer.status == 200, await answer.text()

    def document(self, name: Any = "live") -> Any:
        reader = SqliteReader(self.folder / "lookout.db")
        try:
            found = reader.read(name)
        finally:
            reader.close()
        return None if found is None else json.loads(found.body)

    def row(self, service: str, chain_id: int | None) -> Any:
        (row,) = (r for r in self.document()["checks"] if (r["service"], r["chainId"]) == (service, chain_id))
        return row

    def statuses(self) -> dict[RowKey, str]:
        """Of every row, as status/reason."""
        return {(r["service"], r["chainId"]): f"{r['status']}/{r['reason']}" for r in self.document()["checks"]}

    def status_of(self, service: str, chain_id: int | None) -> str:
        return self.statuses()[service, chain_id]

    async def until(self, holds: Callable[[], bool], what: str, within_s: float = 120) -> None:
        """Wait for something to be published."""
        try:
            await until_async(lambda: self.document() is not None and holds(), what, within_s)
        except AssertionError as error:
            rows = {} if self.document() is None else self.statuses()
            error.add_note(
                f"not current: { {row: status for row, status in rows.items() if 'current/' not in status} }"
            )
            raise

    async def until_healthy(self) -> None:
        await self.until(
            lambda: all(r["status"] in ("current", "unmonitored") for r in self.document()["checks"]), "all current"
        )


@asynccontextmanager
async def a_world(folder: Path, now: Callable[[], int] = wall_clock) -> AsyncIterator[World]:
    async with (
        serving("127.0.0.1", 0, launch_world(None, now()), now) as (host, port),
        aiohttp.ClientSession() as http,
    ):
        yield World(folder, f"http://{host}:{port}", http)


class Watched(NamedTuple):
    """A monitor that runs, and what it says of itself."""

    monitor: Monitor
    board: Board
    registry: CollectorRegistry


@asynccontextmanager
async def watched(
    world: World,
    config: str,
    clock: Clock | None = None,
    recorder: Recorder | None = None,
) -> AsyncIterator[Watched]:
    """Run a monitor on a world during the block."""
    path = world.folder / "lookout.toml"
    path.write_text(config)
    writer = once_free(lambda: open_writer(world.folder / "lookout.db"))
    machine = a_machine(writer, clock or SystemClock(), registry := CollectorRegistry(), recorder=recorder)
    monitor = build_monitor(read_config(path), writer.load(), machine)
    running = asyncio.create_task(monitor.run())
    try:
        yield Watched(monitor, machine.instruments.board, registry)
    finally:
        running.cancel()
        try:
            await running
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()
            if recorder is not None:
                recorder.close()


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(180):
            await scenario

    process.run(bounded())
