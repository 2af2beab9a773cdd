"""The simulated upstreams over real sockets, as Lookout's own sources find them: in health, and under every fault."""

import asyncio
import gzip
import time
from contextlib import chdir
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Failed, Indexes, Members, Nothing, Peers, Responding
from lookout.demo.sim.faults import FAULTS
from lookout.demo.sim.server import UpstreamFront, load_or_make
from lookout.demo.sim.world import launch_world
from lookout.protocols.broadcasters.announcements import Announcement
from lookout.protocols.client.failure import ProbeFailed
from tests.builders import DAY, MINUTE, NOON, SECOND
from tests.commands import lookout
from tests.contract.protocols.announcers import read_announcement
from tests.integration.fast import a_config
from tests.integration.sim_client import (
    CHAINS,
    LATEST,
    PATIENCE_S,
    REQUIRED_LIST,
    TARGETS,
    Client,
    a_simulation,
    simulation,
)

TOPIC_OF_1 = "/railgun/v2/0-1-fees/json"
NODE_STATUS = {"jsonrpc": "2.0", "id": 1, "method": "ppoi_node_status", "params": {}}
FOLLOWERS = (
    *("squid/1", "hosted/1", "subgraph/1", "json/1", "ponder/1", "index-node/1", "envio/1"),
    *("provider/1", "ppoi/1"),
)


@pytest.mark.clause("M8", "M9")
async def test_everybody_answers_lookout_and_follows_the_chain() -> None:
    async with simulation() as client:
        for chain_id in CHAINS:
            readings = [await client.read(f"{chain_id}/{letter}") for letter in "abc"]
            assert readings == readings[:1] * 3
            assert NOON - 24 * SECOND <= readings[0].block_at <= NOON
        found = {target: await client.probe(target) for target in TARGETS}
        height = await client.height("1/a")
        position = Blocks(height - 5)
        for target in ("squid/1", "subgraph/1", "index-node/1", "ponder/1", "envio/1", "json/1"):
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
        pytest.param("/rpc/1/a", {}, 200, "-32600", id="no request"),
        pytest.param("/rpc/1/a", {**LATEST, "method": "eth_mining"}, 200, "-32601", id="an unknown method"),
        pytest.param("/rpc/1/a", {**LATEST, "params": ["0x1", False]}, 200, "-32602", id="an old block"),
        pytest.param("/rpc/2/a", LATEST, 404, "no rpc/2/a", id="a chain that is not there"),
        pytest.param("/hosted/11155111/graphql", {}, 404, "no hosted", id="the test network has no hosted indexer"),
        pytest.param("/squid/1/graphql", {"query": "{ height }"}, 400, "height", id="an unknown query"),
        pytest.param("/bundler/1", LATEST, 200, "-32601", id="a bundler is no node"),
        pytest.param("/envio/v1/graphql", {"query": "{ _meta { chain } }"}, 400, "chain", id="an unknown field"),
        pytest.param("/ppoi", {**NODE_STATUS, "method": "ppoi_else"}, 404, "-32601", id="an unknown ppoi method"),
        pytest.param("/ppoi", [], 400, "-32600", id="a batch, which a ppoi node does not know"),
    ],
)
async def test_what_is_posted_is_answered_as_the_real_ones_do(path: str, asked: Any, http_code: int, said: str) -> None:
    async with simulation() as client:
        answer = await client.post(path, asked)
        assert answer.http_code == http_code
        assert said in answer.body.decode()


async def test_the_ppoi_node_gives_one_status_in_two_ways_and_never_answers_without_params() -> None:
    async with simulation() as client:
        status = (await client.get("/ppoi/node-status-v2")).document
        assert (await client.post("/ppoi", NODE_STATUS)).document == {"jsonrpc": "2.0", "result": status, "id": 1}
        assert status["listKeys"] == [REQUIRED_LIST]
        without_params = {key: value for key, value in NODE_STATUS.items() if key != "params"}
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                await client.post("/ppoi", without_params)


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


@pytest.mark.parametrize(
    ("target", "fault", "expected"),
    [
        ("ponder/1", "missing-network", Nothing()),
        ("envio/1", "missing-network", Nothing()),
        ("provider/1", "wrong-chain", Failed("wrong_chain: 61 instead of 1")),
        ("bundler/1", "no-entry-point", Failed("pointer_missing: /0")),
        ("relayer", "paused", Failed("not_expected")),
        ("index-node/1", "missing-network", Failed("not_understood: the index node does not have the deployment")),
        ("subgraph/1", "null-status", Failed("graphql_errors")),
        ("waku/peers", "zero-peers", Peers(0)),
        ("waku/messages", "unsigned", Members(0, 9)),
    ],
)
async def test_an_upstream_can_lack_what_is_asked_of_it(target: str, fault: str, expected: object) -> None:
    async with simulation() as client:
        await client.order("*" if fault != "unsigned" else "broadcasters", fault)
        client.clock.pass_s(180 if fault == "unsigned" else 0)
        assert await client.probe(target) == expected


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
        client.clock.pass_s(600)
        assert await client.height("1/a") == true.height
        assert await client.height("1/b") >= true.height + 49


