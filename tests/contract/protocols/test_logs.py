"""The chain's side of a comparison: logs."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lookout.core.model import Log
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import MIB, AccessTable
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EvmEndpoint, parse_logs
from tests.builders import MINUTE, NOON
from tests.contract.protocols.recorded import (
    CONTRACTS,
    EVENTS,
    FIRST,
    LAST,
    OTHER_TRANSACTION,
    TRANSACTION,
    recorded,
)
from tests.contract.protocols.upstreams import Asked, Reply, answering

BLOCK_HASH = "0x6b882b10f13d669aa1fdb9a1ee57b361f96e24f6b0b2cacbacabdcb204901439"
OTHER_HASH = "0x09ec018fd714d4ce3f7b19cdd08f95407cff31d66a3378ef2787298d69963315"
LOGS = frozenset(
    {
        Log(FIRST, BLOCK_HASH, TRANSACTION, 0x14),
        Log(FIRST, BLOCK_HASH, TRANSACTION, 0x15),
        Log(LAST, OTHER_HASH, OTHER_TRANSACTION, 0),
    }
)
HEAD = b'{"jsonrpc":"2.0","id":2,"result":{"number":"0x10","timestamp":"0x20"}}'


def changed(name: str, change: Callable[[Any], object]) -> bytes:
    """A recorded answer, of whose result something else was made."""
    document = msgspec.json.decode(recorded(name))
    change(document["result"])
    return msgspec.json.encode(document)


@pytest.mark.clause("S17")
def test_recorded_logs_are_read_whatever_the_case_of_their_letters() -> None:
    assert parse_logs(recorded("evm-logs.json"), FIRST, LAST) == LOGS


@pytest.mark.clause("S17")
def test_no_logs_are_an_answer() -> None:
    assert parse_logs(b'{"jsonrpc":"2.0","id":3,"result":[]}', FIRST, LAST) == frozenset()


@pytest.mark.clause("S17")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(lambda logs: logs[0].update(blockNumber="0x1"), "a log of another block", id="an earlier block"),
        pytest.param(
            lambda logs: logs[2].update(blockNumber="0x14e2a45"), "a log of another block", id="a later block"
        ),
        pytest.param(lambda logs: logs[0].update(blockNumber=None), "a log's block number", id="a pending log"),
        pytest.param(lambda logs: logs[0].update(blockHash=None), "a block's hash", id="no block hash"),
        pytest.param(lambda logs: logs[0].update(transactionHash="0x"), "a transaction's hash", id="an empty hash"),
        pytest.param(
            lambda logs: logs[0].update(transactionHash="0x" + "g1" * 32), "a transaction's hash", id="no hexadecimal"
        ),
        pytest.param(lambda logs: logs[0].update(logIndex=20), "a log's index", id="an index that is no hex"),
        pytest.param(lambda logs: logs.append(None), "no log", id="null among the logs"),
    ],
)
def test_an_answer_with_a_log_that_was_not_asked_for_is_not_understood(
    change: Callable[[Any], object], reason: str
) -> None:
    with pytest.raises(ProbeFailed) as caught:
        parse_logs(changed("evm-logs.json", change), FIRST, LAST)
    assert caught.value.reason == f"not_understood: {reason}"


@pytest.mark.clause("S17")
def test_null_is_not_an_empty_list_of_logs() -> None:
    with pytest.raises(ProbeFailed, match="not_understood: no logs"):
        parse_logs(b'{"jsonrpc":"2.0","id":3,"result":null}', FIRST, LAST)


class Node:
    """A node of chain 1 with the recorded logs, until a test changes it."""

    def __init__(self) -> None:
        self.chain_id = "0x1"
        self.logs: Callable[[], Reply] = lambda: (200, recorded("evm-logs.json"))
        self.asked: list[tuple[str, Any]] = []

    def __call__(self, asked: Asked) -> Reply:
        assert asked.headers["x-api-key"] == "K"
        call = msgspec.json.decode(asked.body)
        self.asked.append((call["method"], call["params"]))
        match call["method"]:
            case "eth_chainId":
                return 200, msgspec.json.encode({"jsonrpc": "2.0", "id": call["id"], "result": self.chain_id})
            case "eth_getLogs":
                return self.logs()
            case _:
                return 200, HEAD

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]


def an_endpoint(url: str) -> EvmEndpoint:
    return EvmEndpoint("rpc 1 of Ethereum", 1, url, AccessTable(headers={"X-Api-Key": "K"}))


@pytest.mark.clause("S17", "M8")
async def test_an_endpoint_is_asked_for_logs_after_its_chain_id_which_reading_heads_shares() -> None:
    node = Node()
    async with answering(node) as (url, _), open_session(20) as session:
        endpoint = an_endpoint(url)
        await endpoint.read(session, lambda: NOON)
        assert await endpoint.read_logs(CONTRACTS, EVENTS, FIRST, LAST, session, lambda: NOON) == LOGS
        await endpoint.read(session, lambda: NOON + MINUTE)
    assert node.asked == [
        ("eth_chainId", []),
        ("eth_getBlockByNumber", ["latest", False]),
        (
            "eth_getLogs",
            [
                {
                    "address": [*CONTRACTS],
                    "topics": [[*EVENTS]],
                    "fromBlock": "0x14e2a3f",
                    "toBlock": "0x14e2a44",
                }
            ],
        ),
        ("eth_chainId", []),
        ("eth_getBlockByNumber", ["latest", False]),
    ]


@pytest.mark.clause("S17", "M8")
async def test_a_head_that_is_read_while_logs_are_awaited_costs_no_further_chain_id() -> None:
    node = Node()
    waiting = asyncio.Event()

    def wait_s(asked: Asked) -> float:
        if b"eth_getLogs" not in asked.body:
            return 0
        waiting.set()
        return 0.3

    async with answering(node, after_s=wait_s) as (url, _), open_session(20) as session:
        endpoint = an_endpoint(url)
        reading = asyncio.ensure_future(endpoint.read_logs(CONTRACTS, EVENTS, FIRST, LAST, session, lambda: NOON))
        await waiting.wait()
        await endpoint.read(session, lambda: NOON)
        assert await reading == LOGS
        await endpoint.read(session, lambda: NOON)
    assert sorted(node.methods) == ["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByNumber", "eth_getLogs"]


@pytest.mark.clause("S17", "S19", "M8")
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param((200, b'{"jsonrpc":"2.0","id":3,"error":{"code":-32005}}'), id="an error of JSON-RPC"),
        pytest.param((413, b""), id="another HTTP code"),
        pytest.param((200, b" " * (MIB + 1)), id="an answer that is too large"),
    ],
)
async def test_logs_that_were_refused_cost_no_further_chain_id(reply: Reply) -> None:
    node = Node()
    async with answering(node) as (url, _), open_session(20) as session:
        endpoint = an_endpoint(url)
        node.logs = lambda: reply
        with pytest.raises(ProbeFailed):
            await endpoint.read_logs(CONTRACTS, EVENTS, FIRST, LAST, session, lambda: NOON)
        await endpoint.read(session, lambda: NOON)
    assert node.methods == ["eth_chainId", "eth_getLogs", "eth_getBlockByNumber"]


@pytest.mark.clause("S17", "M8")
async def test_logs_of_another_chain_are_a_failure() -> None:
    node = Node()
    node.chain_id = "0x38"
    async with answering(node) as (url, _), open_session(20) as session:
        endpoint = an_endpoint(url)
        with pytest.raises(ProbeFailed, match="wrong_chain: 56 instead of 1"):
            await endpoint.read_logs(CONTRACTS, EVENTS, FIRST, LAST, session, lambda: NOON)
    assert node.methods == ["eth_chainId"]
