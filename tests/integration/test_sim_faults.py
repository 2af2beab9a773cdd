"""What every fault does to the simulated upstreams, over real sockets, as Lookout's own sources find it."""

import asyncio
import time
from collections.abc import Awaitable

import pytest

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Failed, Indexes, Nothing, Peers
from lookout.protocols.client.failure import ProbeFailed
from tests.builders import DAY, NOON, SECOND
from tests.integration.sim_client import LATEST, TARGETS, Client, simulation

FOLLOWERS = (
    *("squid/1", "hosted/1", "subgraph/1", "json/1", "ponder/1", "index-node/1", "envio/1"),
    *("provider/1", "ppoi/1"),
)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("refuse", "reset"),
        ("hang", "timeout: first byte"),
        ("drip", "timeout: body"),
        ("endless", "too_large: over 1048576 bytes"),
        ("numbers", "not_understood: too many values"),
        ("garbage", "not_json"),
        ("html", "not_json: HTML or XML"),
        ("status", "http_status: 500"),
        ("rate-limit", "rate_limited: 429"),
    ],
)
async def test_a_fault_of_the_wire_can_be_set_for_everybody(fault: str, reason: str) -> None:
    async with simulation() as client:
        await client.order("*", fault)
        timeout_s = 1 if reason.startswith("timeout") else 30
        found = await asyncio.gather(*(client.probe(target, timeout_s) for target in TARGETS))
        messages = "too_large: over 3145728 bytes" if fault == "endless" else reason
        assert dict(zip(TARGETS, found, strict=True)) == {
            target: Failed(messages if target == "waku/messages" else reason) for target in TARGETS
        }
        with pytest.raises(ProbeFailed, match=reason):
            await client.read("1/a", timeout_s)
        await client.order("*", None)
        found = await asyncio.gather(*map(client.probe, TARGETS))
        assert not any(isinstance(each, Failed) for each in found)


async def test_errors_have_the_shape_of_the_protocol_they_interrupt() -> None:
    async with simulation() as client:
        await client.order("*", "rate-limit", code=200)
        for target in ("ppoi/1", "provider/1", "bundler/1"):
            assert await client.probe(target) == Failed("rate_limited: -32005")
        answer = await client.post("/rpc/1/a", LATEST)
        assert answer.document == {"jsonrpc": "2.0", "error": {"code": -32005, "message": "limit exceeded"}, "id": 7}
        assert (await client.get("/json/1")).body == b"Too Many Requests"
        await client.order("*", "status", code=500)
        assert (await client.post("/ppoi", {"id": 1})).document["error"]["code"] == -32603
        assert (await client.get("/waku/health")).content_type == "text/plain"
        await client.order("*", "status", code=302)
        async with client.session.post(client.url("/rpc/1/a"), json=LATEST, allow_redirects=False) as response:
            assert (response.status, response.headers["Location"]) == (302, "/elsewhere")


