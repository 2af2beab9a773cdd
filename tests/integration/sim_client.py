"""A simulation for tests: a client of its routes, and Lookout's own sources, whose parsers recorded answers prove."""

import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from lookout.core.heads import Reading
from lookout.core.model import Found
from lookout.demo.sim.server import serving
from lookout.demo.sim.upstreams import REQUIRED_LIST
from lookout.demo.sim.world import World, launch_world
from lookout.protocols.broadcasters.seen import BroadcastersTable
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.generic import JsonTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from lookout.protocols.registry import protocol_of
from lookout.protocols.source import observe
from tests.builders import NOON
from tests.commands import LOOKOUT, TIME_S
from tests.unit.server.fakes import SetClock

PATIENCE_S = 0.4  # how long a test waits for an answer that never comes


class Control(NamedTuple):
    """What the control route answered."""

    http_code: int
    document: Any


class Client:
    """Asks a running simulation."""

    def __init__(self, session: aiohttp.ClientSession, base: str, clock: SetClock) -> None:
        self.session = session
        self.base = base
        self.clock = clock

    async def control(self, order: bytes | None = None) -> Control:
        method = "GET" if order is None else "POST"
        async with self.session.request(method, f"{self.base}/control", data=order) as response:
            return Control(response.status, await response.json())

    async def order(self, target: str, fault: str | None, **parameters: int) -> None:
        answer = await self.control(json.dumps({"target": target, "fault": fault, **parameters}).encode())
        assert answer.http_code == 200, answer.document

    async def read(self, endpoint: str, timeout_s: float = 15) -> Reading:
        """What Lookout reads of an endpoint, such as ``1/a``."""
        chain_id = int(endpoint.partition("/")[0])
        async with open_session(timeout_s) as session:
            return await EvmEndpoint("", chain_id, f"{self.base}/rpc/{endpoint}").read(session, self.clock.now)

    async def height(self, endpoint: str) -> int:
        return (await self.read(endpoint)).height

    async def probe(self, target: str, timeout_s: float = 15) -> Found:
        """What Lookout finds at one of ``TARGETS``."""
        table = tables_at(self.base)[target]
        (source,) = protocol_of(table).sources("a service", table)
        async with open_session(timeout_s) as session:
            (found,) = (await observe(source, session, self.clock.now)).values()
        return found


def tables_at(base: str) -> dict[str, SourceTable]:
    """Settings for all sources that answer for chain 1 or for no chain, by the target of their faults."""
    return {
        "squid/1": KindTable(1, "squid", f"{base}/squid/1/graphql"),
        "hosted/1": KindTable(1, "squid", f"{base}/hosted/1/graphql"),
        "json/1": JsonTable(1, "json", f"{base}/json/1", pointer="/status/lastBlock"),
        "ppoi/1": PpoiTable(f"{base}/ppoi", REQUIRED_LIST, (1,)),
        "waku/peers": MessagingTable(f"{base}/waku"),
        "waku/messages": BroadcastersTable(f"{base}/waku", (1,), seen_s=300),
    }


TARGETS = tuple(tables_at(""))


@asynccontextmanager
async def simulation(world: World | None = None, at: int = NOON) -> AsyncIterator[Client]:
    clock = SetClock()
    clock.wall = at
    async with (
        serving("127.0.0.1", 0, world or launch_world(None, at), clock.now) as (host, port),
        aiohttp.ClientSession() as session,
    ):
        yield Client(session, f"http://{host}:{port}", clock)


@contextmanager
def a_simulation(folder: Path) -> Iterator[str]:
    """Run ``lookout sim`` during the block; gives its address."""
    with subprocess.Popen(
        [LOOKOUT, "sim", "--listen", "127.0.0.1:0"], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            where = re.match(r"simulated upstreams on (http://127\.0\.0\.1:[1-9][0-9]*)/ ", process.stdout.readline())
            assert where is not None
            yield where[1]
        finally:
            process.terminate()
        assert process.wait(TIME_S) == 0
