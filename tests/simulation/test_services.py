"""What each service's misfortunes look like in the report, one misfortune at a time."""

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from lookout.core.heads import Pace
from lookout.demo.sim.layout import ChainLayout
from tests.builders import MINUTE, NOON, SECOND
from tests.simulation.rehearsed import TWO_CHAINS, a_life, a_world, an_episode, plan_of, watch


@pytest.mark.clause("S3", "S13")
def test_a_halted_chain_leaves_its_indexers_current() -> None:
    halts = (an_episode(f"chain/{chain_id}", "halt", 60, 180) for chain_id in (1, 56))
    record = watch(a_world(*halts, layout=TWO_CHAINS), (a_life(0, 420),))
    for service in ("indexer", "hosted-indexer"):
        assert record.statuses(service, 56, 1, 240) == {"current"}
        assert record.statuses(service, 1, 1, 420) == {"current"}


@pytest.mark.clause("S3", "S15")
@pytest.mark.parametrize("percent", [30, 300], ids=["three times as fast", "three times as slow"])
def test_a_chain_that_changes_its_pace_leaves_its_indexers_current(percent: int) -> None:
    world = a_world(an_episode("chain/56", "pace", 60, 180, percent), layout=TWO_CHAINS)
    assert watch(world, (a_life(0, 360),)).statuses("indexer", 56, 1, 360) == {"current"}


@pytest.mark.clause("S3", "S15")
def test_the_allowance_follows_the_measured_pace_once_there_is_enough_of_it() -> None:
    """90 s behind are 30 blocks of this chain: too many by the configured block time, few enough by the real one."""
    quick = (ChainLayout(1, 3_000, 25_700_000),)
    world = a_world(
        an_episode("indexer/1", "freeze", 1, 1.5), an_episode("indexer/1", "behind", 2.5, 400, 100), layout=quick
    )
    plan = replace(plan_of(quick), chains={1: Pace(12_000, 1)})
    record = watch(world, (a_life(5, 60),), plan=plan)
    assert record.statuses("indexer", 1, 5.3, 14.9) == {"catching-up"}
    assert record.statuses("indexer", 1, 16.5, 60) == {"current"}


@pytest.mark.clause("R11", "S3")
def test_reorganisations_of_a_few_blocks_change_nothing() -> None:
    reorgs = [an_episode("chain/1", "reorg", minute, 0.001, 6) for minute in range(2, 178, 3)]
    record = watch(a_world(*reorgs), (a_life(0, 180),))
    rows = [row for _, row in record.of("indexer", 1)[1:]]
    assert {row.status for row in rows} == {"current"}
    positions = [row.metrics.position for row in rows if row.metrics.position is not UNSET]
    heads = [row.metrics.head for row in rows if row.metrics.head is not UNSET]
    assert any(position > head for position, head in zip(positions, heads, strict=True))
    assert sorted(heads) != heads


@pytest.mark.clause("S3", "S4", "S5", "S6")
def test_an_indexer_that_stops_indexing_falls_behind_by_degrees_and_comes_back() -> None:
    world = a_world(an_episode("indexer/1", "freeze", 10, 60))
    record = watch(world, (a_life(0, 120),))
    assert record.course("indexer", 1) == [
        ("unknown", "no-observation"),
        ("current", "synced"),
        ("catching-up", "behind"),
        ("degraded", "behind"),
        ("catching-up", "behind"),
        ("current", "synced"),
    ]
    changed_at = [
        next(at for at, row in record.of("indexer", 1) if row.status == s) for s in ("catching-up", "degraded")
    ]
    assert 2 * MINUTE <= changed_at[0] - (NOON + 10 * MINUTE) <= 4 * MINUTE
    assert 30 * MINUTE <= changed_at[1] - (NOON + 10 * MINUTE) <= 33 * MINUTE


@pytest.mark.clause("S1", "S2", "R5", "R6", "R7", "R8")
@pytest.mark.parametrize("kind", ["fail", "hang"])
def test_a_failing_indexer_is_unknown_twice_then_unavailable_until_it_answers(kind: str) -> None:
    world = a_world(an_episode("indexer/1", "fail" if kind == "fail" else "hang", 10, 20))
    rows = [row for _, row in watch(world, (a_life(0, 40),)).of("indexer", 1)]
    failed = [row for row in rows if row.reason == "unreachable"]
    last_good = rows[rows.index(failed[0]) - 1]
    assert [row.status for row in failed[:3]] == ["unknown", "unknown", "unavailable"]
    assert {row.status for row in failed[3:]} == {"unavailable"}
    assert {row.last_success_at for row in failed} == {last_good.observed_at}
    assert rows[rows.index(failed[-1]) + 1].status == "current"
    assert rows[-1].status == "current"


