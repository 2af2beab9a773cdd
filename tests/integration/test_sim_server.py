"""The simulation as a whole over real sockets: its control route, its seed, and its end."""

import asyncio
import time
from pathlib import Path

import aiohttp
import pytest

from lookout.core.model import Failed
from lookout.demo.sim.faults import FAULTS
from lookout.demo.sim.server import serving
from lookout.demo.sim.world import launch_world
from tests.builders import NOON
from tests.integration.sim_client import LATEST, PATIENCE_S, Client, Clock, simulation


async def test_the_longest_target_decides_and_clearing_reaches_all_beneath() -> None:
    async with simulation() as client:
        await client.order("*", "lag", by=10)
        await client.order("rpc/1", "lag", by=20)
        await client.order("rpc/1/a", "lag", by=30)
        await client.order("rpc/1/b", "late", ms=1)
        heights = [await client.height(f"1/{letter}") for letter in "abc"]
        assert (heights[1] - heights[0], heights[1] - heights[2]) == (30, 20)
        listed = (await client.get("/control")).document["set"]
        assert {"target": "rpc/1/a", "fault": "lag", "by": 30} in listed
        assert {"target": "rpc/1/b", "fault": "late", "ms": 1} in listed
        await client.order("rpc", None)
        assert (await client.get("/control")).document["set"] == [{"target": "*", "fault": "lag", "by": 10}]
        assert heights[1] - await client.height("1/a") == 10
        await client.order("*", None)
        assert await client.height("1/a") == heights[1]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"{", "the body is not JSON", id="malformed"),
        pytest.param(b"[]", "an order has a target and a fault", id="not an object"),
        pytest.param(b'{"target":"ppoi"}', "an order has a target and a fault", id="no fault"),
        pytest.param(b'{"target":"rpc/2","fault":"hang"}', "target is 'rpc/2'; there are *, broadcasters", id="target"),
        pytest.param(b'{"target":["*"],"fault":"hang"}', "target is ['*']; there are", id="a target that is no text"),
        pytest.param(b'{"target":"*","fault":"fire"}', "fault is 'fire'; * can have refuse, hang", id="unknown fault"),
        pytest.param(b'{"target":"*","fault":[]}', "fault is []; * can have", id="a fault that is no text"),
        pytest.param(b'{"target":"waku","fault":"halt"}', "fault is 'halt'; waku can have refuse", id="misplaced"),
        pytest.param(b'{"target":"*","fault":"hang","by":5}', "by: hang takes no parameter", id="parameter of another"),
        pytest.param(b'{"target":"*","fault":"lag","by":0}', "by is 0; it is a whole number from 1", id="too small"),
        pytest.param(b'{"target":"*","fault":"lag","by":true}', "by is True; it is a whole number", id="a boolean"),
        pytest.param(b'{"target":"*","fault":null,"by":5}', "by: nothing more can be said", id="clearing with more"),
    ],
)
async def test_an_order_that_cannot_be_followed_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    async with simulation() as client:
        await client.order("ppoi", "hang")
        before = (await client.get("/control")).body
        answer = await client.post_bytes("/control", body)
        assert (answer.http_code, list(answer.document)) == (400, ["error"])
        assert reason in answer.document["error"]
        assert (await client.get("/control")).body == before


async def test_every_fault_is_listed_by_the_control_route_and_explained_in_the_documentation() -> None:
    page = (Path(__file__).parent.parent.parent / "CONTRIBUTING.md").read_text()
    for name, kind in FAULTS.items():
        assert f"`{name}`" in page, name
        if kind.parameter is not None:
            assert f"`{kind.parameter.name}`" in page, name
    async with simulation() as client:
        assert list((await client.get("/control")).document["faults"]) == list(FAULTS)
        subjects = (await client.get("/")).document["subjects"]
        assert all(f"`{family}" in page for family in {subject.split("/")[0] for subject in subjects})


async def test_a_seed_makes_things_fail_by_themselves_and_an_order_overrides_it() -> None:
    world = launch_world(3, NOON)
    hangs = [fault for fault in world.planned if fault.begin_at > NOON and fault.kind == "hang"]
    for target, address in (("indexer/1", "json/1"), ("hosted/1", "hosted/1"), ("waku/peers", "waku/peers")):
        at = next(fault.begin_at for fault in hangs if fault.target == target)
        async with simulation(world, at) as client:
            assert await client.probe(address, PATIENCE_S) == Failed("timeout: first byte")
            await client.order(address, "late", ms=1)
            assert not isinstance(await client.probe(address), Failed)
            await client.order(address, None)
            client.clock.at = at - 1
            assert not isinstance(await client.probe(address), Failed)


async def test_stopping_ends_every_connection_that_is_held() -> None:
    clock = Clock()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async with serving("127.0.0.1", 0, launch_world(None, NOON), clock.now) as (host, port):
            client = Client(session, f"http://{host}:{port}", clock)
            for target, fault in (("rpc/1/a", "hang"), ("rpc/1/b", "drip"), ("rpc/1/c", "endless")):
                await client.order(target, fault)
            await client.order("rpc/56/a", "late", ms=60_000)
            hanging = [asyncio.create_task(client.post("/rpc/1/a", LATEST)) for _ in range(20)]
            hanging += [asyncio.create_task(client.post("/rpc/56/a", LATEST)) for _ in range(20)]
            dripping = [await session.post(client.url("/rpc/1/b"), json=LATEST) for _ in range(20)]
            unread = [await session.post(client.url("/rpc/1/c"), json=LATEST) for _ in range(20)]
            await asyncio.sleep(0.3)
            stopped_s = time.monotonic()
        took_s = time.monotonic() - stopped_s
        outcomes = await asyncio.gather(*hanging, return_exceptions=True)
        assert all(isinstance(outcome, aiohttp.ClientConnectionError) for outcome in outcomes)
        for response in (*dripping, *unread):
            response.close()
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.get("/control")
    assert took_s < 30  # and not the minutes for which they would be held
