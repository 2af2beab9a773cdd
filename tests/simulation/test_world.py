"""The simulated world itself: repeatable, at the chains' pace, with faults drawn as the table says; and the past that
the demo starts from."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from lookout.app.demo import build_demo_store
from lookout.demo.fortnight import FORTNIGHT_MS, draw_incidents, make_events
from lookout.demo.sim.chain import LAUNCH
from lookout.demo.sim.faults import FAULTS, draw_faults
from lookout.demo.sim.world import World, launch_world
from lookout.store.sqlite import SqliteReader
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND


def test_a_world_is_a_function_of_its_seed_and_the_instant_alone() -> None:
    one, other = (World(LAUNCH, 7, NOON, draw_faults(LAUNCH, 7, NOON, NOON + 2 * DAY, intensity=10)) for _ in range(2))
    instants = [NOON + number * 977_003 for number in range(150)]
    said = {at: (one.endpoint_head("rpc/56/a", at), one.network(1, at), one.indexed("squid/1", at)) for at in instants}
    Random(1).shuffle(instants)
    for at in instants:
        assert said[at] == (other.endpoint_head("rpc/56/a", at), other.network(1, at), other.indexed("squid/1", at))
    assert draw_faults(LAUNCH, 8, NOON, NOON + 2 * DAY, intensity=10) != one.planned


def test_blocks_come_at_the_chains_pace_with_timestamps_in_whole_seconds_of_the_past() -> None:
    world = World(LAUNCH, 1, NOON - HOUR)
    for chain in LAUNCH:
        heads = [(at, world.head(chain.chain_id, at)) for at in range(NOON, NOON + HOUR, 911)]
        assert all(head.block_at % SECOND == 0 and head.block_at <= at for at, head in heads)
        assert all(at - head.block_at <= chain.block_ms + SECOND for at, head in heads)
        assert all(earlier.height <= later.height for (_, earlier), (_, later) in pairwise(heads))
        assert abs(heads[-1][1].height - heads[0][1].height - HOUR / chain.block_ms) <= 1 + SECOND / chain.block_ms


def test_an_order_changes_nothing_of_the_time_before_it() -> None:
    world = World(LAUNCH, 1, NOON - HOUR)
    instants = range(NOON - HOUR, NOON, 47 * SECOND)
    before = [(world.head(56, at), world.indexed("squid/56", at)) for at in instants]
    world.faults.order({"target": "*", "fault": "halt"}, NOON)
    world.faults.order({"target": "rpc/56", "fault": "reorg", "depth": 6}, NOON)
    world.faults.order({"target": "squid", "fault": "freeze"}, NOON)
    assert [(world.head(56, at), world.indexed("squid/56", at)) for at in instants] == before
    assert world.head(56, NOON + HOUR).height == world.head(56, NOON).height


def test_the_drawn_faults_of_a_target_can_be_ordered_too_and_do_not_overlap() -> None:
    drawn = draw_faults(LAUNCH, 1, NOON, NOON + 365 * DAY)
    assert all(NOON < fault.begin_at < NOON + 365 * DAY for fault in drawn)
    for target in {fault.target for fault in drawn}:
        faults = [fault for fault in drawn if fault.target == target]
        assert all(earlier.end_at < later.begin_at for earlier, later in pairwise(faults))
        for kind in {fault.kind for fault in faults}:
            World(LAUNCH, 1, NOON).faults.order({"target": target, "fault": kind}, NOON)
    assert {"halt", "reorg", "hang", "lag", "freeze", "silent", "missing-list"} <= {fault.kind for fault in drawn}
    assert {fault.kind for fault in drawn} <= FAULTS.keys()


def test_the_fortnight_shows_every_status_and_ends_well(tmp_path: Path) -> None:
    build_demo_store(tmp_path, "127.0.0.1:8080", seed=7)
    reader = SqliteReader(tmp_path / "lookout.db")
    live, history = (reader.read(name) for name in ("live", "history"))
    reader.close()
    assert live is not None
    assert history is not None
    characters = {character for row in json.loads(history.body)["rows"] for character in row["buckets"]}
    assert characters == set("ckdu?-.")
    assert all((row["uptime"]["14d"] or 1) >= 0.995 for row in json.loads(history.body)["rows"])
    assert {row["status"] for row in json.loads(live.body)["checks"]} == {"current", "unmonitored"}


@pytest.mark.parametrize("seed", range(20))
def test_every_network_of_the_fortnight_was_without_any_problem_for_almost_all_of_the_time(seed: int) -> None:
    world, lasted_ms = launch_world(seed, NOON), Counter[int | None]()
    for check, kind, begin_at, end_at in draw_incidents(world, seed, NOON):
        if check is not None and kind not in ("nothing", "missing-list"):  # which are unknown
            lasted_ms[check.chain_id] += end_at - begin_at
    shared_ms = lasted_ms.pop(None)
    assert max(lasted_ms.values()) + shared_ms <= FORTNIGHT_MS // 200
    assert min(end_at - begin_at for _, _, begin_at, end_at in draw_incidents(world, seed, NOON)) > 10 * MINUTE


def test_a_seed_gives_the_same_events() -> None:
    world = launch_world(3, NOON)
    one, other = ([*make_events(world, draw_incidents(world, 3, NOON), NOON - FORTNIGHT_MS, NOON)] for _ in range(2))
    assert one == other
    assert draw_incidents(world, 4, NOON) != draw_incidents(world, 3, NOON)
