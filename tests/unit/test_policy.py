"""The status policy, rule by rule."""

import pytest
from msgspec.structs import replace

from lookout.core.heads import Pace, Reference
from lookout.core.model import (
    NO_METRICS,
    Blocks,
    Check,
    Failed,
    Found,
    Gaps,
    Indexes,
    Members,
    Metrics,
    MissingList,
    Nothing,
    Peers,
    Reason,
    Responding,
    Row,
    Status,
    unmonitored,
    unobserved,
)
from lookout.core.plan import Limits
from lookout.core.policy import Memory, judge, set_clock
from tests.builders import (
    BROADCASTERS,
    INDEXER,
    LAUNCH,
    MESSAGING,
    MINUTE,
    NOON,
    PPOI,
    SECOND,
    a_reference,
    an_observation,
)

FAILED = Failed("timeout")
FRESH = Memory()
LIFETIME = 150 * SECOND


def judge_all(
    check: Check,
    *seen: tuple[int, Found],
    reference: Reference | None = None,
    memory: Memory = FRESH,
    limits: Limits = LAUNCH,
    blind: bool = False,
) -> tuple[Memory, list[Row]]:
    """The rows that these findings give one after the other, each so many milliseconds after noon."""
    rows = []
    for after_noon, found in seen:
        observation = an_observation(found, at=NOON + after_noon, check=check)
        memory, row = judge(memory, observation, reference, limits, blind=blind)
        rows.append(row)
    return memory, rows


def judge_one(check: Check, found: Found, **given: object) -> Row:
    return judge_all(check, (0, found), **given)[1][-1]  # type: ignore[arg-type]


def describe(row: Row) -> str:
    return f"{row.status}/{row.reason}"


@pytest.mark.clause("S1", "S2", "R5")
def test_failures_in_a_row_are_unknown_twice_and_unavailable_from_the_third_on() -> None:
    memory, rows = judge_all(MESSAGING, *((n * 30 * SECOND, FAILED) for n in range(4)))
    assert [describe(row) for row in rows] == ["unknown/unreachable"] * 2 + ["unavailable/unreachable"] * 2
    assert [row.observed_at for row in rows] == [NOON + n * 30 * SECOND for n in range(4)]
    assert [row.expires_at for row in rows] == [None, None, NOON + MINUTE + LIFETIME, NOON + 90 * SECOND + LIFETIME]
    assert memory.failures == 4


@pytest.mark.clause("R6", "R7", "R8", "R9", "R11", "S3", "S7", "S10", "S11")
@pytest.mark.parametrize(
    ("check", "found", "status", "reason", "metrics"),
    [
        (INDEXER, Blocks(100), "current", "synced", Metrics(position=100, head=100)),
        (INDEXER, Blocks(150), "current", "synced", Metrics(position=150, head=100)),  # as read, and no lag
        (INDEXER, Blocks(1), "catching-up", "behind", Metrics(position=1, head=100)),
        (PPOI, Indexes(42, 42), "current", "synced", Metrics(position=42, head=42)),
        (PPOI, Indexes(43, 42), "current", "synced", Metrics(position=43, head=42)),
        (BROADCASTERS, Members(5, 5), "current", "responding", Metrics(responding=5, monitored=5)),
        (BROADCASTERS, Members(4, 5), "degraded", "partial-coverage", Metrics(responding=4, monitored=5)),
        (BROADCASTERS, Members(1, 5), "degraded", "partial-coverage", Metrics(responding=1, monitored=5)),
        (MESSAGING, Peers(1), "current", "responding", Metrics(peers=1)),
        (Check("faucet", 1), Responding(), "current", "responding", NO_METRICS),
    ],
    ids=str,
)
def test_a_compared_answer_is_a_success_that_ends_a_row_of_failures(
    check: Check, found: Found, status: Status, reason: Reason, metrics: Metrics
) -> None:
    memory, rows = judge_all(check, (0, found), memory=Memory(failures=2), reference=a_reference(100))
    assert [replace(row, still_since_at=None) for row in rows] == [
        Row(check, status, reason, NOON, NOON, NOON + LIFETIME, metrics)
    ]
    assert (memory.failures, memory.last_success_at) == (0, NOON)


