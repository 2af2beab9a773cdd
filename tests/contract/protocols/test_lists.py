"""The indexer's side of a comparison: how its list of transactions is asked for and understood, and what makes a range
smaller."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace as replace_key

from lookout.config.file import read_config
from lookout.core.model import Check, Listed
from lookout.features.lists.readers import choose_lists
from lookout.protocols.answers import MOST_VALUES, decode, result_of
from lookout.protocols.client.failure import ProbeFailed, asks_for_less, not_understood, too_long
from lookout.protocols.client.request import MIB
from lookout.protocols.client.session import open_session
from lookout.protocols.lists import ListTable, TransactionList, list_request, parse_list
from lookout.protocols.ponder import PonderTable
from tests.contract.protocols.recorded import COMMITMENTS, OTHER_TRANSACTION, TRANSACTION, recorded
from tests.contract.protocols.upstreams import Asked, Reply, answering

BOTH = frozenset({TRANSACTION, OTHER_TRANSACTION})
CONFIG = Path(__file__).parent.parent / "config" / "good" / "lists-of-transactions.toml"


def at(pointer: str, query: str = COMMITMENTS.table.query) -> TransactionList:
    return replace(COMMITMENTS, table=replace_key(COMMITMENTS.table, pointer=pointer, query=query))


@pytest.mark.clause("S17")
def test_a_recorded_list_has_two_transactions_in_three_entries() -> None:
    assert parse_list(recorded("squid-commitments.json"), COMMITMENTS) == Listed(Counter([*BOTH, TRANSACTION]), 3)


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("pointer", "data", "entries"),
    [
        pytest.param("/hashes/*", {"hashes": [*BOTH]}, 2, id="a list of hashes"),
        pytest.param(
            "/commitments/items/*/hash", {"commitments": {"items": [{"hash": each} for each in BOTH]}}, 2, id="Ponder's"
        ),
        pytest.param(
            "/blocks/*/transactions/*/hash",
            {"blocks": [{"transactions": [{"hash": each}] * 3} for each in BOTH]},
            3,
            id="lists in a list, of which the longest counts",
        ),
        pytest.param(
            "/blocks/*/hashes/*",
            {"blocks": [{"hashes": [each]} for each in BOTH] + [{"hashes": []}] * 5},
            7,
            id="a list of lists that is longer than they are",
        ),
        pytest.param("/a~1b/0/*", {"a/b": [[*BOTH], ["unread"]]}, 2, id="an escape and an index"),
    ],
)
def test_a_star_stands_for_every_entry_of_a_list(pointer: str, data: Any, entries: int) -> None:
    found = parse_list(msgspec.json.encode({"data": data}), at(pointer))
    assert (frozenset(found.entries), found.length) == (BOTH, entries)
    assert parse_list(msgspec.json.encode(data), at(pointer, query="")) == found


NOTHING_THERE = f"pointer_missing: {COMMITMENTS.table.pointer}"


@pytest.mark.clause("S17")
def test_a_list_without_entries_is_an_answer() -> None:
    assert parse_list(b'{"data":{"commitments":[]}}', COMMITMENTS) == Listed({}, 0)


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b'{"data":{}}', NOTHING_THERE, id="no such field"),
        pytest.param(
            b'{"data":{"commitments":null}}', "not_understood: no list of transactions", id="null for the list"
        ),
        pytest.param(
            b'{"data":{"commitments":{}}}', "not_understood: no list of transactions", id="a table in its place"
        ),
        pytest.param(b'{"data":{"commitments":[{}]}}', NOTHING_THERE, id="an entry without a hash"),
        pytest.param(
            b'{"data":{"commitments":[{"transactionHash":null}]}}',
            "not_understood: a transaction's hash",
            id="null for a hash",
        ),
        pytest.param(
            b'{"data":{"commitments":[{"transactionHash":"0x%b"}]}}' % (b"1" * 63),
            "not_understood: a transaction's hash",
            id="a hash that is too short",
        ),
        pytest.param(
            b'{"data":{"commitments":[{"transactionHash":"%b"}]}}' % (b"1" * 66),
            "not_understood: a transaction's hash",
            id="a hash without 0x",
        ),
        pytest.param(b'{"data":null}', "not_understood: no GraphQL answer", id="null for the data"),
        pytest.param(
            b'{"errors":[{"message":"secret"}],"data":{"commitments":[]}}', "graphql_errors", id="errors beside data"
        ),
        pytest.param(b"<html>", "not_json: HTML or XML", id="a web page"),
    ],
)
def test_what_is_no_list_of_transactions_fails(body: bytes, reason: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        parse_list(body, COMMITMENTS)
    assert caught.value.reason == reason


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("declared", "variables"),
    [
        pytest.param("$from: Int!, $to: Int!", {"from": 5, "to": 9}, id="as numbers where they are of type Int"),
        pytest.param("$from:Int,$to:Int", {"from": 5, "to": 9}, id="also if they may be null"),
        pytest.param("$from: BigInt!, $to: BigInt!", {"from": "5", "to": "9"}, id="as text where they are BigInt"),
        pytest.param("$to: numeric!, $from: Int!", {"from": 5, "to": "9"}, id="each by its own type"),
    ],
)
def test_the_ends_of_a_range_are_sent(declared: str, variables: dict[str, Any]) -> None:
    query = f"query({declared}) {{ list(from: $from, to: $to) {{ hash }} }}"
    request = list_request(at("/*", query), 5, 9)
    assert request.method == "POST"
    assert msgspec.json.decode(request.body or b"") == {"query": query, "variables": variables}


@pytest.mark.clause("S17")
async def test_lists_are_asked_where_and_as_the_configuration_says() -> None:
    def answer(asked: Asked) -> Reply:
        assert asked.headers["x-api-key"] == "K"
        if asked.method == "GET":
            assert asked.target == "/list?from=5&to=9"
            return 200, msgspec.json.encode([*BOTH])
        assert asked.target == "/subgraphs/id/Qm1"
        assert msgspec.json.decode(asked.body)["variables"] == {"from": "5", "to": "9"}
        return 200, msgspec.json.encode({"data": {"transactions": [{"hash": TRANSACTION}]}})

    lists = choose_lists(read_config(CONFIG, {}).sources_by_check(), ListTable.transaction_list)
    assert list(lists) == [Check("indexer", 1), Check("hosted-indexer", 1)]
    of_indexer, of_hosted = lists.values()
    assert tuple(map(str.lower, of_indexer.table.contracts)) == ("0x" + "aa" * 20,)
    assert tuple(map(str.lower, of_indexer.table.events)) == ("0x" + "ee" * 32,)
    async with answering(answer) as (url, _), open_session(20) as session:
        for of, found in ((of_indexer, Listed({TRANSACTION: 1}, 1)), (of_hosted, Listed(Counter(BOTH), 2))):
            here = replace(
                of,
                url=url + of.url.partition("127.0.0.1")[2].lstrip(":0123456789"),
                access=replace_key(of.access, headers={"X-Api-Key": "K"}),
            )
            assert parse_list(await session.fetch(list_request(here, 5, 9)), here) == found
            assert "127.0.0.1" not in repr(here)


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("url", "graphql"),
    [
        pytest.param("http://h", "http://h/graphql", id="the server"),
        pytest.param("http://h/status", "http://h/graphql", id="its status"),
        pytest.param("http://status/status/?key=1", "http://status/graphql?key=1", id="its status, with a key"),
        pytest.param("http://h/status/of/a", "http://h/status/of/a/graphql", id="a server below a path"),
    ],
)
def test_a_ponder_server_has_its_list_beside_its_status(url: str, graphql: str) -> None:
    for complete, expected in (
        (COMMITMENTS.table, graphql),
        (replace_key(COMMITMENTS.table, url="http://other"), "http://other"),
    ):
        of = PonderTable(1, "ponder", url, complete=complete).transaction_list()
        assert of is not None
        assert of.url == expected


def jsonrpc(code: object, message: str) -> ProbeFailed:
    """How an error of a node or a provider is understood."""
    error = msgspec.json.encode({"jsonrpc": "2.0", "id": 3, "error": {"code": code, "message": message}})
    with pytest.raises(ProbeFailed) as caught:
        result_of(error, 3)
    return caught.value


def too_many_values() -> ProbeFailed:
    with pytest.raises(ProbeFailed) as caught:
        decode(b"[" + b"0," * MOST_VALUES + b"0]")
    return caught.value


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(jsonrpc(-32005, "query returned more than 10000 results"), id="Infura: too many results"),
        pytest.param(jsonrpc(-32005, "limit exceeded"), id="BNB Smart Chain's own nodes: a wide range"),
        pytest.param(jsonrpc(-32602, "range 1000000 exceeds limit of 10000"), id="Infura: a wide range"),
        pytest.param(jsonrpc(-32602, "Log response size exceeded."), id="Alchemy: too many results"),
        pytest.param(jsonrpc(-32600, "up to a 500 block range"), id="Alchemy: a wide range"),
        pytest.param(
            jsonrpc(-32000, "block range is larger than max block range"), id="a node with a limit of its own"
        ),
        pytest.param(jsonrpc(-32600, "block range is too wide"), id="Ankr: a wide range"),
        pytest.param(jsonrpc(-32614, "eth_getLogs is limited to a 10,000 range"), id="QuickNode: a wide range"),
        pytest.param(jsonrpc(-32012, "Range too large"), id="Goldsky: a wide range"),
        pytest.param(jsonrpc("?", "too wide"), id="an error whose code is none"),
        pytest.param(ProbeFailed("http_status", code=413), id="QuickNode's HTTP code of a wide range"),
        pytest.param(ProbeFailed("http_status", code=400), id="Alchemy's HTTP code of a wide range"),
        pytest.param(ProbeFailed("http_status", code=504), id="a gateway that waited too long"),
        pytest.param(too_long(MIB), id="an answer of too many bytes"),
        pytest.param(too_many_values(), id="an answer of too many values"),
        pytest.param(ProbeFailed("timeout", "first byte"), id="no answer in time"),
        pytest.param(ProbeFailed("timeout", "body"), id="half an answer in time"),
        pytest.param(ProbeFailed("graphql_errors"), id="a squid whose answer would be too long"),
    ],
)
def test_a_failure_that_a_smaller_range_may_help_against(failure: ProbeFailed) -> None:
    assert asks_for_less(failure)


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(jsonrpc(429, "too many requests"), id="a rate limit in the body"),
        pytest.param(jsonrpc(-32601, "the method eth_getLogs is not available"), id="a node without the method"),
        pytest.param(ProbeFailed("rate_limited", code=429), id="a rate limit"),
        pytest.param(ProbeFailed("http_status", code=401), id="a missing key"),
        pytest.param(ProbeFailed("http_status", code=403), id="a refused key"),
        pytest.param(ProbeFailed("http_status", code=500), id="an error of the server"),
        pytest.param(ProbeFailed("http_status", code=503), id="a server that is down"),
        pytest.param(ProbeFailed("redirect", code=302), id="a redirect"),
        pytest.param(ProbeFailed("proxy", "refused with 400"), id="a proxy that refuses"),
        pytest.param(ProbeFailed("wrong_chain", "56 instead of 1"), id="another chain"),
        pytest.param(ProbeFailed("timeout", "connect"), id="no connection in time"),
        *(
            pytest.param(ProbeFailed(cause), id=cause)
            for cause in ("refused", "reset", "closed", "dns", "tls", "network", "not_json", "broken_off", "bad_http")
        ),
        pytest.param(ProbeFailed("pointer_missing"), id="nothing at the pointer"),
        pytest.param(not_understood("a log of another block"), id="an answer that was not understood"),
    ],
)
def test_a_failure_that_no_smaller_range_helps_against(failure: ProbeFailed) -> None:
    assert not asks_for_less(failure)
