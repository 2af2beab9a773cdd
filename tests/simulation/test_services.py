"""What each service's misfortunes look like in the report, one misfortune at a time, in front of the witness."""

from random import Random

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from lookout.core.heads import Pace
from lookout.core.ledger import Ledger
from lookout.core.model import Check
from lookout.demo.rehearsal import Listeners, rehearse
from lookout.demo.sim.episodes import FaultEpisode
from lookout.demo.sim.layout import ChainLayout
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, PPOI
from tests.simulation.rehearsed import TWO_CHAINS, Record, a_life, a_world, an_episode, plan_of, watch
from tests.simulation.witness import Witness

BEGIN = ("unknown", "no-observation")
SYNCED, BEHIND, FAR = ("current", "synced"), ("catching-up", "behind"), ("degraded", "behind")
RESPONDING, PARTIAL = ("current", "responding"), ("degraded", "partial-coverage")
SILENT, DOWN = ("unknown", "unreachable"), ("unavailable", "unreachable")
INCOMPARABLE = ("unknown", "incompatible-reference")

LACKS = (an_episode("ppoi/1", "missing-network", 10, 30), an_episode("ppoi", "missing-list", 60, 30))
# Two probes fail, the node answers without the list, two probes fail again: never three in a row.
INTERRUPTED = (
    an_episode("ppoi", "fail", 10, 1.25),
    an_episode("ppoi", "missing-list", 11.25, 5),
    an_episode("ppoi", "fail", 16.25, 1.25),
)
SILENCES = (
    an_episode("broadcasters/1", "some-silent", 10, 10, 50),
    an_episode("broadcasters/1", "silent", 30, 10),
    an_episode("broadcasters/1", "none-known", 50, 10),
)


@pytest.mark.clause(
    *("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13"),
    *("R5", "R6", "R7", "R8", "R13"),
)
@pytest.mark.parametrize(
    ("episodes", "check", "course"),
    [
        pytest.param(
            [an_episode("indexer/1", "freeze", 10, 60)],
            INDEXER,
            [BEGIN, SYNCED, BEHIND, FAR, BEHIND, SYNCED],
            id="an indexer that stops indexing falls behind by degrees and comes back",
        ),
        *(
            pytest.param(
                [an_episode("indexer/1", kind, 10, 20)],
                INDEXER,
                [BEGIN, SYNCED, SILENT, DOWN, SYNCED],
                id=f"an indexer whose probes {kind} is unknown, then unavailable until it answers",
            )
            for kind in ("fail", "hang")
        ),
        pytest.param(
            [an_episode("ppoi/1", "freeze", 10, 90)],
            PPOI,
            [BEGIN, SYNCED, BEHIND, FAR, BEHIND, SYNCED],
            id="a frozen ppoi node is excused for 45 seconds and degraded after half an hour",
        ),
        pytest.param(
            LACKS, PPOI, [BEGIN, SYNCED, BEGIN, SYNCED, INCOMPARABLE, SYNCED], id="what a ppoi node lacks is unknown"
        ),
        pytest.param(
            LACKS, Check("ppoi", 56), [BEGIN, SYNCED, INCOMPARABLE, SYNCED], id="what it lacks for one chain alone"
        ),
        pytest.param(
            INTERRUPTED,
            PPOI,
            [BEGIN, SYNCED, SILENT, INCOMPARABLE, SILENT, SYNCED],
            id="an answer that cannot be compared ends a row of failures",
        ),
        pytest.param(
            SILENCES,
            BROADCASTERS,
            [BEGIN, RESPONDING, PARTIAL, RESPONDING, SILENT, DOWN, RESPONDING, BEGIN, RESPONDING],
            id="broadcasters of one chain",
        ),
        pytest.param(SILENCES, Check("broadcasters", 56), [BEGIN, RESPONDING], id="broadcasters of another one"),
        pytest.param(
            [an_episode("messaging", "zero-peers", 10, 20)],
            MESSAGING,
            [BEGIN, RESPONDING, SILENT, DOWN, RESPONDING],
            id="a messaging node without peers is a failing one",
        ),
    ],
)
def test_a_misfortune_takes_its_course(
    episodes: list[FaultEpisode], check: Check, course: list[tuple[str, str]]
) -> None:
    """When each row changes, and what else it says, is the witness's to check."""
    world, lives, record = a_world(*episodes, layout=TWO_CHAINS), (a_life(0, 150),), Record()
    plan = plan_of(world.layout)
    witness = Witness(world, plan, lives)

    def published(ledger: Ledger) -> None:
        record.published(ledger)
        witness.published(ledger)

    witness.conclude(rehearse(plan, world, lives, Random(1), listeners=Listeners(published=published)))
    assert record.course(*check) == course


@pytest.mark.clause("S3", "S13")
def test_a_halted_chain_leaves_its_indexers_current() -> None:
    halts = (an_episode(f"chain/{chain_id}", "halt", 60, 90) for chain_id in (1, 56))
    record = watch(a_world(*halts, layout=TWO_CHAINS), (a_life(0, 270),))
    for service in ("indexer", "hosted-indexer"):
        assert record.statuses(service, 56, 1, 150) == {"current"}
        assert record.statuses(service, 1, 1, 270) == {"current"}


@pytest.mark.clause("S3", "S15")
@pytest.mark.parametrize("percent", [30, 300], ids=["three times as fast", "three times as slow"])
def test_a_chain_that_changes_its_pace_leaves_its_indexers_current(percent: int) -> None:
    world = a_world(an_episode("chain/56", "pace", 60, 90, percent), layout=TWO_CHAINS)
    assert watch(world, (a_life(0, 210),)).statuses("indexer", 56, 1, 210) == {"current"}


@pytest.mark.clause("S3", "S15", "M7")
def test_the_allowance_follows_the_measured_pace_once_there_is_enough_of_it_and_over_a_restart() -> None:
    """90 s behind are 30 blocks of this chain: too many by the configured block time, few enough by the real one."""
    quick = (ChainLayout(1, 3_000, 25_700_000),)
    world = a_world(
        an_episode("indexer/1", "freeze", 1, 1.5), an_episode("indexer/1", "behind", 2.5, 400, 100), layout=quick
    )
    plan = replace(plan_of(quick), chains={1: Pace(12_000, 1)})
    record = watch(world, (a_life(5, 40), a_life(41, 80)), plan=plan)
    assert record.statuses("indexer", 1, 5.3, 14.9) == {"catching-up"}
    assert record.statuses("indexer", 1, 16.5, 80) == {"current"}


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
