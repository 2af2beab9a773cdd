"""What every fault does to the simulated upstreams, over real sockets."""

import time

import aiohttp
import pytest

from tests.builders import NOON
from tests.integration.sim_client import (
    LATEST,
    META,
    NETWORKS,
    NODE_STATUS,
    REQUIRED_LIST,
    SQUID,
    Client,
    simulate,
)

ASKED = [("rpc/1/a", "/rpc/1/a", LATEST), ("squid/1", "/squid/1/graphql", SQUID), ("ppoi", "/ppoi", NODE_STATUS)]


@pytest.mark.parametrize(("target", "path", "request_document"), ASKED)
def test_a_fault_of_the_wire_befalls_its_target_alone(target: str, path: str, request_document: object) -> None:
    async def scene(client: Client) -> None:
        await client.order(target, "refuse")
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.post(path, request_document)
        await client.order(target, "hang")
        assert await client.never_answers(path, request_document)
        await client.order(target, "garbage")
        with pytest.raises(ValueError, match="utf-8"):
            _ = (await client.post(path, request_document)).document
        await client.order(target, "html")
        answer = await client.post(path, request_document)
        assert (answer.http_code, answer.content_type) == (200, "text/html")
        await client.order(target, "status", code=503)
        assert (await client.post(path, request_document)).http_code == 503
        await client.order(target, "rate-limit")
        assert (await client.post(path, request_document)).http_code == 429
        assert await client.height("56/a")
        assert await client.squid("squid/56")
        await client.order(target, None)
        assert (await client.post(path, request_document)).http_code == 200

    simulate(scene)


@pytest.mark.parametrize("path", ["/waku/health", "/waku/store/v3/messages", "/json/1", "/ponder/status"])
def test_every_upstream_can_be_made_to_fail(path: str) -> None:
    async def scene(client: Client) -> None:
        await client.order(path.split("/")[1], "status")
        assert (await client.get(path)).http_code == 500
        await client.order("*", None)
        assert (await client.get(path)).http_code == 200

    simulate(scene)


