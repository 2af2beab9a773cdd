"""The simulated chains' transactions: logs of endpoints, and the lists of every kind of indexer."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_key

from lookout.core.looks import Listed, Log
from lookout.demo.sim.chain import CONTRACT, EVENT
from lookout.protocols.client.failure import ProbeFailed, asks_for_less
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EventFilter, EvmEndpoint
from lookout.protocols.generic import JsonTable
from lookout.protocols.lists import CompleteTable, ListTable, TransactionList, list_request, parse_list
from lookout.protocols.ponder import PonderTable
from lookout.protocols.subgraph import SubgraphTable
from tests.integration.sim_client import Client, simulation

EVENTS = EventFilter((CONTRACT,), (EVENT,))
OTHER_EVENTS = EventFilter((CONTRACT,), ("0x" + "11" * 32,))


def complete(where: str, pointer: str = "/transactions/*/transactionHash", **keys: Any) -> CompleteTable:
    query = f"query($from: Int!, $to: Int!) {{ transactions(where: {{{where}}}, limit: 1000) {{ transactionHash }} }}"
    return CompleteTable(
        contracts=EVENTS.contracts, events=EVENTS.events, first_block=0, query=query, pointer=pointer, **keys
    )


BY_NUMBER = "blockNumber_gte: $from, blockNumber_lte: $to"
TABLES: dict[str, ListTable] = {
    "squid/1": ListTable(1, "squid", "/squid/1/graphql", complete=complete(BY_NUMBER)),
    "hosted/1": ListTable(1, "squid", "/hosted/1/graphql", complete=complete(BY_NUMBER)),
    "subgraph/1": SubgraphTable(1, "subgraph", "/subgraph/1", complete=complete(BY_NUMBER)),
    "ponder/1": PonderTable(
        1,
        "ponder",
        "/ponder/status",
        complete=replace_key(
            complete(""),
            pointer="/transactions/items/*/transactionHash",
            query="query($from: BigInt!, $to: BigInt!) { transactions(where: {chainId: 1, blockNumber_gte: $from,"
            " blockNumber_lte: $to}, limit: 1000) { items { transactionHash } } }",
        ),
    ),
    "envio/1": ListTable(
        1,
        "envio",
        "/envio/v1/graphql",
        complete=complete("chainId: {_eq: 1}, blockNumber: {_gte: $from, _lte: $to}"),
    ),
    "json/1": JsonTable(
        1,
        "json",
        "/json/1",
        pointer="/status/lastBlock",
        complete=replace_key(complete(""), query="", url="/json/1/transactions/{from}/{to}"),
    ),
}


def list_at(base: str, target: str) -> TransactionList:
    of = TABLES[target].transaction_list()
    assert of is not None
    return replace(of, url=base + of.url)


async def listed(client: Client, target: str, first: int, last: int) -> Listed:
    of = list_at(client.base, target)
    async with open_session(15) as session:
        return parse_list(await session.fetch(list_request(of, first, last)), of)


def an_endpoint(client: Client, name: str = "a") -> EvmEndpoint:
    return EvmEndpoint(name, 1, f"{client.base}/rpc/1/{name}")


async def logs(client: Client, name: str, first: int, last: int, of: EventFilter = EVENTS) -> frozenset[Log]:
    async with open_session(15) as session:
        return await an_endpoint(client, name).read_logs(of, first, last, session, client.clock.now)


def transactions_of(found: frozenset[Log]) -> frozenset[str]:
    return frozenset(log.transaction for log in found)


@pytest.mark.clause("S17")
@pytest.mark.parametrize("target", TABLES)
async def test_a_list_has_the_transactions_of_the_chains_logs_until_a_fault_changes_it(target: str) -> None:
    async with simulation() as client:
        position = await client.height("1/a") - 50
        first = position - 299
        of_chain = await logs(client, "a", first, position)
        whole = await listed(client, target, first, position)
        assert whole == Listed(Counter(log.transaction for log in of_chain), 40)
        assert (len(of_chain), len(whole.entries)) == (40, 30)

        await client.order(target, "hole", blocks=145)
        with_hole = await listed(client, target, first, position)
        assert with_hole.entries.items() < whole.entries.items()
        assert len(whole.entries.keys() - with_hole.entries.keys()) == 10

        await client.order(target, "extra", transactions=100)
        with_more = await listed(client, target, first, position)
        assert with_more.entries.items() > whole.entries.items()
        assert len(with_more.entries) == len(whole.entries) + 55

        await client.order(target, None)
        assert await listed(client, target, first, position) == whole


@pytest.mark.clause("S17")
@pytest.mark.parametrize("target", TABLES)
async def test_a_list_is_cut_at_1000_entries(target: str) -> None:
    async with simulation() as client:
        position = await client.height("1/a") - 50
        assert (await listed(client, target, position - 10_000, position)).length == 1_000


@pytest.mark.clause("S17")
async def test_endpoints_have_the_same_logs_but_for_those_that_one_drops() -> None:
    async with simulation() as client:
        last = await client.height("1/a") - 50
        of_a, of_b = await logs(client, "a", last - 299, last), await logs(client, "b", last - 299, last)
        assert of_a == of_b
        assert await logs(client, "a", last - 299, last, OTHER_EVENTS) == frozenset()
        await client.order("rpc/1/b", "drop-logs", oneIn=3)
        with_gaps = await logs(client, "b", last - 299, last)
        assert with_gaps < of_a
        assert len({log.block for log in of_a - with_gaps}) == 10


@pytest.mark.clause("S17")
async def test_a_range_that_an_endpoint_refuses_can_be_asked_for_in_parts() -> None:
    async with simulation() as client:
        last = await client.height("1/a") - 50
        await client.order("rpc/1/a", "narrow", blocks=100)
        with pytest.raises(ProbeFailed) as caught:
            await logs(client, "a", last - 100, last)
        assert (caught.value.reason, asks_for_less(caught.value)) == ("rate_limited: -32005", True)
        parts = await logs(client, "a", last - 100, last - 50) | await logs(client, "a", last - 49, last)
        assert parts == await logs(client, "b", last - 100, last)
        with pytest.raises(ProbeFailed) as caught:
            await logs(client, "b", 0, last)
        assert asks_for_less(caught.value)
