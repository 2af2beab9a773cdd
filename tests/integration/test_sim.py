"""The simulated upstreams over real sockets, as Lookout's own sources find them: in health, and under every fault."""

import asyncio
import time

import pytest

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Failed, Indexes, Members, Peers
from lookout.demo.sim.chain import LAUNCH
from lookout.demo.sim.faults import FAULTS, PLACES
from lookout.demo.sim.world import launch_world
from lookout.protocols.client.failure import ProbeFailed
from tests.builders import DAY, NOON, SECOND
from tests.integration.sim_client import PATIENCE_S, TARGETS, simulation


@pytest.mark.clause("M8", "M9")
async def test_every_upstream_answers_lookout_and_follows_its_chain() -> None:
    async with simulation() as client:
        for chain in LAUNCH:
            readings = [await client.read(f"{chain.chain_id}/{letter}") for letter in "abc"]
            assert readings == readings[:1] * 3
            assert NOON - 24 * SECOND <= readings[0].block_at <= NOON
        found = {target: await client.probe(target) for target in TARGETS}
        height = await client.height("1/a")
        assert found["squid/1"] == found["hosted/1"] == found["json/1"] == Blocks(height - 5)
        match found["ppoi/1"], found["waku/peers"], found["waku/messages"]:
            case Indexes(validated, current), Peers(peers), Members(9, 9):
                assert validated == current
                assert peers > 0
            case other:
                raise AssertionError(other)
        client.clock.wall += 120 * SECOND
        assert await client.height("1/a") - height in (9, 10, 11)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("refuse", "reset"), ("hang", "timeout: first byte"), ("garbage", "not_json"), ("status", "http_status: 500")],
)
async def test_a_fault_of_the_wire_can_be_set_for_every_upstream(fault: str, reason: str) -> None:
    async with simulation() as client:
        await client.order("*", fault)
        timeout_s = PATIENCE_S if fault == "hang" else 30
        found = await asyncio.gather(*(client.probe(target, timeout_s) for target in TARGETS))
        assert found == [Failed(reason)] * len(TARGETS)
        with pytest.raises(ProbeFailed, match=reason):
            await client.read("1/a", timeout_s)
        await client.order("*", None)
        found = await asyncio.gather(*map(client.probe, TARGETS))
        assert not any(isinstance(answer, Failed) for answer in found)


async def test_a_late_answer_takes_its_time() -> None:
    async with simulation() as client:
        await client.order("*", "late", ms=700)
        began_s = time.monotonic()
        await client.probe("json/1")
        assert time.monotonic() - began_s >= 0.7


