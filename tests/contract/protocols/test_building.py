"""Sources from settings: each asks in its own protocol, and a day of them is never opened by building."""

import asyncio
import json

import msgspec
import pytest

from lookout.config.settings import Settings
from lookout.config.tables import Chain
from lookout.core.model import Blocks, Check, Found, Indexes, Members, Peers
from lookout.monitor.sources import seen_by, sources_of
from lookout.protocols.broadcasters.seen import NOTHING_SEEN
from lookout.protocols.broadcasters.table import BroadcastersTable
from lookout.protocols.client.resolver import ThreadPerLookup
from lookout.protocols.client.session import open_session
from lookout.protocols.json_pointer import JsonTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from lookout.protocols.source import observe
from lookout.protocols.subgraph import SubgraphTable
from lookout.protocols.tables import KindTable
from tests.builders import NOON
from tests.contract.protocols.announcers import a_message, a_page
from tests.contract.protocols.recorded import REQUIRED_LIST, recorded
from tests.contract.protocols.upstreams import Asked, Reply, answering


def everything(url: str) -> Settings:
    return Settings(
        chains=(
            Chain(1, "Ethereum", 12, (f"{url}/rpc/a", f"{url}/rpc/b")),
            Chain(42161, "Arbitrum", 0.25, (f"{url}/rpc/c",)),
        ),
        sources={
            "ppoi": (PpoiTable(f"{url}/ppoi", REQUIRED_LIST, (1,)),),
            "indexer": (
                KindTable(1, "squid", f"{url}/squid", 5, headers={"Authorization": "Bearer key"}),
                SubgraphTable(5, "subgraph", f"{url}/subgraph", 5),
                KindTable(31337, "ponder", f"{url}/ponder", 5),
                JsonTable(7, "json", f"{url}/own", 5, pointer="/status/lastBlock"),
            ),
            "hosted-indexer": (SubgraphTable(1, "subgraph", f"{url}/index-node", 5, deployment="Qm1"),),
            "messaging": (MessagingTable(f"{url}/waku"),),
            "broadcasters": (BroadcastersTable(f"{url}/waku", (1,)),),
        },
    )


def world(asked: Asked) -> Reply:
    """All the upstreams of a small world; each answers its own protocol only."""
    question = msgspec.json.decode(asked.body) if asked.body else {}
    match asked.method, asked.target.partition("?")[0]:
        case "POST", "/ppoi" if question["params"] == {}:
            return 200, recorded("ppoi-node-status.json")
        case "POST", "/squid" if "squidStatus" in question["query"] and asked.headers["authorization"] == "Bearer key":
            return 200, recorded("squid-status.json")
        case "POST", "/subgraph" if "_meta" in question["query"]:
            return 200, recorded("subgraph-meta.json")
        case "POST", "/index-node" if '["Qm1"]' in question["query"]:
            return 200, recorded("subgraph-indexing-status.json")
        case "GET", "/ponder/status":
            return 200, recorded("ponder-status.json")
        case "GET", "/own":
            return 200, b'{"status":{"lastBlock":"0x10"}}'
        case "GET", "/waku/admin/v1/peers/connected":
            return 200, recorded("waku-peers-connected.json")
        case "GET", "/waku/store/v3/messages":
            return 200, a_page(a_message(1), a_message(2, wallets=0))
        case "POST", "/rpc/c" if question["method"] == "eth_chainId":
            return 200, recorded("evm-chain-id.json")
        case "POST", "/rpc/c":
            return 200, recorded("evm-block.json")
        case _:
            return 400, json.dumps(asked.target).encode()


@pytest.mark.clause("M9")
async def test_all_five_services_are_spoken_to_in_their_own_protocols() -> None:
    found: dict[Check, Found] = {}
    async with answering(world) as (url, _), open_session(5) as session:
        for source in sources_of(everything(url)).sources:
            answers = await observe(source, session, lambda: NOON)
            assert tuple(answers) == source.checks
            found |= answers
    assert found == {
        Check("messaging", None): Peers(2),
        Check("ppoi", 1): Indexes(1230, 1234),
        Check("broadcasters", 1): Members(1, 2),
        Check("indexer", 1): Blocks(56),
        Check("indexer", 5): Blocks(19_000_000),
        Check("indexer", 7): Blocks(16),
        Check("indexer", 31337): Blocks(317),
        Check("hosted-indexer", 1): Blocks(19_000_001),
    }


@pytest.mark.clause("M8")
async def test_every_endpoint_of_every_chain_is_read_by_itself() -> None:
    async with answering(world) as (url, _), open_session(5) as session:
        endpoints = sources_of(everything(url)).endpoints
        reading = await endpoints[2].read(session, lambda: NOON)
    assert [f"{each.name}: {each.chain_id}" for each in endpoints] == [
        "rpc 1 of Ethereum: 1",
        "rpc 2 of Ethereum: 1",
        "rpc 1 of Arbitrum: 42161",
    ]
    assert reading.height == 0x14E2A3F


@pytest.mark.clause("M7")
async def test_what_the_broadcasters_source_saw_is_given_to_the_next() -> None:
    async with answering(world) as (url, _), open_session(5) as session:
        sources = sources_of(everything(url)).sources
        assert seen_by(sources) == {"broadcasters": NOTHING_SEEN}
        for source in sources:
            await observe(source, session, lambda: NOON)
        seen = seen_by(sources)
        assert len(seen["broadcasters"].sightings) == 2
        assert seen_by(sources_of(everything(url), seen).sources) == seen


def test_settings_without_sources_have_none() -> None:
    assert sources_of(Settings()) == ((), ())
    assert seen_by(()) == {"broadcasters": NOTHING_SEEN}


async def test_a_name_is_looked_up_as_the_system_does() -> None:
    found = await ThreadPerLookup().resolve("localhost", 80)
    assert {"127.0.0.1", "::1"} >= {each["host"] for each in found} > set()
    assert {each["port"] for each in found} == {80}


async def test_a_lookup_that_outlives_its_loop_harms_nobody() -> None:
    lookup = asyncio.create_task(ThreadPerLookup().resolve("nobody.invalid", 80))
    await asyncio.sleep(0)
    lookup.cancel()
