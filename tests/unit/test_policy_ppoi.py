"""The status policy of ppoi nodes, which are compared with their own index."""

import pytest
from msgspec.structs import replace

from lookout.core.model import Found, Indexes, Metrics, MissingList, Nothing
from lookout.core.policy import Memory, set_clock
from tests.builders import LAUNCH, MINUTE, NOON, PPOI, SECOND
from tests.unit.judgement import FAILED, describe, judge_all

Seen = list[tuple[int, Found]]
TRAILS = Indexes(9, 10)


@pytest.mark.clause("S8")
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([(0, TRAILS)], "current/synced", id="trailing for the first time"),
        pytest.param([(0, TRAILS), (44_999, TRAILS)], "current/synced", id="for 44.999 s"),
        pytest.param([(0, TRAILS), (45_000, TRAILS)], "catching-up/behind", id="for 45 s"),
        pytest.param([(0, TRAILS), (9, FAILED), (45_000, TRAILS)], "catching-up/behind", id="a failure stops nothing"),
        pytest.param(
            [(0, TRAILS), (9, MissingList()), (45_000, TRAILS)], "catching-up/behind", id="nor a missing list"
        ),
        pytest.param([(0, TRAILS), (9, Indexes(10, 10)), (45_000, TRAILS)], "current/synced", id="catching up does"),
        pytest.param([(0, TRAILS), (45_000, Indexes(11, 12))], "catching-up/behind", id="progress alone does not"),
    ],
)
def test_a_ppoi_node_may_trail_for_45_seconds(seen: Seen, expected: str) -> None:
    row = judge_all(PPOI, *seen)[1][-1]
    assert describe(row) == expected
    last = seen[-1][1]
    assert isinstance(last, Indexes)
    assert row.metrics == Metrics(position=last.position, head=last.head)


@pytest.mark.clause("S9")
@pytest.mark.parametrize(
    ("indexes", "status"),
    [
        pytest.param([(0, 9, 10), (30, 9, 20), (31, 9, 20)], "degraded", id="below a head of half an hour ago, twice"),
        pytest.param([(0, 9, 10), (30, 9, 20)], "catching-up", id="the first time it is not"),
        pytest.param([(0, 9, 10), (29, 9, 20), (30, 9, 20)], "catching-up", id="a head seen too lately is none"),
        pytest.param([(0, 9, 10), (40, 10, 20), (41, 10, 20)], "catching-up", id="at that head it is not far behind"),
        pytest.param(
            [(0, 9, 20), (1, 9, 10), (40, 15, 30), (41, 15, 30)],
            "degraded",
            id="the highest of the heads seen counts, not the latest",
        ),
        pytest.param([(0, 9, 10), (1, 9, 20), (40, 15, 30), (41, 15, 30)], "degraded", id="nor the earliest"),
        pytest.param([(0, 9, 10), (1, 9, 20), (40, 15, 20), (41, 15, 20)], "degraded", id="nor the earliest of two"),
        pytest.param(
            [(0, 9, 20), (1, 10, 10), (2, 9, 10), (32, 15, 30), (33, 15, 30)],
            "catching-up",
            id="catching up forgets earlier heads",
        ),
        pytest.param(
            [(0, 9, 10), (40, 9, 20), (41, 10, 20), (42, 9, 20)],
            "catching-up",
            id="an evaluation that is not far behind resets",
        ),
    ],
)
def test_a_ppoi_node_far_behind_is_degraded(indexes: list[tuple[int, int, int]], status: str) -> None:
    """By the minute, its position and its head."""
    seen = [(minute * MINUTE, Indexes(position, head)) for minute, position, head in indexes]
    assert describe(judge_all(PPOI, *seen)[1][-1]) == f"{status}/behind"


@pytest.mark.clause("S9")
def test_failed_and_incomparable_probes_between_neither_count_nor_reset_and_half_an_hour_is_exact() -> None:
    behind = Indexes(9, 20)
    seen: Seen = [
        (0, TRAILS),
        (30 * MINUTE - 1, behind),
        (30 * MINUTE, behind),
        (31 * MINUTE, FAILED),
        (32 * MINUTE, behind),
    ]
    _, rows = judge_all(PPOI, *seen)
    assert [row.status for row in rows] == ["current", "catching-up", "catching-up", "unknown", "degraded"]
    _, rows = judge_all(PPOI, *seen[:-2], (31 * MINUTE, Nothing()), seen[-1])
    assert rows[-1].status == "degraded"


@pytest.mark.clause("S8", "S9")
def test_the_trailing_allowance_wins_over_far_behind_and_resets_it() -> None:
    hasty = replace(LAUNCH, degraded_lag_ms=SECOND)
    seen = [(0, Indexes(1, 9)), (40_000, Indexes(1, 9)), (45_000, Indexes(1, 9)), (46_000, Indexes(1, 9))]
    _, rows = judge_all(PPOI, *seen, limits=hasty)
    assert [row.status for row in rows] == ["current", "current", "catching-up", "degraded"]


@pytest.mark.clause("S9", "M7")
def test_the_heads_remembered_stay_few_however_long_a_node_trails() -> None:
    seen = [(n * 30 * SECOND, Indexes(1, 100 + n)) for n in range(500)]
    memory, rows = judge_all(PPOI, *seen)
    assert rows[-1].status == "degraded"
    assert len(memory.heads_seen) == 61  # half an hour of them, and the last one before
    memory, _ = judge_all(PPOI, *((n * 30 * SECOND, Indexes(1, 100)) for n in range(100)))
    assert memory.heads_seen == ((NOON, 100),)


@pytest.mark.clause("S8", "S9")
def test_a_clock_set_back_excuses_no_trailing_node() -> None:
    memory, _ = judge_all(PPOI, (0, TRAILS), (40 * MINUTE, Indexes(9, 20)))
    memory = set_clock(memory, -60 * MINUTE)
    assert set_clock(Memory(), -60 * MINUTE) == Memory()
    _, rows = judge_all(PPOI, (-20 * MINUTE, Indexes(9, 20)), memory=memory)
    assert describe(rows[0]) == "degraded/behind"