@pytest.mark.clause("R6", "R7", "R8", "R13", "S10", "S12", "S13")
@pytest.mark.parametrize(
    ("check", "found", "reason", "metrics"),
    [
        (INDEXER, Blocks(7), "incompatible-reference", Metrics(position=7)),  # there is no head
        (INDEXER, Nothing(), "no-observation", NO_METRICS),
        (PPOI, Nothing(), "no-observation", NO_METRICS),
        (PPOI, MissingList(), "incompatible-reference", NO_METRICS),
        (BROADCASTERS, Members(0, 0), "no-observation", NO_METRICS),
    ],
    ids=str,
)
def test_an_answer_that_cannot_be_compared_is_unknown_and_ends_a_row_of_failures(
    check: Check, found: Found, reason: Reason, metrics: Metrics
) -> None:
    lapsed = found == Members(0, 0)
    assert judge_one(check, found) == Row(check, "unknown", reason, NOON, None, None, metrics, lapsed)
    memory, rows = judge_all(check, (0, found), memory=Memory(failures=2, last_success_at=NOON - MINUTE))
    assert rows == [Row(check, "unknown", reason, NOON, NOON - MINUTE, None, metrics, lapsed)]
    assert (memory.failures, memory.last_success_at) == (0, NOON - MINUTE)


@pytest.mark.clause("R6", "R7", "R8", "S1", "S2", "S10", "S11")
@pytest.mark.parametrize(
    ("check", "found"),
    [(INDEXER, FAILED), (BROADCASTERS, Members(0, 5)), (MESSAGING, Peers(0)), (Check("faucet", 1), FAILED)],
    ids=str,
)
def test_a_failure_and_silence_behind_an_answer_are_unknown_and_then_unavailable(check: Check, found: Found) -> None:
    assert judge_one(check, found) == Row(check, "unknown", "unreachable", NOON)
    memory, rows = judge_all(check, (0, found), memory=Memory(failures=2, last_success_at=NOON - MINUTE))
    assert rows == [Row(check, "unavailable", "unreachable", NOON, NOON - MINUTE, NOON + LIFETIME)]
    assert (memory.failures, memory.last_success_at) == (3, NOON - MINUTE)


@pytest.mark.clause("S3", "S4", "S15")
@pytest.mark.parametrize(
    ("lag", "pace", "status"),
    [
        pytest.param(0, Pace(12_000, 1), "current", id="no lag"),
        pytest.param(10, Pace(12_000, 1), "current", id="ten blocks of 12 s"),
        pytest.param(11, Pace(12_000, 1), "catching-up", id="eleven blocks of 12 s"),
        pytest.param(10, Pace(3_600_000, 1), "current", id="ten blocks however slow the chain"),
        pytest.param(11, Pace(100_000, 1), "catching-up", id="eleven blocks of a slow chain"),
        pytest.param(480, Pace(250, 1), "current", id="two minutes of blocks of a quarter second"),
        pytest.param(481, Pace(250, 1), "catching-up", id="one block more than two minutes"),
        pytest.param(266, Pace(450, 1), "current", id="below two minutes by part of a block"),
        pytest.param(267, Pace(450, 1), "catching-up", id="above two minutes by part of a block"),
        pytest.param(17, Pace(700_000, 100), "current", id="a measured pace, below"),
        pytest.param(18, Pace(700_000, 100), "catching-up", id="a measured pace, above"),
    ],
)
def test_lag_is_allowed_up_to_ten_blocks_or_two_minutes(lag: int, pace: Pace, status: str) -> None:
    row = judge_one(INDEXER, Blocks(10_000 - lag), reference=a_reference(10_000, pace=pace))
    assert describe(row) == {"current": "current/synced", "catching-up": "catching-up/behind"}[status]
    assert row.metrics == Metrics(position=10_000 - lag, head=10_000)


@pytest.mark.clause("S5", "S6", "S15")
@pytest.mark.parametrize(
    ("lags", "statuses"),
    [
        pytest.param([150, 150], "kd", id="half an hour twice in a row is degraded"),
        pytest.param([149, 149], "kk", id="a block less is not"),
        pytest.param([150, 149, 150], "kkk", id="an evaluation under half an hour resets"),
        pytest.param([150, 10, 150], "kck", id="an evaluation within the allowance resets"),
        pytest.param([150, None, 150], "k?d", id="a failure between neither counts nor resets"),
        pytest.param([150, 150, 150, 149, 150], "kddkk", id="recovery is immediate"),
        pytest.param([150, 150, 0], "kdc", id="recovery to current is immediate"),
    ],
)
def test_far_behind_takes_two_evaluations(lags: list[int | None], statuses: str) -> None:
    seen = [(n, FAILED if lag is None else Blocks(10_000 - lag)) for n, lag in enumerate(lags)]
    _, rows = judge_all(INDEXER, *seen, reference=a_reference(10_000))
    characters = {"current": "c", "catching-up": "k", "degraded": "d", "unknown": "?"}
    assert "".join(characters[row.status] for row in rows) == statuses


