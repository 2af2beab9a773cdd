"""Heads, read from endpoints that may be anything."""

from collections.abc import Callable

import msgspec
import pytest

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import KindTable
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EVM, EvmEndpoint, parse_block, parse_block_number, parse_chain_id
from lookout.protocols.source import Source, observe
from tests.builders import MINUTE, NOON
from tests.contract.protocols.recorded import recorded
from tests.contract.protocols.upstreams import Asked, Reply, answering

BLOCK = b'{"jsonrpc":"2.0","id":2,"result":{"number":"0x10","timestamp":"0x20"}}'


@pytest.mark.clause("M8")
def test_recorded_answers_give_a_chain_and_a_block() -> None:
    assert parse_chain_id(recorded("evm-chain-id.json")) == 42161
    assert parse_block(recorded("evm-block.json"), NOON) == Reading(NOON, 0x14E2A3F, 0x6AF8E35E * 1000)


NO_BLOCKS = {
    "a null result": (b'{"jsonrpc":"2.0","id":2,"result":null}', "not_understood: no block"),
    "a rate limit inside a 200": (
        b'{"jsonrpc":"2.0","id":2,"error":{"code":-32005,"message":"limit for KEY exceeded"}}',
        "rate_limited: -32005",
    ),
    "an error only in text": (b'{"jsonrpc":"2.0","id":2,"error":"slow down, KEY"}', "jsonrpc_error"),
    "an error with a code that is none": (b'{"id":2,"error":{"code":true},"result":{}}', "jsonrpc_error"),
    "a wrong id": (BLOCK.replace(b":2,", b":3,"), "not_understood: an answer to another request"),
    "a text id": (BLOCK.replace(b":2,", b':"2",'), "not_understood: an answer to another request"),
    "a height that is no hex": (BLOCK.replace(b'"0x10"', b"16"), "not_understood: the block number"),
    "a height without digits": (BLOCK.replace(b"0x10", b"0x"), "not_understood: the block number"),
    "a negative height": (BLOCK.replace(b"0x10", b"-0x1"), "not_understood: the block number"),
    "a height beyond counts": (BLOCK.replace(b"0x10", b"0x20000000000000"), "not_understood: the block number"),
    "a pending block": (BLOCK.replace(b'"0x10"', b"null"), "not_understood: the block number"),
    "a timestamp after the year 9999": (
        BLOCK.replace(b"0x20", b"0xffffffffff"),
        "not_understood: the block's timestamp is in no calendar",
    ),
    "a timestamp that is no hex": (BLOCK.replace(b'"0x20"', b"32"), "not_understood: the block's timestamp"),
    "an empty batch": (b"[]", "not_understood: no JSON-RPC answer"),
    "a block page with 200": (b"<html>Access denied</html>", "not_json: HTML or XML"),
}


@pytest.mark.clause("M8", "R10")
@pytest.mark.parametrize(("body", "reason"), NO_BLOCKS.values(), ids=NO_BLOCKS)
def test_what_is_no_block_fails(body: bytes, reason: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        parse_block(body, NOON)
    assert caught.value.reason == reason


NUMBER = b'{"jsonrpc":"2.0","id":2,"result":"0x10"}'


@pytest.mark.clause("M9")
def test_a_recorded_answer_is_a_nodes_position() -> None:
    assert parse_block_number(recorded("evm-block-number.json")) == Blocks(0x7E)


class Node:
    """Answers like a node, until a test changes it."""

    def __init__(self) -> None:
        self.chain_id = "0x1"
        self.block: Callable[[], Reply] = lambda: (200, BLOCK)

    def __call__(self, asked: Asked) -> Reply:
        call = msgspec.json.decode(asked.body)
        if call["method"] == "eth_chainId":
            return 200, msgspec.json.encode({"jsonrpc": "2.0", "id": call["id"], "result": self.chain_id})
        if call["method"] == "eth_blockNumber":
            return 200, NUMBER
        assert call["params"] == ["latest", False]
        return self.block()


def methods(asked: list[Asked]) -> list[str]:
    return [msgspec.json.decode(each.body)["method"] for each in asked]


@pytest.mark.clause("M8")
async def test_the_chain_id_is_asked_first_and_again_after_a_failure() -> None:
    node = Node()
    async with answering(node) as (url, asked), open_session(20) as session:
        endpoint = EvmEndpoint("rpc 1 of Ethereum", 1, url)
        assert await endpoint.read(session, lambda: NOON) == Reading(NOON, 16, 32_000)
        await endpoint.read(session, lambda: NOON)
        node.block = lambda: (429, b"")
        with pytest.raises(ProbeFailed, match="rate_limited: 429"):
            await endpoint.read(session, lambda: NOON)
        node.block = lambda: (200, BLOCK)
        await endpoint.read(session, lambda: NOON)
    chain_id, block = "eth_chainId", "eth_getBlockByNumber"
    assert methods(asked) == [chain_id, block, block, block, chain_id, block]


@pytest.mark.clause("M8")
async def test_an_endpoint_of_another_chain_fails_every_time() -> None:
    node = Node()
    node.chain_id = "0x38"
    async with answering(node) as (url, asked), open_session(20) as session:
        endpoint = EvmEndpoint("rpc 1 of Ethereum", 1, url)
        for _ in range(2):
            with pytest.raises(ProbeFailed, match="wrong_chain: 56 instead of 1"):
                await endpoint.read(session, lambda: NOON)
        assert methods(asked) == ["eth_chainId", "eth_chainId"]


@pytest.mark.clause("M8")
async def test_another_chain_behind_the_same_address_is_noticed_by_the_first_reading_after_a_minute() -> None:
    node = Node()
    async with answering(node) as (url, _), open_session(20) as session:
        endpoint = EvmEndpoint("rpc 1 of Ethereum", 1, url)
        await endpoint.read(session, lambda: NOON)
        node.chain_id = "0x38"
        await endpoint.read(session, lambda: NOON + MINUTE - 1)  # it need not be asked again before
        with pytest.raises(ProbeFailed, match="wrong_chain: 56 instead of 1"):
            await endpoint.read(session, lambda: NOON + MINUTE)


CHECK = Check("provider", 1)


def a_provider(url: str) -> Source:
    (source,) = EVM.sources("provider", KindTable(1, "evm", url, headers={"X-Api-Key": "K"}))
    return source


@pytest.mark.clause("M9")
async def test_a_node_as_a_service_is_asked_for_its_chain_as_an_endpoint_is() -> None:
    node = Node()
    async with answering(node) as (url, asked), open_session(20) as session:
        source = a_provider(url)
        assert (source.name, source.checks) == ("provider 1", (CHECK,))
        for now in (lambda: NOON, lambda: NOON + MINUTE - 1, lambda: NOON + MINUTE):
            assert await observe(source, session, now) == {CHECK: Blocks(16)}
    chain_id, number = "eth_chainId", "eth_blockNumber"
    assert methods(asked) == [chain_id, number, number, chain_id, number]
    assert all(each.headers["x-api-key"] == "K" for each in asked)