def test_errors_have_the_shape_of_the_protocol_they_interrupt() -> None:
    async def scene(client: Client) -> None:
        await client.order("*", "rate-limit")
        answer = await client.post("/rpc/1/a", LATEST)
        error = {"code": -32005, "message": "limit exceeded"}
        assert answer.document == {"jsonrpc": "2.0", "error": error, "id": 7}
        assert (await client.post("/squid/1/graphql", SQUID)).body == b"Too Many Requests"
        await client.order("*", "rate-limit", code=200)
        assert (await client.post("/rpc/1/a", LATEST)).http_code == 200
        await client.order("*", "status", code=500)
        assert (await client.post("/ppoi", NODE_STATUS)).document["error"]["code"] == -32603
        assert (await client.get("/waku/health")).content_type == "text/plain"
        await client.order("*", "status", code=302)
        async with client.session.post(client.url("/rpc/1/a"), json=LATEST, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (302, "/elsewhere")

    simulate(scene)


def test_a_dripping_upstream_gives_a_byte_a_second() -> None:
    async def scene(client: Client) -> None:
        await client.order("json/1", "drip")
        async with client.session.get(client.url("/json/1")) as response:
            started_s = time.monotonic()
            received = [await response.content.read(1) for _ in range(3)]
            assert b"".join(received) == b'{"s'
            assert 1.8 < time.monotonic() - started_s < 4
            assert response.content_length is not None
            response.close()

    simulate(scene)


def test_an_endless_body_goes_on_past_any_limit() -> None:
    async def scene(client: Client) -> None:
        await client.order("rpc/1/a", "endless")
        async with client.session.post(client.url("/rpc/1/a"), json=LATEST) as response:
            assert response.content_type == "application/json"
            assert len(await response.content.readexactly(5_000_000)) == 5_000_000
            response.close()

    simulate(scene)


def test_an_endpoint_can_be_wrong_about_everything_it_tells() -> None:
    async def scene(client: Client) -> None:
        height = await client.height("1/b")
        await client.order("rpc/1/a", "wrong-chain", chainId=5)
        assert await client.rpc("1/a", "eth_chainId") == "0x5"
        assert await client.rpc("1/b", "eth_chainId") == "0x1"
        await client.order("rpc/1/a", "lag", by=40)
        block = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
        assert int(block["number"], 16) == height - 40
        assert int(block["timestamp"], 16) * 1000 < NOON - 40 * 12_000
        await client.order("rpc/1/a", "lie", by=500)
        assert await client.height("1/a") == height + 500
        await client.order("rpc/1/a", "future", seconds=900)
        block = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
        assert int(block["timestamp"], 16) == NOON // 1000 + 900
        await client.order("rpc/1/a", "freeze")
        client.clock.pass_s(600)
        assert await client.height("1/a") == height
        assert await client.height("1/b") >= height + 49
        await client.order("rpc/1/a", None)
        assert await client.height("1/a") == await client.height("1/b")

    simulate(scene)


async def _position(client: Client, target: str) -> int:
    """The height that the subject of a target tells, whatever kind of upstream it is."""
    match target:
        case "squid/1" | "hosted/1":
            return await client.squid(target)
        case "subgraph/1":
            position = (await client.post("/subgraph/1", META)).document["data"]["_meta"]["block"]["number"]
        case "json/1":
            position = (await client.get("/json/1")).document["status"]["lastBlock"]
        case "ponder/1":
            position = (await client.get("/ponder/status")).document["mainnet"]["block"]["number"]
        case "index-node/1":
            query = {"query": "{ indexingStatuses { chains { latestBlock { number } } } }"}
            statuses = (await client.post("/index-node/graphql", query)).document["data"]["indexingStatuses"]
            position = int(statuses[0]["chains"][0]["latestBlock"]["number"])
        case _:
            position = (await client.ppoi())["forNetwork"]["Ethereum"]["txidStatus"]["validatedTxidIndex"]
    assert isinstance(position, int)
    return position


@pytest.mark.parametrize(
    "target", ["squid/1", "hosted/1", "subgraph/1", "json/1", "ponder/1", "index-node/1", "ppoi/1"]
)
def test_whatever_follows_can_lag_freeze_and_lie(target: str) -> None:
    async def scene(client: Client) -> None:
        position = await _position(client, target)
        await client.order(target, "lag", by=300)
        assert await _position(client, target) == position - 300
        await client.order(target, "lie", by=70)
        assert await _position(client, target) == position + 70
        await client.order(target, "freeze")
        client.clock.pass_s(3_600)
        assert await _position(client, target) == position
        await client.order(target, None)
        assert await _position(client, target) > position

    simulate(scene)


def test_a_halted_chain_stops_for_everybody_and_goes_on_from_where_it_stood() -> None:
    async def scene(client: Client) -> None:
        height = await client.height("56/a")
        await client.order("rpc/56", "halt")
        client.clock.pass_s(600)
        assert [await client.height(f"56/{letter}") for letter in "abc"] == [height] * 3
        assert await client.squid("squid/56") == height - 5
        await client.order("rpc/56/a", "lie", by=10)
        assert await client.height("56/a") == height + 10
        await client.order("rpc/56", "hang")
        client.clock.pass_s(45)
        await client.order("rpc", None)
        assert 90 <= await client.height("56/a") - height <= 101

    simulate(scene)


def test_a_reorganisation_takes_the_newest_blocks_back_once() -> None:
    async def scene(client: Client) -> None:
        before = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
        await client.order("rpc/1", "halt")
        await client.order("rpc/1", "reorg", depth=4)
        client.clock.pass_s(1)
        height = int(before["number"], 16)
        assert await client.height("1/a") == height - 4
        assert [each["fault"] for each in (await client.get("/control")).document["set"]] == ["halt"]
        await client.order("rpc/1", None)
        hashes = {}
        for _ in range(200):
            client.clock.pass_s(1)
            block = await client.rpc("1/c", "eth_getBlockByNumber", "latest", False)
            hashes[int(block["number"], 16)] = block["hash"]
        assert hashes[height] != before["hash"]

    simulate(scene)


def test_a_ppoi_node_can_lack_what_is_required_of_it() -> None:
    async def scene(client: Client) -> None:
        await client.order("ppoi/1", "missing-list")
        status = await client.ppoi()
        assert status["listKeys"] == [REQUIRED_LIST]
        assert status["forNetwork"]["Ethereum"]["listStatuses"] == {}
        assert list(status["forNetwork"]["Polygon"]["listStatuses"]) == [REQUIRED_LIST]
        await client.order("ppoi/1", "missing-network")
        assert list((await client.ppoi())["forNetwork"]) == NETWORKS[1:]
        await client.order("ppoi/1", "absent-index")
        assert (await client.ppoi())["forNetwork"]["Ethereum"]["txidStatus"] == {}
        await client.order("ppoi", "missing-list")
        status = await client.ppoi()
        assert (status["listKeys"], status["forNetwork"]["Polygon"]["listStatuses"]) == ([], {})

    simulate(scene)


def test_a_chain_can_be_left_out_by_an_indexer_of_many() -> None:
    async def scene(client: Client) -> None:
        await client.order("ponder/1", "missing-network")
        assert "mainnet" not in (await client.get("/ponder/status")).document
        await client.order("index-node", "missing-network")
        query = {"query": "{ indexingStatuses { synced } }"}
        assert (await client.post("/index-node/graphql", query)).document == {"data": {"indexingStatuses": []}}

    simulate(scene)


def test_an_indexer_that_never_ran_answers_200_with_errors_and_null() -> None:
    async def scene(client: Client) -> None:
        await client.order("*", "null-status")
        for path, query, field in (("/squid/1/graphql", SQUID, "squidStatus"), ("/subgraph/1", META, "_meta")):
            answer = await client.post(path, query)
            assert (answer.http_code, answer.document["data"]) == (200, {field: None})
            assert answer.document["errors"][0]["message"]

    simulate(scene)