async def test_an_endpoint_can_be_wrong_about_everything_it_says() -> None:
    async with simulation() as client:
        true = await client.read("1/b")
        await client.order("rpc/1/a", "wrong-chain", chainId=5)
        with pytest.raises(ProbeFailed, match="wrong_chain"):
            await client.read("1/a")
        for fault, parameters, height, block_at in (
            ("lag", {"by": 40}, true.height - 40, true.block_at - 40 * 12 * SECOND),
            ("lie", {"by": -500}, true.height - 500, true.block_at),
            ("future", {"seconds": 900}, true.height, NOON + 900 * SECOND),
            ("past", {}, true.height, true.block_at - DAY),
            ("past", {"seconds": 10**10}, true.height, 0),
            ("genesis", {"timestamp": NOON // 1000}, 0, NOON),
        ):
            await client.order("rpc/1/a", fault, **parameters)
            assert await client.read("1/a") == Reading(NOON, height, block_at)
        await client.order("rpc/1/a", "freeze")
        client.clock.wall += 600 * SECOND
        assert await client.height("1/a") == true.height
        assert await client.height("1/b") >= true.height + 49


async def test_a_chain_that_halts_or_reorganises_does_so_for_every_endpoint_and_indexer() -> None:
    async with simulation() as client:
        height = await client.height("1/a")
        await client.order("rpc/1", "halt")
        client.clock.wall += 600 * SECOND
        assert [await client.height(f"1/{letter}") for letter in "abc"] == [height] * 3
        assert await client.probe("squid/1") == Blocks(height - 5)
        await client.order("rpc/1", "reorg", depth=4)
        client.clock.wall += 1 * SECOND
        assert await client.height("1/a") == height - 4
        await client.order("rpc/1", None)
        client.clock.wall += 60 * SECOND
        assert height <= await client.height("1/c") <= height + 1


async def test_the_longest_target_decides_and_clearing_reaches_all_beneath() -> None:
    async with simulation() as client:
        await client.order("*", "lag", by=10)
        await client.order("rpc/1", "lag", by=20)
        await client.order("rpc/1/a", "lag", by=30)
        await client.order("rpc/1/b", "late", ms=1)
        heights = [await client.height(f"1/{letter}") for letter in "abc"]
        assert (heights[1] - heights[0], heights[1] - heights[2]) == (30, 20)
        assert {"target": "rpc/1/a", "fault": "lag", "by": 30} in (await client.control()).document["set"]
        await client.order("rpc", None)
        assert (await client.control()).document["set"] == [{"target": "*", "fault": "lag", "by": 10}]
        assert heights[1] - await client.height("1/a") == 10


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="malformed"),
        pytest.param(b'{"target":"ppoi"}', id="no fault"),
        pytest.param(b'{"target":"ppio","fault":"hang"}', id="no target"),
        pytest.param(b'{"target":"ppoi","fault":["hang"]}', id="two faults"),
        pytest.param(b'{"target":"waku","fault":"halt"}', id="misplaced"),
        pytest.param(b'{"target":"*","fault":"hang","by":5}', id="parameter of another"),
        pytest.param(b'{"target":"*","fault":"lag","by":"5"}', id="a text"),
    ],
)
async def test_an_order_that_cannot_be_followed_is_refused(body: bytes) -> None:
    async with simulation() as client:
        await client.order("ppoi", "hang")
        before = await client.control()
        answer = await client.control(body)
        assert (answer.http_code, list(answer.document)) == (400, ["error"])
        assert await client.control() == before


async def test_the_control_route_says_what_each_fault_does() -> None:
    async with simulation() as client:
        overview = (await client.control()).document
    assert {name: said["what"] for name, said in overview["faults"].items()} == {
        name: kind.what for name, kind in FAULTS.items()
    }


async def test_a_place_can_be_cut_off_from_all_upstreams_or_from_some() -> None:
    async with simulation() as client:

        async def answers(path: str) -> bool:
            async with client.session.get(f"{client.base}{path}") as answer:
                return answer.status == 200

        ways = ("/json/1", *(f"/line/{place}/json/1" for place in PLACES))
        assert [await answers(way) for way in ways] == [True, True, True]
        await client.order("line/lima/json", "status")
        assert [await answers(way) for way in ways] == [True, True, False]
        assert await answers("/line/lima/waku/admin/v1/peers/connected")
        await client.order("line/lima", "status")
        assert not await answers("/line/lima/waku/admin/v1/peers/connected")
        assert not await answers("/line/paris/json/1")


async def test_a_seed_makes_things_fail_by_themselves_and_an_order_overrides_it() -> None:
    world = launch_world(3, NOON)
    hangs = [fault for fault in world.planned if fault.kind == "hang"]
    at = next(fault.begin_at for fault in hangs if fault.target == "hosted/1")
    async with simulation(world, at) as client:
        assert await client.probe("hosted/1", PATIENCE_S) == Failed("timeout: first byte")
        await client.order("hosted/1", "late", ms=1)
        assert not isinstance(await client.probe("hosted/1"), Failed)
        await client.order("hosted/1", None)
        client.clock.wall = at - 1
        assert not isinstance(await client.probe("hosted/1"), Failed)
