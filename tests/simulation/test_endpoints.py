"""Reference heads: no single endpoint, whatever it does, moves a row."""

from functools import cache

import pytest
from _pytest.mark import ParameterSet

from lookout.config.tables import PolicyTable
from lookout.demo.sim.episodes import FaultEpisode
from tests.builders import NOON
from tests.simulation.rehearsed import TWO_CHAINS, Record, a_life, a_world, an_episode, plan_of, watch

# On each chain one indexer is well, and the other stays behind by as much as it already is.
BACKGROUND = (
    an_episode("hosted-indexer/1", "freeze", 5, 40),
    an_episode("hosted-indexer/1", "behind", 45, 400, 100),
    an_episode("hosted-indexer/56", "freeze", 40, 10),
    an_episode("hosted-indexer/56", "behind", 50, 400, 100),
    an_episode("ppoi/1", "freeze", 30, 80),
    an_episode("messaging", "hang", 80, 10),
    an_episode("broadcasters/56", "silent", 100, 10),
)
LIFE = (a_life(60, 180),)
SIZES: dict[str, int] = {"stale": 3_600_000, "lie": 1_000, "lie-low": 1_000_000, "future": 120_000}

KINDS = ("fail", "hang", "freeze", "stale", "lie", "lie-low", "future", "wrong-chain")

Statuses = list[tuple[int, tuple[tuple[str, str], ...]]]


def disturbed(kind: str, number: int, begins_min: float, seed: int) -> Record:
    """The same world, but for one endpoint of each chain."""
    faults = [an_episode(f"rpc/{of}/{number}", kind, begins_min, 400, SIZES.get(kind, 0)) for of in (1, 56)]
    return watch(a_world(*BACKGROUND, *faults, layout=TWO_CHAINS), LIFE, seed=seed)


@cache
def undisturbed(seed: int) -> Record:
    return watch(a_world(*BACKGROUND, layout=TWO_CHAINS), LIFE, seed=seed)


def statuses(record: Record) -> Statuses:
    """All that was published, with its instant."""
    return [(at, tuple((row.status, row.reason) for row in rows)) for at, rows in record.publications]


def each_kind_with(number: int) -> list[ParameterSet]:
    """Every day each kind with one of so many, and all of them with all in the campaign."""
    return [
        pytest.param(kind, each, marks=() if each == place % number else pytest.mark.long)
        for place, kind in enumerate(KINDS)
        for each in range(number)
    ]


@pytest.mark.clause("M8")
@pytest.mark.parametrize(("kind", "number"), each_kind_with(3))
def test_one_endpoint_that_goes_wrong_changes_no_status(kind: str, number: int) -> None:
    assert statuses(disturbed(kind, number, 90, seed=number)) == statuses(undisturbed(number))


@pytest.mark.clause("M8")
@pytest.mark.parametrize(("kind", "seed"), each_kind_with(4))
def test_one_endpoint_that_is_wrong_before_the_start_changes_no_status(kind: str, seed: int) -> None:
    """Also where it is the first to answer. Instants may differ: a first head waits for an endpoint that hangs."""
    record = disturbed(kind, 0, 0, seed)
    for check in (row.check for row in record.publications[0][1]):
        assert record.course(*check) == undisturbed(seed).course(*check)


@pytest.mark.clause("M8")
def test_two_endpoints_that_lie_alike_are_believed() -> None:
    lies = (an_episode(f"rpc/1/{number}", "lie", 90, 400, 1_000) for number in (0, 1))
    record = watch(a_world(*BACKGROUND, *lies, layout=TWO_CHAINS), LIFE)
    assert record.statuses("indexer", 1, 61, 90) == {"current"}
    assert record.statuses("indexer", 1, 92, 180) == {"catching-up", "degraded"}
    assert record.statuses("indexer", 56, 61, 180) == {"current"}


@pytest.mark.clause("M8", "S13", "R13")
@pytest.mark.parametrize("kind", ["fail", "hang", "future", "wrong-chain"])
def test_without_any_head_for_a_minute_an_indexer_is_unknown_and_others_go_on(kind: str) -> None:
    faults = [an_episode(f"rpc/1/{number}", kind, 30, 30, SIZES.get(kind, 0)) for number in range(3)]
    record = watch(a_world(*faults, layout=TWO_CHAINS), (a_life(0, 90),))
    incomparable = [row for at, row in record.of("indexer", 1) if NOON + 32 * 60_000 <= at < NOON + 60 * 60_000]
    assert incomparable
    for row in incomparable:
        assert (row.status, row.reason, row.expires_at) == ("unknown", "incompatible-reference", None)
    assert record.statuses("indexer", 1, 1, 30.65) == {"current"}
    assert record.statuses("indexer", 1, 61, 90) == {"current"}
    for service, chain_id in (("indexer", 56), ("ppoi", 1), ("messaging", None)):
        assert record.statuses(service, chain_id, 1, 90) == {"current"}


@pytest.mark.clause("M8", "S13")
def test_endpoints_that_all_stand_still_give_a_head_that_a_position_soon_is_far_above() -> None:
    """The head is as fresh as its answer, whatever the block's own age; ten minutes later nothing can be compared."""
    frozen = [FaultEpisode(f"rpc/1/{number}", "freeze", NOON, NOON + 7_200_000) for number in range(3)]
    record = watch(a_world(*frozen), (a_life(0, 120),))
    assert record.statuses("indexer", 1, 1, 9) == {"current"}
    assert record.statuses("indexer", 1, 13, 120) == {"unknown"}


@pytest.mark.clause("M13")
def test_a_single_endpoint_that_answers_shows_that_the_monitor_is_not_blind() -> None:
    """It gives no head, since nobody confirms it; yet a service that fails meanwhile has failed."""
    others = [an_episode(f"rpc/1/{number}", "fail", 10, 50) for number in (1, 2)]
    services = [an_episode(name, "fail", 10, 50) for name in ("messaging", "ppoi", "broadcasters")]
    indexers = [an_episode(f"{name}/1", "fail", 10, 50) for name in ("indexer", "hosted-indexer")]
    world = a_world(*others, *services, *indexers)
    plan = plan_of(world.layout, PolicyTable(blind_after_s=60))
    assert watch(world, (a_life(0, 60),), plan=plan).statuses("messaging", None, 20, 50) == {"unavailable"}
    blind = a_world(an_episode("rpc/1/0", "fail", 10, 50), *others, *services, *indexers)
    assert watch(blind, (a_life(0, 60),), plan=plan).statuses("messaging", None, 20, 50) == {"unknown"}
