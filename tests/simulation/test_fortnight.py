"""Seeded worlds lived through on the virtual clock, every publication held against the simulated truth."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from lookout.core.model import Check
from lookout.demo.rehearsal import Life, Listeners, rehearse
from lookout.demo.sim.episodes import draw_episodes
from lookout.demo.sim.layout import LAUNCH, Layout
from lookout.demo.sim.world import World
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.simulation.rehearsed import ONE_CHAIN, plan_of
from tests.simulation.witness import Witness

BEGIN_AT = NOON - 15 * DAY + 100 * SECOND

WITNESSED = pytest.mark.clause(
    *("M3", "M5", "M6", "M7", "M8", "M15"),
    *("R1", "R2", "R3", "R4", "R5", "R7", "R8", "R9", "R12", "R13"),
    *("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S15"),
    *("H1", "H2", "H3", "H4", "H5", "H6", "H8", "H9", "H10", "H11", "H12", "H16"),
)


def a_drawn_world(layout: Layout, seed: int, lasts_ms: int, spared: Sequence[str] = (), intensity: float = 1) -> World:
    """A world of drawn faults, some subjects being spared."""
    drawn = draw_episodes(layout, seed, BEGIN_AT, BEGIN_AT + lasts_ms, intensity)
    return World(layout, seed, BEGIN_AT, (episode for episode in drawn if episode.subject not in spared))


def witnessed(world: World, lives: Sequence[Life], seed: int) -> tuple[Witness, dict[str, Any]]:
    """A rehearsal in front of a witness, and its last history."""
    plan = plan_of(world.layout)
    witness = Witness(world, plan, lives)
    ledger = rehearse(plan, world, lives, Random(seed), listeners=Listeners(published=witness.published))
    return witness, witness.conclude(ledger)


@WITNESSED
@pytest.mark.long
@pytest.mark.clause("M10", "M14", "H7", "H13", "S14")
def test_fifteen_days_of_faults_and_stops_are_reported_as_they_truly_were() -> None:
    lives = (
        Life(BEGIN_AT, BEGIN_AT + 3 * DAY + 7 * HOUR),
        Life(BEGIN_AT + 3 * DAY + 8 * HOUR, BEGIN_AT + 7 * DAY),
        Life(BEGIN_AT + 7 * DAY + 20 * SECOND, BEGIN_AT + 11 * DAY),
        Life(BEGIN_AT + 11 * DAY + 4 * MINUTE, NOON + 2 * MINUTE),
    )
    spared = ("messaging", "indexer/1", "rpc/1/1", "rpc/1/2")
    witness, history = witnessed(a_drawn_world(LAUNCH, 1, 15 * DAY, spared), lives, seed=1)
    assert len(history["rows"]) == 21
    assert {len(row["buckets"]) for row in history["rows"]} == {4033}
    witness.assert_always_current(Check("messaging", None), history)
    witness.assert_always_current(Check("indexer", 1), history)
    for service in ("ppoi", "indexer", "hosted-indexer"):
        for status in ("current", "catching-up", "degraded", "unavailable", "unknown"):
            assert witness.compared[service, status] > 0, f"this world never made {service} {status}"
    assert witness.doubtful < 0.05 * sum(witness.compared.values())


@WITNESSED
@pytest.mark.parametrize(
    "seed",
    [*range(100, 104), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(104, 124))],
    ids="seed {}".format,
)
def test_a_stormy_half_day_is_reported_as_it_truly_was(seed: int) -> None:
    spared = ("rpc/1/1", "rpc/1/2") if seed % 3 else ()
    world = a_drawn_world(ONE_CHAIN, seed, 12 * HOUR, spared, intensity=30)
    chance = Random(seed)
    quiet_ms = chance.randrange(1, 40) ** 2 * SECOND
    break_at = BEGIN_AT + chance.randrange(2 * HOUR, 10 * HOUR)
    lives = (
        Life(BEGIN_AT, break_at),
        Life(break_at + quiet_ms, BEGIN_AT + 12 * HOUR),
    )
    witness, _ = witnessed(world, lives, seed)
    assert witness.doubtful == 0 or not spared


@WITNESSED
@pytest.mark.long
@pytest.mark.clause("H13")
def test_sixteen_days_without_a_break_are_reported_as_they_truly_were() -> None:
    world = a_drawn_world(ONE_CHAIN, 2, 16 * DAY, spared=("ppoi", "ppoi/1"))
    witness, history = witnessed(world, (Life(BEGIN_AT, BEGIN_AT + 16 * DAY),), seed=2)
    assert {len(row["buckets"]) for row in history["rows"]} == {4033}
    witness.assert_always_current(Check("ppoi", 1), history)
    assert witness.doubtful < 0.05 * sum(witness.compared.values())
