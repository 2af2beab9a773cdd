"""The simulated endpoints, indexers and ppoi node over real sockets while all is well, to the letter."""

import asyncio
from typing import Any

import pytest

from lookout.core.model import Blocks, Indexes, Members, Peers, Responding
from tests.builders import NOON, SECOND
from tests.integration.sim_client import CHAINS, LATEST, PATIENCE_S, REQUIRED_LIST, TARGETS, simulation

NODE_STATUS = {"jsonrpc": "2.0", "id": 1, "method": "ppoi_node_status", "params": {}}


@pytest.mark.clause("M8", "M9")
async def test_everybody_answers_lookout_and_follows_the_chain() -> None:
    async with simulation() as client:
        for chain_id in CHAINS:
            readings = [await client.read(f"{chain_id}/{letter}") for letter in "abc"]
            assert readings == readings[:1] * 3
            assert NOON - 24 * SECOND <= readings[0].block_at <= NOON
        found = {target: await client.probe(target) for target in TARGETS}
        height = await client.height("1/a")
        position = found["squid/1"]
        assert isinstance(position, Blocks)
        assert height - position.position == 5
        for target in ("subgraph/1", "index-node/1", "ponder/1", "envio/1", "json/1"):
            assert found[target] == position
        assert found["provider/1"] == Blocks(height)
        assert (found["bundler/1"], found["relayer"]) == (Responding(), Responding())
        match found["ppoi/1"], found["waku/peers"], found["waku/messages"]:
            case Indexes(validated, current), Peers(peers), Members(9, 9):
                assert validated == current
                assert peers > 0
            case other:
                raise AssertionError(other)
        client.clock.pass_s(120)
        assert await client.height("1/a") - height in (9, 10, 11)


@pytest.mark.parametrize(
    ("path", "asked", "http_code", "said"),
    [
        pytest.param("/rpc/1/a", [LATEST, {**LATEST, "id": 8}], 200, "8", id="a batch"),
        pytest.param("/rpc/1/a", {**LATEST, "method": "eth_blockNumber"}, 200, '"result":"0x', id="the height alone"),
        pytest.param("/rpc/1/a", [], 200, "-32600", id="an empty batch"),
        pytest.param("/rpc/1/a", {}, 200, "-32600", id="no request"),
        pytest.param(
            "/rpc/1/a", {**LATEST, "method": "eth_mining"}, 200, "-32601", id="a method that is not simulated"
        ),
        pytest.param("/rpc/1/a", {**LATEST, "params": ["0x1", False]}, 200, "-32602", id="an old block"),
        pytest.param("/rpc/2/a", LATEST, 404, "no rpc/2/a", id="a chain that is not there"),
        pytest.param("/rpc/1/d", LATEST, 404, "no rpc/1/d", id="a fourth endpoint"),
        pytest.param("/hosted/11155111/graphql", {}, 404, "no hosted", id="the test network has no hosted indexer"),
        pytest.param(
            "/subgraph/1", {"query": "{ _meta { hasIndexingErrors } }"}, 200, "false", id="a subgraph's health"
        ),
        pytest.param("/squid/1/graphql", {"query": "{ squidStatus { height hash } }"}, 400, "hash", id="another field"),
        pytest.param("/squid/1/graphql", {"query": "{ height }"}, 400, "height", id="an unknown query"),
        pytest.param("/squid/1/graphql", {}, 400, "no query", id="nothing asked"),
        pytest.param("/provider/1", {**LATEST, "method": "eth_blockNumber"}, 200, '"result":"0x', id="a provider"),
        pytest.param("/provider/2", LATEST, 404, "no provider/2", id="a provider of a chain that is not there"),
        pytest.param("/bundler/1", {**LATEST, "method": "eth_chainId"}, 200, '"result":"0x1"', id="a bundler's chain"),
        pytest.param("/bundler/1", LATEST, 200, "-32601", id="a bundler is no node"),
        pytest.param(
            "/envio/v1/graphql",
            {"query": "{ _meta { chainId isReady } }"},
            200,
            '{"chainId":56,',
            id="all chains of an envio",
        ),
        pytest.param("/envio/v1/graphql", {"query": "{ _meta { chain } }"}, 400, "chain", id="a field it has not"),
        pytest.param("/ppoi", {**NODE_STATUS, "method": "ppoi_else"}, 404, "-32601", id="an unknown method"),
        pytest.param("/ppoi", {**NODE_STATUS, "params": 5}, 400, "-32602", id="wrong params"),
        pytest.param("/ppoi", [], 400, "-32600", id="a batch, which a ppoi node does not know"),
    ],
)
async def test_what_is_posted_is_answered_as_the_real_ones_do(path: str, asked: Any, http_code: int, said: str) -> None:
    async with simulation() as client:
        answer = await client.post(path, asked)
        assert answer.http_code == http_code
        assert said in answer.body.decode()


async def test_what_is_no_json_is_answered_as_the_real_ones_do() -> None:
    async with simulation() as client:
        assert (await client.post_bytes("/rpc/1/a", b"{")).document["error"]["code"] == -32700
        assert (await client.post_bytes("/squid/1/graphql", b"not JSON")).http_code == 400
        malformed = await client.post_bytes("/ppoi", b"{")
        assert (malformed.http_code, malformed.content_type) == (400, "text/html")


@pytest.mark.parametrize(
    ("path", "http_code"),
    [("/ponder/ready", 200), ("/ponder/health", 200), ("/ponder/else", 404), ("/ppoi/", 200), ("/ppoi/else", 404)],
)
async def test_other_paths_of_a_node(path: str, http_code: int) -> None:
    async with simulation() as client:
        assert (await client.get(path)).http_code == http_code


async def test_the_index_node_reports_the_deployments_it_is_asked_for() -> None:
    wanted = "{ synced health fatalError { message } chains { network latestBlock { number } } }"
    async with simulation() as client:
        deployments = (await client.get("/")).document["deployments"]
        assert (len(deployments["1"]), deployments["1"][:2]) == (46, "Qm")
        query = f'{{ indexingStatuses(subgraphs:["{deployments["1"]}","QmUnknown"]) {wanted} }}'
        (status,) = (await client.post("/index-node/graphql", {"query": query})).document["data"]["indexingStatuses"]
        assert (status["synced"], status["health"], status["fatalError"]) == (True, "healthy", None)
        assert status["chains"][0]["network"] == "mainnet"
        by_variable = {
            "query": f"query Q($ids: [String!]) {{ indexingStatuses(subgraphs: $ids) {wanted} }}",
            "variables": {"ids": [deployments["56"]]},
        }
        (status,) = (await client.post("/index-node/graphql", by_variable)).document["data"]["indexingStatuses"]
        assert status["chains"][0]["network"] == "bsc"


async def test_the_ppoi_node_gives_one_status_in_two_ways_and_never_answers_without_params() -> None:
    async with simulation() as client:
        status = (await client.get("/ppoi/node-status-v2")).document
        for path in ("/ppoi", "/ppoi/"):
            assert (await client.post(path, NODE_STATUS)).document == {"jsonrpc": "2.0", "result": status, "id": 1}
        assert status["listKeys"] == [REQUIRED_LIST]
        assert list(status["forNetwork"]) == ["Ethereum", "Arbitrum", "Polygon", "BNB_Chain", "Ethereum_Sepolia"]
        without_params = {key: value for key, value in NODE_STATUS.items() if key != "params"}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await client.post("/ppoi", without_params)
