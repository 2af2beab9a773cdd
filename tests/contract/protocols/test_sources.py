"""Sources and endpoints from settings, and the names that they are looked up by."""

import pytest

from lookout.config.settings import Settings, upstreams_of
from lookout.config.tables import ChainTable, RpcEndpoint


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
