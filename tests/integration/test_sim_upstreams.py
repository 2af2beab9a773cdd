"""The simulated endpoints, indexers and ppoi node over real sockets while all is well, to the letter."""

import json

from tests.builders import NOON
from tests.integration.sim_client import (
    CHAINS,
    LATEST,
    META,
    NETWORKS,
    NODE_STATUS,
    REQUIRED_LIST,
    SQUID,
    Client,
    simulated,
)


@simulated()
async def test_every_endpoint_tells_its_chain_and_its_newest_block(client: Client) -> None:
    for chain_id in CHAINS:
        for letter in "abc":
            assert await client.rpc(f"{chain_id}/{letter}", "eth_chainId") == hex(chain_id)
    block = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
    assert await client.rpc("1/b", "eth_getBlockByNumber", "latest", False) == block
    assert await client.rpc("1/c", "eth_blockNumber") == block["number"]
    assert NOON - 24_000 <= int(block["timestamp"], 16) * 1000 <= NOON
    assert (len(block["hash"]), block["transactions"]) == (66, [])
    client.clock.pass_s(120)
    assert await client.height("1/a") - int(block["number"], 16) in (9, 10, 11)


@simulated()
async def test_endpoints_answer_batches_and_name_what_they_do_not_understand(client: Client) -> None:
    batch = await client.post("/rpc/1/a", [LATEST, {**LATEST, "id": 8, "method": "eth_chainId", "params": []}])
    assert [answer["id"] for answer in batch.document] == [7, 8]
    for body, code in (
        (b"{", -32700),
        (b"[]", -32600),
        (b"{}", -32600),
        (json.dumps({**LATEST, "method": "eth_mining"}).encode(), -32601),
        (json.dumps({**LATEST, "params": ["0x1", False]}).encode(), -32602),
    ):
        answer = await client.post_bytes("/rpc/1/a", body)
        assert (answer.http_code, answer.document["error"]["code"]) == (200, code)
    assert (await client.post("/rpc/2/a", LATEST)).http_code == 404
    assert (await client.post("/rpc/1/d", LATEST)).http_code == 404


@simulated()
async def test_squids_follow_the_chain_and_know_the_height_alone(client: Client) -> None:
    for chain_id in CHAINS:
        lag = await client.height(f"{chain_id}/a") - await client.squid(f"squid/{chain_id}")
        assert 5 <= lag <= 5 + 24
    answer = await client.post("/hosted/1/graphql", SQUID)
    assert (answer.content_type, list(answer.document)) == ("application/json", ["data"])
    assert list(answer.document["data"]["squidStatus"]) == ["height"]
    assert (await client.post("/hosted/11155111/graphql", SQUID)).http_code == 404
    for query in ("{ squidStatus { height hash } }", "{ squidStatus }", "{ squidStatus { height", "{ height }"):
        answer = await client.post("/squid/1/graphql", {"query": query})
        assert (answer.http_code, list(answer.document)) == (400, ["errors"])
    assert (await client.post_bytes("/squid/1/graphql", b"not JSON")).http_code == 400


@simulated()
async def test_the_other_kinds_of_indexers_tell_the_same_block_in_their_own_ways(client: Client) -> None:
    height = await client.squid("squid/1")
    meta = (await client.post("/subgraph/1", META)).document["data"]["_meta"]
    assert meta == {
        "block": {"number": height, "timestamp": meta["block"]["timestamp"]},
        "hasIndexingErrors": False,
    }
    assert NOON - 200_000 <= meta["block"]["timestamp"] * 1000 < NOON
    assert (await client.get("/json/1")).document["status"]["lastBlock"] == height
    ponder = (await client.get("/ponder/status")).document
    assert [told["id"] for told in ponder.values()] == list(CHAINS)
    assert ponder["mainnet"] == {"id": 1, "block": {"number": height, "timestamp": meta["block"]["timestamp"]}}
    assert (await client.get("/ponder/ready")).http_code == (await client.get("/ponder/health")).http_code == 200
    assert (await client.get("/ponder/else")).http_code == 404


@simulated()
async def test_the_index_node_tells_of_the_deployments_it_is_asked_for(client: Client) -> None:
    deployments = (await client.get("/")).document["deployments"]
    assert len(deployments["1"]) == 46
    assert deployments["1"].startswith("Qm")
    wanted = "{ synced health fatalError { message } chains { network latestBlock { number } } }"
    query = f'{{ indexingStatuses(subgraphs:["{deployments["1"]}","QmUnknown"]) {wanted} }}'
    answer = (await client.post("/index-node/graphql", {"query": query})).document
    height = await client.squid("squid/1")
    assert answer["data"]["indexingStatuses"] == [
        {
            "synced": True,
            "health": "healthy",
            "fatalError": None,
            "chains": [{"network": "mainnet", "latestBlock": {"number": str(height)}}],
        }
    ]
    by_variable = {
        "query": f"query Q($ids: [String!]) {{ indexingStatuses(subgraphs: $ids) {wanted} }}",
        "variables": {"ids": [deployments["56"]]},
    }
    (status,) = (await client.post("/index-node/graphql", by_variable)).document["data"]["indexingStatuses"]
    assert status["chains"][0]["network"] == "bsc"


@simulated()
async def test_the_ppoi_node_tells_one_status_in_two_ways(client: Client) -> None:
    status = await client.ppoi()
    for path in ("/ppoi", "/ppoi/"):
        assert (await client.post(path, NODE_STATUS)).document == {"jsonrpc": "2.0", "result": status, "id": 1}
    assert status["listKeys"] == [REQUIRED_LIST]
    assert list(status["forNetwork"]) == NETWORKS
    for network in status["forNetwork"].values():
        told = network["txidStatus"]
        assert list(network["listStatuses"]) == [REQUIRED_LIST]
        assert told["validatedTxidIndex"] <= told["currentTxidIndex"] <= told["validatedTxidIndex"] + 1
        assert len(told["currentMerkleroot"]) == len(told["validatedMerkleroot"]) == 64
    assert (await client.get("/ppoi/")).document == {"status": "ok"}


@simulated()
async def test_the_ppoi_node_errs_like_the_real_one(client: Client) -> None:
    without_params = {key: value for key, value in NODE_STATUS.items() if key != "params"}
    assert await client.never_answers("/ppoi", without_params)
    unknown = await client.post("/ppoi", {**NODE_STATUS, "method": "ppoi_else"})
    assert (unknown.http_code, unknown.document["error"]["code"], unknown.document["id"]) == (404, -32601, 1)
    wrong = await client.post("/ppoi", {**NODE_STATUS, "params": 5})
    assert (wrong.http_code, wrong.document["error"]["code"]) == (400, -32602)
    assert (await client.post("/ppoi", [])).document["error"]["code"] == -32600
    malformed = await client.post_bytes("/ppoi", b"{")
    assert (malformed.http_code, malformed.content_type) == (400, "text/html")
    astray = await client.get("/ppoi/else")
    assert (astray.http_code, astray.content_type) == (404, "text/html")