@pytest.mark.clause("S5")
@pytest.mark.parametrize("between", [Nothing(), Blocks(9_000)])
def test_an_incomparable_answer_between_neither_counts_nor_resets(between: Found) -> None:
    far = Blocks(9_000)
    memory, rows = judge_all(INDEXER, (0, far), reference=a_reference(10_000))
    memory, rows = judge_all(INDEXER, (1, between), memory=memory)  # no reference now
    assert rows[0].status == "unknown"
    _, rows = judge_all(INDEXER, (2, far), memory=memory, reference=a_reference(10_000))
    assert describe(rows[0]) == "degraded/behind"


@pytest.mark.clause("S3", "S5")
def test_the_allowance_wins_over_half_an_hour_on_a_chain_with_few_blocks() -> None:
    hourly = a_reference(10_000, pace=Pace(3_600_000, 1))
    memory, rows = judge_all(INDEXER, (0, Blocks(9_990)), (1, Blocks(9_990)), reference=hourly)
    assert [describe(row) for row in rows] == ["current/synced"] * 2
    assert memory.far_behind == 0


@pytest.mark.clause("S13", "R13")
@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(60 * SECOND, "current/synced", id="a head read 60 s ago will do"),
        pytest.param(60 * SECOND + 1, "unknown/incompatible-reference", id="a millisecond more is too old"),
    ],
)
def test_a_reference_head_may_be_60_seconds_old(age: int, expected: str) -> None:
    row = judge_one(INDEXER, Blocks(10_000), reference=a_reference(10_000, read_at=NOON - age))
    assert describe(row) == expected


@pytest.mark.clause("S13", "R11", "R13")
@pytest.mark.parametrize(
    ("above", "pace", "expected"),
    [
        pytest.param(50, Pace(12_000, 1), "current/synced", id="ten minutes of blocks above the agreed height"),
        pytest.param(51, Pace(12_000, 1), "unknown/incompatible-reference", id="one block more is another chain's"),
        pytest.param(10, Pace(3_600_000, 1), "current/synced", id="ten blocks above however slow the chain"),
        pytest.param(11, Pace(60_000, 1), "unknown/incompatible-reference", id="eleven blocks of a slow chain"),
        pytest.param(11, Pace(600_000, 11), "current/synced", id="exactly ten minutes by a pace that is a fraction"),
        pytest.param(11, Pace(600_001, 11), "unknown/incompatible-reference", id="a fraction of a block more"),
    ],
)
def test_a_position_far_above_the_agreed_height_cannot_be_compared(above: int, pace: Pace, expected: str) -> None:
    reference = a_reference(10_000, confirmations=64, pace=pace)
    before = Memory(failures=2, far_behind=1, last_success_at=NOON - MINUTE)
    memory, (row,) = judge_all(INDEXER, (0, Blocks(10_064 + above)), memory=before, reference=reference)
    assert describe(row) == expected
    if row.status == "unknown":  # which neither counts nor resets, and ends a row of failures (S5)
        assert (row.metrics, row.last_success_at) == (Metrics(position=10_064 + above), NOON - MINUTE)
        assert memory == replace(before, failures=0, position=10_064 + above)


@pytest.mark.clause("S12", "S14", "R5", "R8")
def test_without_a_probe_nothing_is_known() -> None:
    assert unobserved(PPOI) == Row(PPOI, "unknown", "no-observation", None, None, None, NO_METRICS)
    assert unmonitored(PPOI) == Row(PPOI, "unmonitored", "not-configured", None, None, None, NO_METRICS)


@pytest.mark.clause("M13")
@pytest.mark.parametrize("found", [FAILED, Peers(0)])
def test_a_blind_monitor_does_not_count_failures(found: Found) -> None:
    before = Memory(failures=2, last_success_at=NOON - MINUTE)
    memory, rows = judge_all(MESSAGING, (0, found), memory=before, blind=True)
    assert memory == before
    assert rows == [Row(MESSAGING, "unknown", "unreachable", NOON, NOON - MINUTE)]
    assert (
        describe(judge_one(BROADCASTERS, Members(0, 2), memory=Memory(failures=5), blind=True)) == "unknown/unreachable"
    )