@pytest.mark.clause("S7", "S8", "S9")
def test_a_frozen_ppoi_node_is_excused_for_45_seconds_and_degraded_after_half_an_hour() -> None:
    world = a_world(an_episode("ppoi/1", "freeze", 10, 90))
    record = watch(world, (a_life(0, 150),))
    assert record.course("ppoi", 1) == [
        ("unknown", "no-observation"),
        ("current", "synced"),
        ("catching-up", "behind"),
        ("degraded", "behind"),
        ("catching-up", "behind"),
        ("current", "synced"),
    ]
    trailing_since_at = world.truth("ppoi", 1, NOON + 99 * MINUTE).trailing_since_at
    assert trailing_since_at is not None
    rows = record.of("ppoi", 1)
    assert record.statuses("ppoi", 1, 130, 150) == {"current"}
    for at, row in rows:
        if NOON + 10 * MINUTE <= at < NOON + 100 * MINUTE:
            trailing_ms = (row.observed_at or 0) - trailing_since_at
            if trailing_ms > 45 * SECOND + 44 * SECOND:
                assert row.status != "current"
            if trailing_ms > 30 * MINUTE + 3 * 44 * SECOND:
                assert row.status == "degraded"
            if trailing_ms < 45 * SECOND:
                assert row.status == "current"
            if trailing_ms < 30 * MINUTE:
                assert row.status != "degraded"


@pytest.mark.clause("S12", "S13", "R13")
def test_what_a_ppoi_node_lacks_is_unknown_and_never_unavailable() -> None:
    world = a_world(
        an_episode("ppoi/1", "no-network", 10, 30), an_episode("ppoi", "missing-list", 60, 30), layout=TWO_CHAINS
    )
    record = watch(world, (a_life(0, 120),))
    current, unknown = ("current", "synced"), "unknown"
    begin = (unknown, "no-observation")
    assert record.course("ppoi", 56) == [begin, current, (unknown, "incompatible-reference"), current]
    assert record.course("ppoi", 1) == [begin, current, begin, current, (unknown, "incompatible-reference"), current]


@pytest.mark.clause("S1", "S13")
def test_an_answer_that_cannot_be_compared_ends_a_row_of_failures() -> None:
    """Two probes fail, the node answers without the list, two probes fail again: never three in a row."""
    world = a_world(
        an_episode("ppoi", "fail", 10, 1.25),
        an_episode("ppoi", "missing-list", 11.25, 5),
        an_episode("ppoi", "fail", 16.25, 1.25),
    )
    record = watch(world, (a_life(0, 30),))
    assert [row.reason for _, row in record.of("ppoi", 1)].count("unreachable") == 4
    assert record.statuses("ppoi", 1, 10.6, 17) == {"unknown"}


@pytest.mark.clause("S10")
def test_broadcasters_are_told_by_chain() -> None:
    world = a_world(
        an_episode("broadcasters/1", "some-silent", 10, 10, 50),
        an_episode("broadcasters/1", "all-silent", 30, 10),
        an_episode("broadcasters/1", "none-known", 50, 10),
        layout=TWO_CHAINS,
    )
    record = watch(world, (a_life(0, 70),))
    assert record.course("broadcasters", 1) == [
        ("unknown", "no-observation"),
        ("current", "responding"),
        ("degraded", "partial-coverage"),
        ("current", "responding"),
        ("unknown", "unreachable"),
        ("unavailable", "unreachable"),
        ("current", "responding"),
        ("unknown", "no-observation"),
        ("current", "responding"),
    ]
    assert record.course("broadcasters", 56) == [("unknown", "no-observation"), ("current", "responding")]


@pytest.mark.clause("S11")
def test_a_messaging_node_without_peers_is_a_failing_one() -> None:
    record = watch(a_world(an_episode("messaging", "no-peers", 10, 20)), (a_life(0, 40),))
    assert record.course("messaging", None) == [
        ("unknown", "no-observation"),
        ("current", "responding"),
        ("unknown", "unreachable"),
        ("unavailable", "unreachable"),
        ("current", "responding"),
    ]
