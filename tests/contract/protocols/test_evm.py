"""Heads, read from endpoints that may be anything."""

from collections.abc import Callable

import msgspec
import pytest

from lookout.core.heads import Reading
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import Block, EvmEndpoint, parse_block, parse_chain_id
from tests.builders import MINUTE, NOON
from tests.contract.protocols.recorded import recorded
from tests.contract.protocols.upstreams import Asked, Reply, answering

BLOCK = b'{"jsonrpc":"2.0","id":2,"result":{"number":"0x10","timestamp":"0x20"}}'


@pytest.mark.clause("M8")
def test_recorded_answers_give_a_chain_and_a_block() -> None:
    assert parse_chain_id(recorded("evm-chain-id.json")) == 42161
    assert parse_block(recorded("evm-block.json")) == Block(0x14E2A3F, 0x6AF8E35E * 1000)


@pytest.mark.clause("M8", "R10")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":null}', "not understood: no block", id="a null result"),
        pytest.param(
            b'{"jsonrpc":"2.0","id":2,"error":{"code":-32005,"message":"limit for KEY exceeded"}}',
            "JSON-RPC error -32005",
            id="a rate limit inside a 200",
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":2,"error":"slow down, KEY"}', "JSON-RPC error", id="an error only in text"
        ),
        pytest.param(
            b'{"id":2,"error":{"code":true},"result":{}}', "JSON-RPC error", id="an error with a code that is none"
        ),
        pytest.param(BLOCK.replace(b":2,", b":3,"), "not understood: an answer to another request", id="a wrong id"),
        pytest.param(BLOCK.replace(b":2,", b':"2",'), "not understood: an answer to another request", id="a text id"),
        pytest.param(BLOCK.replace(b'"0x10"', b"16"), "not understood: the block number", id="a height that is no hex"),
        pytest.param(BLOCK.replace(b"0x10", b"0x"), "not understood: the block number", id="a height without digits"),
        pytest.param(BLOCK.replace(b"0x10", b"-0x1"), "not understood: the block number", id="a negative height"),
        pytest.param(
            BLOCK.replace(b"0x10", b"0x20000000000000"), "not understood: the block number", id="a height beyond counts"
        ),
        pytest.param(BLOCK.replace(b'"0x10"', b"null"), "not understood: the block number", id="a pending block"),
        pytest.param(
            BLOCK.replace(b'"0x20"', b"32"), "not understood: the block's timestamp", id="a timestamp that is no hex"
        ),
        pytest.param(b"[]", "not understood: no JSON-RPC answer", id="an empty batch"),
        pytest.param(b"<html>Access denied</html>", "not JSON", id="a block page with 200"),
    ],
)
def test_what_is_no_block_fails(body: bytes, reason: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        parse_block(body)
    assert caught.value.reason == reason


class Node:
    """Answers like a node, until a test changes it."""

    def __init__(self) -> None:
        self.chain_id = "0x1"
        self.block: Callable[[], Reply] = lambda: (200, BLOCK)

    def __call__(self, asked: Asked) -> Reply:
        call = msgspec.json.decode(asked.body)
        if call["method"] == "eth_chainId":
            return 200, msgspec.json.encode({"jsonrpc": "2.0", "id": call["id"], "result": self.chain_id})
        assert call["params"] == ["latest", False]
        return self.block()


def methods(asked: list[Asked]) -> list[str]:
    return [msgspec.json.decode(each.body)["method"] for each in asked]


@pytest.mark.clause("M8")
async def test_the_chain_id_is_asked_first_and_again_after_a_failure() -> None:
    node = Node()
    async with answering(node) as (url, asked), open_session(5) as session:
        endpoint = EvmEndpoint("rpc 1 of Ethereum", 1, url)
        assert await endpoint.read(session, lambda: NOON) == Reading(NOON, 16, 32_000)
        await endpoint.read(session, lambda: NOON)
        node.block = lambda: (429, b"")
        with pytest.raises(ProbeFailed, match="HTTP 429"):
            await endpoint.read(session, lambda: NOON)
        node.block = lambda: (200, BLOCK)
        await endpoint.read(session, lambda: NOON)
    chain_id, block = "eth_chainId", "eth_getBlockByNumber"
    assert methods(asked) == [chain_id, block, block, block, chain_id, block]


@pytest.mark.clause("M8")
async def test_an_endpoint_of_another_chain_fails_every_time() -> None:
    node = Node()
    node.chain_id = "0x38"
    async with answering(node) as (url, asked), open_session(5) as session:
        endpoint = EvmEndpoint("rpc 1 of Ethereum", 1, url)
        for _ in range(2):
            with pytest.raises(ProbeFailed, match="wrong chain id"):
                await endpoint.read(session, lambda: NOON)
        assert methods(asked) == ["eth_chainId", "eth_chainId"]


@pytest.mark.clause("M8")
async def test_another_chain_behind_the_same_address_is_noticed_by_the_first_reading_after_a_minute() -> None:
    node = Node()
    async with answering(node) as (url, _), open_session(5) as session:
        endpoint = EvmEndpoint("rpc 1 of Ethereum", 1, url)
        await endpoint.read(session, lambda: NOON)
        node.chain_id = "0x38"
        await endpoint.read(session, lambda: NOON + MINUTE - 1)  # it need not be asked again before
        with pytest.raises(ProbeFailed, match="wrong chain id"):
            await endpoint.read(session, lambda: NOON + MINUTE)