async def test_an_endpoint_can_be_wrong_about_everything_it_says() -> None:
    async with simulation() as client:
        true = await client.read("1/b")
        await client.order("rpc/1/a", "wrong-chain", chainId=5)
        with pytest.raises(ProbeFailed, match="wrong_chain"):
            await client.read("1/a")
        for fault, parameters, height, block_at in (
            ("lag", {"by": 40}, true.height - 40, true.block_at - 40 * 12 * SECOND),
            ("lie", {"by": 500}, true.height + 500, true.block_at),
            ("future", {"seconds": 900}, true.height, NOON + 900 * SECOND),
            ("past", {}, true.height, true.block_at - DAY),
            ("lie", {"by": -500}, true.height - 500, true.block_at),
            ("past", {"seconds": 10**10}, true.height, 0),
            ("genesis", {}, 0, 0),
            ("genesis", {"timestamp": NOON // 1000}, 0, NOON),
        ):
            await client.order("rpc/1/a", fault, **parameters)
            assert await client.read("1/a") == Reading(NOON, height, block_at)
        await client.order("rpc/1/a", "freeze")
        client.clock.pass_s(600)
        assert await client.height("1/a") == true.height
        assert await client.height("1/b") >= true.height + 49


async def position(client: Client, target: str) -> int:
    match await client.probe(target):
        case Blocks(at) | Indexes(at, _):
            return at
        case found:
            raise AssertionError(found)


@pytest.mark.parametrize("target", FOLLOWERS)
async def test_whatever_follows_can_lag_freeze_and_lie(target: str) -> None:
    async with simulation() as client:
        before = await position(client, target)
        await client.order(target, "lag", by=300)
        assert await position(client, target) == before - 300
        await client.order(target, "lie", by=70)
        assert await position(client, target) == before + 70
        await client.order(target, "freeze")
        client.clock.pass_s(3_600)
        assert await position(client, target) == before
        await client.order(target, None)
        assert await position(client, target) > before


@pytest.mark.parametrize(
    ("target", "nothing_yet"),
    [
        ("squid/1", Nothing()),
        ("hosted/1", Nothing()),
        ("subgraph/1", Failed("graphql_errors")),
        ("index-node/1", Failed("not_understood: no latest block of one chain")),
        ("ponder/1", Nothing()),
        ("envio/1", Nothing()),
    ],
)
async def test_an_indexer_rebuilt_from_scratch_has_nothing_and_then_climbs(
    target: str, nothing_yet: Nothing | Failed
) -> None:
    async with simulation() as client:
        before = await position(client, target)
        await client.order(target, "rebuild", times=49)
        client.clock.pass_s(59)
        assert await client.probe(target) == nothing_yet
        client.clock.pass_s(1)
        assert abs(before - await position(client, target) - 24 * 300) <= 1  # blocks of a day
        client.clock.pass_s(600)
        assert abs(before - await position(client, target) - (24 * 300 - 49 * 50)) <= 2
        client.clock.pass_s(1_300)
        caught_up = await position(client, target)
        await client.order(target, None)
        assert caught_up == await position(client, target)


@pytest.mark.parametrize(
    ("target", "fault", "expected"),
    [
        ("ponder/1", "missing-network", Nothing()),
        ("envio/1", "missing-network", Nothing()),
        ("provider/1", "wrong-chain", Failed("wrong_chain: 61 instead of 1")),
        ("provider/1", "genesis", Blocks(0)),
        ("bundler/1", "no-entry-point", Failed("pointer_missing: /0")),
        ("relayer", "paused", Failed("not_expected")),
        ("index-node/1", "missing-network", Failed("not_understood: the index node does not have the deployment")),
        ("subgraph/1", "null-status", Failed("graphql_errors")),
        ("squid/1", "null-status", Failed("graphql_errors")),
        ("waku/peers", "zero-peers", Peers(0)),
    ],
)
async def test_an_upstream_can_lack_what_is_asked_of_it(target: str, fault: str, expected: object) -> None:
    async with simulation() as client:
        await client.order("*", fault)
        assert await client.probe(target) == expected


async def took_s(asking: Awaitable[object]) -> float:
    began_s = time.monotonic()
    await asking
    return time.monotonic() - began_s


async def test_a_late_upstream_gives_its_right_answer_after_a_while() -> None:
    async with simulation() as client:
        of_one_answer = TARGETS[:-1]
        at_once = await asyncio.gather(*map(client.probe, of_one_answer))
        await client.order("*", "late", ms=700)
        assert await asyncio.gather(*map(client.probe, of_one_answer)) == at_once
        assert await took_s(client.get("/json/1")) >= 0.7


async def test_each_page_of_a_slow_store_takes_its_time_and_nothing_else_does() -> None:
    async with simulation() as client:
        await client.order("waku/messages", "slow-pages", ms=2_000)
        assert await took_s(client.store(pageSize=5)) >= 2
        assert await took_s(client.get("/waku/relay/v1/messages/%2Fwaku%2F2%2Frs%2F5%2F1")) < 2
        assert await took_s(client.get("/waku/health")) < 2


async def test_a_halted_chain_stops_for_everybody_and_goes_on_from_where_it_stood() -> None:
    async with simulation() as client:
        height = await client.height("1/a")
        await client.order("rpc/1", "halt")
        client.clock.pass_s(600)
        assert [await client.height(f"1/{letter}") for letter in "abc"] == [height] * 3
        assert await client.probe("squid/1") == Blocks(height - 5)
        await client.order("rpc/1/a", "lie", by=10)
        assert await client.height("1/a") == height + 10
        await client.order("rpc/1", "hang")
        client.clock.pass_s(120)
        await client.order("rpc", None)
        assert 9 <= await client.height("1/a") - height <= 11


async def test_a_reorganisation_takes_the_newest_blocks_back_once() -> None:
    async def latest_hash(client: Client, endpoint: str) -> str:
        return str((await client.post(f"/rpc/{endpoint}", LATEST)).document["result"]["hash"])

    async with simulation() as client:
        height, before = await client.height("1/a"), await latest_hash(client, "1/a")
        await client.order("rpc/1", "halt")
        await client.order("rpc/1", "reorg", depth=4)
        client.clock.pass_s(1)
        assert await client.height("1/a") == height - 4
        assert [each["fault"] for each in (await client.get("/control")).document["set"]] == ["halt"]
        await client.order("rpc/1", None)
        while await client.height("1/c") < height:
            client.clock.pass_s(1)
        assert await client.height("1/c") == height
        assert await latest_hash(client, "1/c") != before
