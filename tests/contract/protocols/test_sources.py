"""Sources and endpoints from settings, and the names that they are looked up by."""

import asyncio

import pytest

from lookout.config.settings import Settings, upstreams_of
from lookout.config.tables import ChainTable, RpcEndpoint
from lookout.protocols.client.session import ThreadPerLookup


@pytest.mark.clause("M8")
def test_every_endpoint_of_every_chain_is_one_of_its_own() -> None:
    chains = (
        ChainTable(id=1, name="Ethereum", block_time_s=12, rpc=(RpcEndpoint("http://a"), RpcEndpoint("http://b"))),
        ChainTable(id=42161, name="Arbitrum", block_time_s=0.25, rpc=(RpcEndpoint("http://c"),)),
    )
    assert [f"{each.name}: {each.chain_id}" for each in upstreams_of(Settings(chains=chains)).endpoints] == [
        "rpc 1 of Ethereum: 1",
        "rpc 2 of Ethereum: 1",
        "rpc 1 of Arbitrum: 42161",
    ]


async def test_a_name_is_looked_up_as_the_system_does() -> None:
    found = await ThreadPerLookup().resolve("localhost", 80)
    assert {"127.0.0.1", "::1"} >= {each["host"] for each in found} > set()
    assert {each["port"] for each in found} == {80}


async def test_a_lookup_that_outlives_its_loop_harms_nobody() -> None:
    lookup = asyncio.create_task(ThreadPerLookup().resolve("nobody.invalid", 80))
    await asyncio.sleep(0)
    lookup.cancel()