async def position_of(client: Client, target: str) -> int:
    match await client.probe(target):
        case Blocks(at) | Indexes(at, _):
            return at
        case found:
            raise AssertionError(found)


@pytest.mark.parametrize("target", FOLLOWERS)
async def test_whatever_follows_can_lag_freeze_and_lie(target: str) -> None:
    async with simulation() as client:
        before = await position_of(client, target)
        await client.order(target, "lag", by=300)
        assert await position_of(client, target) == before - 300
        await client.order(target, "lie", by=70)
        assert await position_of(client, target) == before + 70
        await client.order(target, "freeze")
        client.clock.pass_s(3_600)
        assert await position_of(client, target) == before
        await client.order(target, None)
        assert await position_of(client, target) > before


async def test_an_indexer_rebuilt_from_scratch_has_nothing_and_then_climbs() -> None:
    async with simulation() as client:
        before = await position_of(client, "subgraph/1")
        await client.order("subgraph/1", "rebuild", times=49)
        client.clock.pass_s(59)
        assert await client.probe("subgraph/1") == Failed("graphql_errors")
        client.clock.pass_s(1)
        assert abs(before - await position_of(client, "subgraph/1") - 24 * 300) <= 1  # blocks of a day
        client.clock.pass_s(1_900)
        caught_up = await position_of(client, "subgraph/1")
        await client.order("subgraph/1", None)
        assert caught_up == await position_of(client, "subgraph/1")


async def test_a_chain_that_halts_or_reorganises_does_so_for_everybody() -> None:
    async def latest_hash() -> str:
        return str((await client.post("/rpc/1/c", LATEST)).document["result"]["hash"])

    async with simulation() as client:
        height, before = await client.height("1/a"), await latest_hash()
        await client.order("rpc/1", "halt")
        client.clock.pass_s(600)
        assert [await client.height(f"1/{letter}") for letter in "abc"] == [height] * 3
        assert await client.probe("squid/1") == Blocks(height - 5)
        await client.order("rpc/1", "reorg", depth=4)
        client.clock.pass_s(1)
        assert await client.height("1/a") == height - 4
        await client.order("rpc/1", None)
        while await client.height("1/c") < height:
            client.clock.pass_s(1)
        assert await client.height("1/c") == height
        assert await latest_hash() != before


async def test_a_late_upstream_and_the_pages_of_a_slow_store_take_their_time() -> None:
    async with simulation() as client:
        for target, fault, path in (
            ("*", "late", "/json/1"),
            ("waku/messages", "slow-pages", "/waku/store/v3/messages"),
        ):
            await client.order(target, fault, ms=700)
            began_s = time.monotonic()
            assert (await client.get(path)).http_code == 200
            assert time.monotonic() - began_s >= 0.7
            await client.order(target, None)


