"""A simulation for tests: a client of its routes, and Lookout's own sources, whose parsers recorded answers prove."""

import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yarl

from lookout.core.heads import Reading
from lookout.core.model import Found
from lookout.demo.sim.indexers import deployment
from lookout.demo.sim.server import BARE, UpstreamFront, serving
from lookout.demo.sim.world import World, launch_world
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, BroadcastersTable
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.generic import HttpTable, JsonRpcTable, JsonTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from lookout.protocols.registry import protocol_of
from lookout.protocols.source import observe
from lookout.protocols.subgraph import SubgraphTable
from tests.builders import NOON
from tests.commands import LOOKOUT, TIME_S

PATIENCE_S = 0.4  # how long a test waits for an answer that never comes

CHAINS = (1, 42161, 137, 56, 11155111)
REQUIRED_LIST = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"

LATEST = {"jsonrpc": "2.0", "id": 7, "method": "eth_getBlockByNumber", "params": ["latest", False]}


class Answer(NamedTuple):
    """What came back."""

    http_code: int
    content_type: str
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Clock:
    """The world's time, which only a test moves."""

    def __init__(self, at: int = NOON) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def pass_s(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


class Client:
    """Asks a running simulation."""

    def __init__(self, session: aiohttp.ClientSession, base: str, clock: Clock) -> None:
        self.session = session
        self.base = base
        self.clock = clock

    def url(self, path: str) -> yarl.URL:
        return yarl.URL(self.base + path, encoded=True)

    async def get(self, path: str) -> Answer:
        async with self.session.get(self.url(path), allow_redirects=False) as response:
            return Answer(response.status, response.content_type, await response.read())

    async def post(self, path: str, document: object) -> Answer:
        return await self.post_bytes(path, json.dumps(document).encode())

    async def post_bytes(self, path: str, body: bytes) -> Answer:
        async with self.session.post(self.url(path), data=body, allow_redirects=False) as response:
            return Answer(response.status, response.content_type, await response.read())

    async def store(self, **query: str | int) -> Any:
        asked: dict[str, str | int] = {"includeData": "true", "pubsubTopic": "/waku/2/rs/5/1", "pageSize": 100}
        asked |= query
        return (await self.get(f"/waku/store/v3/messages?{yarl.URL.build(query=asked).raw_query_string}")).document

    async def order(self, target: str, fault: str | None, **parameters: int) -> None:
        answer = await self.post("/control", {"target": target, "fault": fault, **parameters})
        assert answer.http_code == 200, answer.body

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
        (source,) = protocol_of(table).sources("a service", table, NOTHING_SEEN)
        async with open_session(timeout_s) as session:
            (found,) = (await observe(source, session, self.clock.now)).values()
        return found


def tables_at(base: str) -> dict[str, SourceTable]:
    """Settings for everything that answers for chain 1, and for what is of no chain, by the target under which a fault
    is ordered for it."""
    return {
        "squid/1": KindTable(1, "squid", f"{base}/squid/1/graphql"),
        "hosted/1": KindTable(1, "squid", f"{base}/hosted/1/graphql"),
        "subgraph/1": SubgraphTable(1, "subgraph", f"{base}/subgraph/1"),
        "index-node/1": SubgraphTable(1, "subgraph", f"{base}/index-node/graphql", deployment=deployment(1)),
        "ponder/1": KindTable(1, "ponder", f"{base}/ponder"),
        "envio/1": KindTable(1, "envio", f"{base}/envio/v1/graphql"),
        "json/1": JsonTable(1, "json", f"{base}/json/1", pointer="/status/lastBlock"),
        "provider/1": KindTable(1, "evm", f"{base}/provider/1"),
        "bundler/1": JsonRpcTable(1, "jsonrpc", f"{base}/bundler/1", method="eth_supportedEntryPoints", pointer="/0"),
        "relayer": HttpTable(None, "http", f"{base}/relayer", pointer="/status", expect="ok"),
        "ppoi/1": PpoiTable(f"{base}/ppoi", REQUIRED_LIST, (1,)),
        "waku/peers": MessagingTable(f"{base}/waku"),
        "waku/messages": BroadcastersTable(f"{base}/waku", (1,), seen_s=300),
    }


TARGETS = tuple(tables_at(""))


@asynccontextmanager
async def simulation(world: World | None = None, at: int = NOON, front: UpstreamFront = BARE) -> AsyncIterator[Client]:
    """A simulation meanwhile, and a client of it."""
    clock = Clock(at)
    async with (
        serving("127.0.0.1", 0, world or launch_world(None, at), clock.now, front) as (host, port),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        yield Client(session, f"{front.scheme}://{host}:{port}", clock)


@contextmanager
def a_simulation(folder: Path, *options: str) -> Iterator[str]:
    """``lookout sim`` meanwhile; gives its address."""
    with subprocess.Popen(
        [LOOKOUT, "sim", "--listen", "127.0.0.1:0", *options], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            where = re.match(r"simulated upstreams on (https?://127\.0\.0\.1:[1-9][0-9]*)/ ", process.stdout.readline())
            assert where is not None
            yield where[1]
        finally:
            process.terminate()
        assert process.wait(TIME_S) == 0