@pytest.mark.clause("S16")
def test_every_threshold_is_a_setting() -> None:
    other = replace(
        LAUNCH,
        row_lifetime_ms=7,
        failures_for_unavailable=1,
        allowance_blocks=2,
        allowance_ms=30_000,
        degraded_lag_ms=60_000,
        degraded_evaluations=1,
        ppoi_behind_ms=0,
        head_max_age_ms=5,
    )
    here = a_reference(100, read_at=NOON - 5)
    assert judge_one(MESSAGING, Peers(1), limits=other).expires_at == NOON + 7
    assert judge_one(MESSAGING, FAILED, limits=other).status == "unavailable"
    assert judge_one(INDEXER, Blocks(98), limits=other, reference=here).status == "current"
    assert judge_one(INDEXER, Blocks(97), limits=other, reference=here).status == "catching-up"
    assert judge_one(INDEXER, Blocks(95), limits=other, reference=here).status == "degraded"
    older = a_reference(100, read_at=NOON - 6)
    assert judge_one(INDEXER, Blocks(98), limits=other, reference=older).status == "unknown"
    assert judge_one(PPOI, Indexes(1, 2), limits=other).status == "catching-up"
    none = replace(other, allowance_blocks=0, allowance_ms=0)
    assert judge_one(INDEXER, Blocks(100), limits=none, reference=here).status == "current"
    assert judge_one(INDEXER, Blocks(101), limits=none, reference=here).status == "current"
    assert judge_one(INDEXER, Blocks(99), limits=none, reference=here).status == "catching-up"


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("gaps", "position", "status", "reason", "metrics"),
    [
        pytest.param(Gaps(), 100, "current", "synced", {}, id="without gaps it is current"),
        pytest.param(Gaps(missing=2), 100, "degraded", "incomplete", {"missing": 2}, id="it lacks transactions"),
        pytest.param(Gaps(extra=3), 100, "degraded", "inconsistent", {"extra": 3}, id="it has too many"),
        pytest.param(
            Gaps(2, 3), 100, "degraded", "incomplete", {"missing": 2, "extra": 3}, id="it lacks some and has others"
        ),
        pytest.param(Gaps(2, 3), 1, "catching-up", "behind", {}, id="one that is behind is as without"),
    ],
)
def test_an_indexer_with_gaps_in_its_list_is_not_current(
    gaps: Gaps, position: int, status: Status, reason: Reason, metrics: dict[str, int]
) -> None:
    memory, rows = judge_all(INDEXER, (0, Blocks(position)), memory=Memory(gaps=gaps), reference=a_reference(100))
    seen = Metrics(position=position, head=100, **metrics)
    since_at = NOON if reason == "behind" else None
    assert rows == [Row(INDEXER, status, reason, NOON, NOON, NOON + LIFETIME, seen, still_since_at=since_at)]
    assert memory.gaps == gaps


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


@pytest.mark.clause("M7")
@pytest.mark.parametrize(
    ("seen", "since"),
    [
        pytest.param([(0, 50)], 0, id="the first answer begins it"),
        pytest.param([(0, 50), (1, 50), (2, 50)], 0, id="the same position goes on"),
        pytest.param([(0, 50), (1, 50), (2, 51)], 2, id="another position begins it anew"),
        pytest.param([(0, 50), (1, 50), (2, 49)], 2, id="so does a lower one"),
        pytest.param([(0, 95), (9, 95), (10, 50)], 10, id="within the allowance too"),
        pytest.param([(0, 50), (1, None), (2, 50)], 0, id="a failure between does not end it"),
    ],
)
def test_a_row_that_is_behind_says_since_when_its_position_has_not_moved(
    seen: list[tuple[int, int | None]], since: int
) -> None:
    found = ((minute * MINUTE, FAILED if position is None else Blocks(position)) for minute, position in seen)
    _, rows = judge_all(INDEXER, *found, reference=a_reference(100, read_at=NOON + 10 * MINUTE))
    assert (rows[-1].reason, rows[-1].still_since_at) == ("behind", NOON + since * MINUTE)


@pytest.mark.clause("M7")
def test_a_position_that_had_nothing_to_take_in_did_not_stand_still_meanwhile() -> None:
    memory, rows = judge_all(INDEXER, (0, Blocks(100)), (9 * MINUTE, Blocks(100)), reference=a_reference(100))
    assert [row.still_since_at for row in rows] == [None, None]
    later = a_reference(200, read_at=NOON + 10 * MINUTE)
    _, rows = judge_all(INDEXER, (10 * MINUTE, Blocks(100)), memory=memory, reference=later)
    assert rows[0].still_since_at == NOON + 10 * MINUTE


@pytest.mark.clause("S8", "S9")
def test_a_clock_set_back_excuses_no_trailing_node() -> None:
    memory, _ = judge_all(PPOI, (0, TRAILS), (40 * MINUTE, Indexes(9, 20)))
    memory = set_clock(memory, -60 * MINUTE)
    assert set_clock(Memory(), -60 * MINUTE) == Memory()
    _, rows = judge_all(PPOI, (-20 * MINUTE, Indexes(9, 20)), memory=memory)
    assert describe(rows[0]) == "degraded/behind"
    assert rows[0].still_since_at == NOON - 60 * MINUTE
