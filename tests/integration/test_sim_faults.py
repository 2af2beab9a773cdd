"""What every fault does to the simulated upstreams, over real sockets."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from tests.builders import NOON
from tests.integration.sim_client import LATEST, META, NETWORKS, NODE_STATUS, REQUIRED_LIST, SQUID, Client, simulated

ASKED = [("rpc/1/a", "/rpc/1/a", LATEST), ("squid/1", "/squid/1/graphql", SQUID), ("ppoi", "/ppoi", NODE_STATUS)]


@pytest.mark.parametrize(("target", "path", "request_document"), ASKED)
@simulated()
async def test_a_fault_of_the_wire_applies_to_its_target_alone(
    client: Client, target: str, path: str, request_document: object
) -> None:
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


@pytest.mark.parametrize("path", ["/waku/health", "/waku/store/v3/messages", "/json/1", "/ponder/status"])
@simulated()
async def test_every_upstream_can_be_made_to_fail(client: Client, path: str) -> None:
    await client.order(path.split("/")[1], "status")
    assert (await client.get(path)).http_code == 500
    await client.order("*", None)
    assert (await client.get(path)).http_code == 200


@simulated()
async def test_errors_have_the_shape_of_the_protocol_they_interrupt(client: Client) -> None:
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


@simulated()
async def test_a_dripping_upstream_gives_a_byte_a_second(client: Client) -> None:
    await client.order("json/1", "drip")
    async with client.session.get(client.url("/json/1")) as response:
        started_s = time.monotonic()
        received = [await response.content.read(1) for _ in range(3)]
        assert b"".join(received) == b'{"s'
        assert 1.8 < time.monotonic() - started_s < 4
        assert response.content_length is not None
        response.close()


@simulated()
async def test_interim_responses_go_on_and_no_answer_comes(client: Client) -> None:
    await client.order("json/1", "interim")
    at = client.url("/json/1")
    reader, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(b"GET /json/1 HTTP/1.1\r\nHost: a\r\n\r\n")
    received = await reader.readexactly(500_000)
    writer.transport.abort()
    assert set(received.split(b"\r\n\r\n")[:-1]) == {b"HTTP/1.1 103 Early Hints"}


@simulated()
async def test_numbers_that_take_long_to_convert_fit_the_limits_of_an_answer(client: Client) -> None:
    await client.order("json/1", "numbers")
    answer = await client.get("/json/1")
    assert answer.http_code == 200
    assert 1_000_000 < len(answer.body) < 1_048_576
    assert answer.body.count(b"1e308") > 150_000


@simulated()
async def test_an_endless_body_goes_on_past_any_limit(client: Client) -> None:
    await client.order("rpc/1/a", "endless")
    async with client.session.post(client.url("/rpc/1/a"), json=LATEST) as response:
        assert response.content_type == "application/json"
        assert len(await response.content.readexactly(5_000_000)) == 5_000_000
        response.close()


@simulated()
async def test_an_endpoint_can_be_wrong_about_everything_it_tells(client: Client) -> None:
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
    true = await client.rpc("1/b", "eth_getBlockByNumber", "latest", False)
    await client.order("rpc/1/a", "past")
    block = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
    assert block["number"] == true["number"]
    assert int(true["timestamp"], 16) - int(block["timestamp"], 16) == 86_400
    await client.order("rpc/1/a", "past", seconds=10**10)
    assert (await client.rpc("1/a", "eth_getBlockByNumber", "latest", False))["timestamp"] == "0x0"
    await client.order("rpc/1/a", "genesis")
    block = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
    assert (block["number"], block["timestamp"]) == ("0x0", "0x0")
    assert await client.rpc("1/a", "eth_blockNumber") == "0x0"
    assert await client.rpc("1/a", "eth_chainId") == "0x1"
    await client.order("rpc/1/a", "genesis", timestamp=NOON // 1000)
    block = await client.rpc("1/a", "eth_getBlockByNumber", "latest", False)
    assert (block["number"], int(block["timestamp"], 16)) == ("0x0", NOON // 1000)
    await client.order("rpc/1/a", "freeze")
    client.clock.pass_s(600)
    assert await client.height("1/a") == height
    assert await client.height("1/b") >= height + 49
    await client.order("rpc/1/a", None)
    assert await client.height("1/a") == await client.height("1/b")


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
@simulated()
async def test_whatever_follows_can_lag_freeze_and_lie(client: Client, target: str) -> None:
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


NOTHING_YET = {
    "squid/1": -1,
    "hosted/1": -1,
    "subgraph/1": "has not started syncing yet",
    "index-node/1": None,
    "ponder/1": "absent",
}


async def _said(client: Client, target: str) -> object:
    """What an indexer says that has nothing, or its height."""
    if target == "subgraph/1":
        document = (await client.post("/subgraph/1", META)).document
        if "errors" in document:
            (error,) = document["errors"]
            assert list(document) == ["errors"]
            return "has not started syncing yet" if "has not started syncing yet" in error["message"] else error
    if target == "ponder/1" and "mainnet" not in (await client.get("/ponder/status")).document:
        return "absent"
    if target == "index-node/1":
        query = {"query": "{ indexingStatuses { synced chains { latestBlock { number } } } }"}
        status = (await client.post("/index-node/graphql", query)).document["data"]["indexingStatuses"][0]
        if status["chains"][0]["latestBlock"] is None:
            return None
    return await _position(client, target)


@pytest.mark.parametrize("target", list(NOTHING_YET))
@simulated()
async def test_an_indexer_rebuilt_from_scratch_has_nothing_and_then_climbs(client: Client, target: str) -> None:
    before = await _position(client, target)
    await client.order(target, "rebuild", times=49)
    assert await _said(client, target) == NOTHING_YET[target]
    client.clock.pass_s(59)
    assert await _said(client, target) == NOTHING_YET[target]
    assert await client.squid("squid/56") > 0
    client.clock.pass_s(1)
    assert abs(before - await _position(client, target) - 24 * 300) <= 1  # blocks of a day
    client.clock.pass_s(600)
    assert abs(before - await _position(client, target) - (24 * 300 - 49 * 50)) <= 2
    client.clock.pass_s(1_300)
    caught_up = await _position(client, target)
    await client.order(target, None)
    assert caught_up == await _position(client, target)


@simulated()
async def test_a_rebuilt_indexer_is_never_above_the_one_that_it_becomes(client: Client) -> None:
    await client.order("squid/1", "rebuild", times=1_000_000)
    client.clock.pass_s(60.5)
    assert await client.squid("squid/1") == await client.squid("hosted/1")


async def _took_s(asking: Awaitable[object]) -> float:
    started_s = time.monotonic()
    await asking
    return time.monotonic() - started_s


SPEAKERS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "rpc/1/a": lambda client: client.height("1/a"),
    "squid/1": lambda client: client.squid("squid/1"),
    "json/1": lambda client: client.get("/json/1"),
    "ponder": lambda client: client.get("/ponder/status"),
    "ppoi": lambda client: client.ppoi(),
    "waku/peers": lambda client: client.get("/waku/health"),
    "waku/messages": lambda client: client.store(),
}


@pytest.mark.parametrize("target", list(SPEAKERS))
@simulated()
async def test_a_late_upstream_gives_its_right_answer_after_a_while(client: Client, target: str) -> None:
    ask = SPEAKERS[target]
    at_once = await ask(client)
    await client.order(target, "late", ms=700)
    assert 0.7 <= await _took_s(ask(client)) < 3
    assert await client.height("56/a")
    assert await ask(client) == at_once
    await client.order(target, None)
    assert await _took_s(ask(client)) < 0.5


@simulated()
async def test_each_page_of_a_slow_store_takes_its_time_and_nothing_else_does(client: Client) -> None:
    await client.order("waku/messages", "slow-pages", ms=600)
    first = await client.store(pageSize=5)
    assert 0.6 <= await _took_s(client.store(pageSize=5, cursor=first["paginationCursor"])) < 3
    assert len(first["messages"]) == 5
    topic = "/waku/relay/v1/messages/%2Fwaku%2F2%2Frs%2F5%2F1"
    assert await _took_s(client.post("/waku/relay/v1/subscriptions", ["/waku/2/rs/5/1"])) < 0.5
    assert await _took_s(client.get(topic)) < 0.5
    assert await _took_s(client.get("/waku/health")) < 0.5


@simulated()
async def test_a_halted_chain_stops_for_everybody_and_goes_on_from_where_it_stood(client: Client) -> None:
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


@simulated()
async def test_a_reorganisation_takes_the_newest_blocks_back_once(client: Client) -> None:
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


@simulated()
async def test_a_ppoi_node_can_lack_what_is_required_of_it(client: Client) -> None:
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


@simulated()
async def test_a_chain_can_be_left_out_by_an_indexer_of_many(client: Client) -> None:
    await client.order("ponder/1", "missing-network")
    assert "mainnet" not in (await client.get("/ponder/status")).document
    await client.order("index-node", "missing-network")
    query = {"query": "{ indexingStatuses { synced } }"}
    assert (await client.post("/index-node/graphql", query)).document == {"data": {"indexingStatuses": []}}


@simulated()
async def test_an_indexer_that_never_ran_answers_200_with_errors_and_null(client: Client) -> None:
    await client.order("*", "null-status")
    for path, query, field in (("/squid/1/graphql", SQUID, "squidStatus"), ("/subgraph/1", META, "_meta")):
        answer = await client.post(path, query)
        assert (answer.http_code, answer.document["data"]) == (200, {field: None})
        assert answer.document["errors"][0]["message"]