def believed(messages: list[Any]) -> list[Announcement]:
    """What Lookout believes of these messages."""
    read = [read_announcement(each["payload"], each["timestamp"] // 10**6) for each in messages]
    return [each for each in read if each is not None]


async def test_every_broadcaster_announces_about_every_twenty_seconds_and_its_signature_verifies() -> None:
    async with simulation() as client:
        members = (await client.get("/")).document["broadcasters"]
        answer = await client.store(contentTopics=TOPIC_OF_1, startTime=(NOON - 2 * MINUTE) * 10**6)
    assert [len(members[str(chain_id)]) for chain_id in CHAINS] == [9, 6, 7, 5, 2]
    announcements = believed([stored["message"] for stored in answer["messages"]])
    assert len(announcements) == len(answer["messages"])
    sent: dict[str, list[int]] = {}
    for each in announcements:
        assert NOON - 2 * MINUTE <= each.sent_at <= NOON
        assert (each.expires_at, each.available_wallets) == (each.sent_at + 5 * MINUTE, 2)
        sent.setdefault(each.address, []).append(each.sent_at)
    assert sorted(sent) == sorted(members["1"])
    for instants in sent.values():
        assert all(15_000 <= after - before <= 30_000 for before, after in pairwise(instants))
        assert NOON - instants[-1] < 30_000


async def heard_since(client: Client, after_at: int) -> set[str]:
    """Who was heard on chain 1 since an instant, and is believed."""
    answer = await client.store(contentTopics=TOPIC_OF_1, startTime=(after_at + 1) * 10**6, ascending="false")
    return {each.address for each in believed([stored["message"] for stored in answer["messages"]])}


async def test_silent_broadcasters_are_not_heard_and_what_they_did_not_send_never_comes() -> None:
    async with simulation() as client:
        members = (await client.get("/")).document["broadcasters"]["1"]
        await client.order("broadcasters/1", "silent", first=4)
        client.clock.pass_s(60)
        assert await heard_since(client, NOON) == set(members[4:])
        await client.order("broadcasters/1", None)
        assert await heard_since(client, NOON) == set(members[4:])
        client.clock.pass_s(60)
        assert await heard_since(client, NOON) == set(members)


async def test_the_longest_target_decides_and_clearing_reaches_all_beneath() -> None:
    async with simulation() as client:
        await client.order("*", "lag", by=10)
        await client.order("rpc/1", "lag", by=20)
        await client.order("rpc/1/a", "lag", by=30)
        await client.order("rpc/1/b", "late", ms=1)
        heights = [await client.height(f"1/{letter}") for letter in "abc"]
        assert (heights[1] - heights[0], heights[1] - heights[2]) == (30, 20)
        assert {"target": "rpc/1/a", "fault": "lag", "by": 30} in (await client.get("/control")).document["set"]
        await client.order("rpc", None)
        assert (await client.get("/control")).document["set"] == [{"target": "*", "fault": "lag", "by": 10}]
        assert heights[1] - await client.height("1/a") == 10


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(b"{", "the body is not JSON", id="malformed"),
        pytest.param(b'{"target":"ppoi"}', "an order has a target and a fault", id="no fault"),
        pytest.param(b'{"target":["*"],"fault":"hang"}', "target is ['*']; there are", id="a target that is no text"),
        pytest.param(b'{"target":"waku","fault":"halt"}', "fault is 'halt'; waku can have refuse", id="misplaced"),
        pytest.param(b'{"target":"*","fault":"hang","by":5}', "by: hang takes no parameter", id="parameter of another"),
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
    at = next(fault.begin_at for fault in hangs if fault.target == "hosted/1")
    async with simulation(world, at) as client:
        assert await client.probe("hosted/1", PATIENCE_S) == Failed("timeout: first byte")
        await client.order("hosted/1", "late", ms=1)
        assert not isinstance(await client.probe("hosted/1"), Failed)
        await client.order("hosted/1", None)
        client.clock.at = at - 1
        assert not isinstance(await client.probe("hosted/1"), Failed)


@pytest.mark.clause("M9")
async def test_what_a_client_accepts_compressed_it_gets_compressed() -> None:
    async with (
        simulation(front=UpstreamFront(compresses=True)) as client,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):
        async with session.get(client.url("/json/1"), headers={"Accept-Encoding": "gzip"}) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            body = gzip.decompress(await response.read())
        async with session.get(client.url("/json/1"), headers={"Accept-Encoding": "identity"}) as response:
            assert "Content-Encoding" not in response.headers
            assert await response.read() == body
        assert await client.probe("squid/1") == Blocks(await client.height("1/a") - 5)


@pytest.mark.clause("M3")
async def test_an_untrusted_certificate_which_is_made_once_is_a_failed_probe(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    tls, made = load_or_make(folder, "127.0.0.1"), (folder / "cert.pem").read_bytes()
    assert (folder / "key.pem").stat().st_mode & 0o077 == 0
    load_or_make(folder, "127.0.0.1")
    assert (folder / "cert.pem").read_bytes() == made
    async with simulation(front=UpstreamFront(tls=tls)) as client:
        assert await client.probe("squid/1") == Failed("tls: self-signed")


@pytest.mark.clause("M9")
def test_every_source_works_through_tls_and_compression_if_it_trusts_the_certificate(tmp_path: Path) -> None:
    with a_simulation(tmp_path, "--tls", "tls", "--gzip") as base:
        assert base.startswith("https://")
        (tmp_path / "lookout.toml").write_text(a_config(base, probe_timeout_s=10))
        trusting = lookout(tmp_path, "probe", "-c", "lookout.toml", environment={"SSL_CERT_FILE": "tls/cert.pem"})
    assert trusting.returncode == 0, trusting.stdout


def test_a_certificate_that_cannot_be_used_is_named_and_not_made(tmp_path: Path) -> None:
    load_or_make(tmp_path / "tls", "localhost")
    (tmp_path / "tls" / "cert.pem").unlink()
    left = sorted(tmp_path.rglob("*"))
    with chdir(tmp_path):  # where nobody can listen: what is not refused for its certificate ends for that
        refused = CliRunner().invoke(main, ["sim", "--listen", "192.0.2.1:1", "--tls", "tls"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "lookout: --tls: tls: No such file or directory\n"
    assert sorted(tmp_path.rglob("*")) == left
