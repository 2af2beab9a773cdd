"""The status policy of ppoi nodes, which are compared with their own index."""

import pytest
from msgspec.structs import replace

from lookout.core.model import Found, Indexes, Metrics, MissingList, Nothing
from lookout.core.policy import Memory, set_back
from tests.builders import LAUNCH, MINUTE, NOON, PPOI, SECOND
from tests.unit.judgement import FAILED, judge_all, told


@pytest.mark.clause("S8")
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([(0, Indexes(9, 10))], "current/synced", id="trailing for the first time"),
        pytest.param([(0, Indexes(9, 10)), (44_999, Indexes(9, 10))], "current/synced", id="for 44.999 s"),
        pytest.param([(0, Indexes(9, 10)), (45_000, Indexes(9, 10))], "catching-up/behind", id="for 45 s"),
        pytest.param(
            [(0, Indexes(9, 10)), (20_000, FAILED), (45_000, Indexes(9, 10))],
            "catching-up/behind",
            id="a failure does not stop the clock",
        ),
        pytest.param(
            [(0, Indexes(9, 10)), (20_000, MissingList()), (45_000, Indexes(9, 10))],
            "catching-up/behind",
            id="nor does an incomparable answer",
        ),
        pytest.param(
            [(0, Indexes(9, 10)), (20_000, Indexes(10, 10)), (45_000, Indexes(9, 10))],
            "current/synced",
            id="catching up does",
        ),
        pytest.param(
            [(0, Indexes(9, 10)), (45_000, Indexes(11, 12))], "catching-up/behind", id="progress alone does not"
        ),
    ],
)
def test_a_ppoi_node_may_trail_for_45_seconds(seen: list[tuple[int, Found]], expected: str) -> None:
    row = judge_all(PPOI, *seen)[1][-1]
    assert told(row) == expected
    last = seen[-1][1]
    assert isinstance(last, Indexes)
    assert row.metrics == Metrics(position=last.position, head=last.head)


@pytest.mark.clause("S9")
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(
            [(0, Indexes(9, 10)), (30 * MINUTE, Indexes(9, 20)), (30 * MINUTE + 1, Indexes(9, 20))],
            "degraded/behind",
            id="below a head seen half an hour ago, twice",
        ),
        pytest.param(
            [(0, Indexes(9, 10)), (30 * MINUTE, Indexes(9, 20))], "catching-up/behind", id="the first time it is not"
        ),
        pytest.param(
            [(0, Indexes(9, 10)), (30 * MINUTE - 1, Indexes(9, 20)), (30 * MINUTE, Indexes(9, 20))],
            "catching-up/behind",
            id="a head seen a millisecond too lately does not count",
        ),
        pytest.param(
            [(0, Indexes(9, 10)), (40 * MINUTE, Indexes(10, 20)), (41 * MINUTE, Indexes(10, 20))],
            "catching-up/behind",
            id="at that head it is not far behind",
        ),
        pytest.param(
            [
                (0, Indexes(9, 20)),
                (MINUTE, Indexes(9, 10)),
                (40 * MINUTE, Indexes(15, 30)),
                (41 * MINUTE, Indexes(15, 30)),
            ],
            "degraded/behind",
            id="the highest of the heads seen counts, not the latest",
        ),
        pytest.param(
            [
                (0, Indexes(9, 10)),
                (MINUTE, Indexes(9, 20)),
                (40 * MINUTE, Indexes(15, 30)),
                (41 * MINUTE, Indexes(15, 30)),
            ],
            "degraded/behind",
            id="nor the earliest",
        ),
        pytest.param(
            [
                (0, Indexes(9, 10)),
                (MINUTE, Indexes(9, 20)),
                (40 * MINUTE, Indexes(15, 20)),
                (41 * MINUTE, Indexes(15, 20)),
            ],
            "degraded/behind",
            id="nor the earliest of two",
        ),
        pytest.param(
            [
                (0, Indexes(9, 20)),
                (MINUTE, Indexes(10, 10)),
                (2 * MINUTE, Indexes(9, 10)),
                (32 * MINUTE, Indexes(15, 30)),
                (33 * MINUTE, Indexes(15, 30)),
            ],
            "catching-up/behind",
            id="catching up forgets earlier heads",
        ),
        pytest.param(
            [
                (0, Indexes(9, 10)),
                (40 * MINUTE, Indexes(9, 20)),
                (41 * MINUTE, FAILED),
                (42 * MINUTE, Nothing()),
                (43 * MINUTE, Indexes(9, 20)),
            ],
            "degraded/behind",
            id="failed and incomparable probes between neither count nor reset",
        ),
        pytest.param(
            [
                (0, Indexes(9, 10)),
                (40 * MINUTE, Indexes(9, 20)),
                (41 * MINUTE, Indexes(10, 20)),
                (42 * MINUTE, Indexes(9, 20)),
            ],
            "catching-up/behind",
            id="an evaluation that is not far behind resets",
        ),
    ],
)
def test_a_ppoi_node_far_behind_is_degraded(seen: list[tuple[int, Found]], expected: str) -> None:
    assert told(judge_all(PPOI, *seen)[1][-1]) == expected


@pytest.mark.clause("S8", "S9")
def test_the_trailing_allowance_wins_over_far_behind_and_resets_it() -> None:
    hasty = replace(LAUNCH, degraded_lag_ms=SECOND)
    seen = [(0, Indexes(1, 9)), (40_000, Indexes(1, 9)), (45_000, Indexes(1, 9)), (46_000, Indexes(1, 9))]
    _, rows = judge_all(PPOI, *seen, limits=hasty)
    assert [row.status for row in rows] == ["current", "current", "catching-up", "degraded"]


@pytest.mark.clause("S9", "M7")
def test_the_heads_remembered_stay_few_however_long_a_node_trails() -> None:
    seen = [(n * 30 * SECOND, Indexes(1, 100 + n)) for n in range(5_000)]
    memory, rows = judge_all(PPOI, *seen)
    assert rows[-1].status == "degraded"
    assert len(memory.heads_seen) == 61  # half an hour of them, and the last one before
    memory, _ = judge_all(PPOI, *((n * 30 * SECOND, Indexes(1, 100)) for n in range(100)))
    assert memory.heads_seen == ((NOON, 100),)


@pytest.mark.clause("S8", "S9")
def test_a_clock_set_back_excuses_no_trailing_node() -> None:
    memory, _ = judge_all(PPOI, (0, Indexes(9, 10)), (40 * MINUTE, Indexes(9, 20)))
    memory = set_back(memory, 60 * MINUTE)
    assert set_back(Memory(), 60 * MINUTE) == Memory()
    _, rows = judge_all(PPOI, (-20 * MINUTE, Indexes(9, 20)), memory=memory)
    assert told(rows[0]) == "degraded/behind"
