"""Reference heads: their age, and the chain's pace."""

import pytest

from lookout.core.heads import ChainProgress, Heads, Pace, Reading, Reference
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND, TWELVE_SECONDS


def heads_at(*readings: tuple[int, int]) -> Heads:
    """Heads of these minutes after noon and heights."""
    heads = Heads(TWELVE_SECONDS)
    for minute, height in readings:
        heads.read(Reading(NOON + minute * MINUTE, height, NOON + minute * MINUTE))
    return heads


@pytest.mark.clause("R11")
def test_the_net_head_is_never_below_zero() -> None:
    heads = heads_at((0, 12))
    assert heads.reference(5) == Reference(12, 7, NOON, TWELVE_SECONDS)
    assert heads.reference(12) == Reference(12, 0, NOON, TWELVE_SECONDS)
    assert heads.reference(13) == Reference(12, 0, NOON, TWELVE_SECONDS)


@pytest.mark.clause("S13")
def test_before_the_first_reading_there_is_no_reference() -> None:
    assert Heads(TWELVE_SECONDS).reference(5) is None
    assert Heads(TWELVE_SECONDS).pace() == TWELVE_SECONDS


@pytest.mark.clause("M7")
@pytest.mark.parametrize(
    ("readings", "since"),
    [
        pytest.param([(0, 50), (4, 50)], None, id="not before five minutes"),
        pytest.param([(0, 50), (3, 50), (5, 50)], 0, id="from five minutes on"),
        pytest.param([(0, 50), (4, 51), (8, 51)], None, id="a new block begins it anew"),
        pytest.param([(0, 50), (4, 51), (9, 51)], 4, id="and it counts from there"),
        pytest.param([(0, 50), (3, 49), (4, 50), (5, 49)], 0, id="an endpoint that is a block behind is no new block"),
        pytest.param([(0, 50), (4, 40), (8, 41)], None, id="a head that fell far rises from there"),
        pytest.param([(minute, 50) for minute in range(200)], 0, id="for hours"),
    ],
)
def test_a_chain_stands_still_once_its_head_has_not_risen_for_long(
    readings: list[tuple[int, int]], since: int | None
) -> None:
    heads = heads_at(*readings)
    resumed = Heads(TWELVE_SECONDS, heads.readings)
    expected = None if since is None else NOON + since * MINUTE
    assert heads.stands_since_at == resumed.stands_since_at == expected
    assert heads.progress(NOON + DAY).stands_since_at is None  # without a head it is not known


@pytest.mark.clause("M7", "S15")
def test_a_slow_chain_stands_still_only_after_twenty_of_its_blocks() -> None:
    heads = Heads(Pace(60_000, 1))
    for minute in (0, 19, 20):
        assert heads.stands_since_at is None
        heads.read(Reading(NOON + minute * MINUTE, 50, NOON))
    assert heads.stands_since_at == NOON
    heads.start(-HOUR)
    assert heads.stands_since_at == NOON - HOUR
    heads.start(HOUR)
    assert heads.stands_since_at is None


@pytest.mark.clause("S15")
@pytest.mark.parametrize(
    ("an_hour", "blocks", "takes_longer"),
    [
        pytest.param(12_000, 4_000, False, id="just as long"),
        pytest.param(12_000, 4_001, True, id="a block longer"),
        pytest.param(12_001, 4_001, True, id="two thirds of a block longer"),
        pytest.param(12_003, 4_001, False, id="just as long at a faster pace"),
        pytest.param(12_000, -1, False, id="none are missing"),
    ],
)
def test_blocks_take_as_long_as_the_pace_says_without_rounding(
    an_hour: int, blocks: int, *, takes_longer: bool
) -> None:
    assert Pace(HOUR, an_hour).takes_longer(blocks, 20 * MINUTE) is takes_longer


@pytest.mark.clause("S15")
@pytest.mark.parametrize(
    ("span_ms", "blocks", "pace"),
    [
        pytest.param(600_000, 10, Pace(600_000, 10), id="measured from ten minutes and ten blocks on"),
        pytest.param(599_999, 10, TWELVE_SECONDS, id="not below ten minutes"),
        pytest.param(600_000, 9, TWELVE_SECONDS, id="not below ten blocks"),
        pytest.param(3_000_000, -10, TWELVE_SECONDS, id="not backwards"),
        pytest.param(3_000_000, 12_001, Pace(3_000_000, 12_001), id="exactly, without rounding"),
    ],
)
def test_the_pace_is_measured_by_our_own_clock(span_ms: int, blocks: int, pace: Pace) -> None:
    """The blocks' timestamps, which a stranger wrote, have no part in it."""
    heads = Heads(TWELVE_SECONDS)
    for number, ms in enumerate((*range(0, span_ms, 5 * MINUTE), span_ms)):
        block_age_ms = 599 * SECOND if number % 2 == 0 else -59 * SECOND
        heads.read(Reading(NOON + ms, 1_000 + blocks * ms // span_ms, NOON + ms - block_age_ms))
    assert heads.pace() == pace


@pytest.mark.clause("S15")
def test_the_pace_follows_the_hour_before_the_newest_head() -> None:
    # a block a minute for an hour, then two a minute
    heads = heads_at(*((minute, max(minute, 2 * minute - 60)) for minute in range(121)))
    assert heads.pace() == Pace(HOUR, 120)
    assert heads.readings[0].at == NOON + HOUR  # exactly an hour before is still in it
    assert len(heads.readings) == 61


AFTER = [(19, 15), (24, 20), (29, 25)]


@pytest.mark.clause("S13", "S15")
@pytest.mark.parametrize(
    ("readings", "pace"),
    [
        pytest.param([(n, min(n, 20)) for n in range(90)], TWELVE_SECONDS, id="a halted chain has its configured pace"),
        pytest.param([(0, 0), (9, 5), (18, 15)], Pace(18 * MINUTE, 15), id="below ten minutes is none"),
        pytest.param([(0, 0), (9, 5), *AFTER], Pace(MINUTE, 1), id="what stands before its end goes"),
        pytest.param(
            [(0, 0), (9, 5), (12, 5), *AFTER], Pace(MINUTE, 1), id="it begins with the first reading of a height"
        ),
        pytest.param([(0, 0), (9, 9), (12, 4), (16, 8), *AFTER], Pace(MINUTE, 1), id="going back is no progress"),
        pytest.param([(0, 0), (10, 5), *AFTER, (40, 30), (44, 40)], TWELVE_SECONDS, id="the last one counts"),
        pytest.param(
            [(0, 50), (55, 2), (61, 5), (65, 8), (72, 20)], Pace(17 * MINUTE, 18), id="what left the hour has no part"
        ),
        pytest.param([(0, 50), (5, 5), (16, 8), (58, 50), (59, 60)], TWELVE_SECONDS, id="what is in the hour has"),
        pytest.param(
            [(0, 50), (5, 5), (16, 8), (25, 12), (34, 16), (43, 20), (52, 24), (61, 28)],
            Pace(45 * MINUTE, 20),
            id="it may come to light when what was higher leaves the hour",
        ),
    ],
)
def test_after_a_standstill_the_pace_begins_at_its_end(readings: list[tuple[int, int]], pace: Pace) -> None:
    measured = heads_at(*readings).pace()
    assert measured.ms * pace.blocks == pace.ms * measured.blocks


@pytest.mark.clause("S15")
@pytest.mark.parametrize(
    ("old_minutes", "pace"),
    [
        pytest.param((), Pace(20 * MINUTE, 20), id="all are fresh"),
        pytest.param((0,), Pace(15 * MINUTE, 15), id="the first is not"),
        pytest.param((20,), Pace(15 * MINUTE, 15), id="the last is not"),
        pytest.param((0, 20), Pace(10 * MINUTE, 10), id="neither is"),
        pytest.param((0, 5, 20), TWELVE_SECONDS, id="too little is left"),
        pytest.param((0, 5, 10, 15, 20), TWELVE_SECONDS, id="nothing is left"),
    ],
)
def test_a_head_measures_the_pace_only_if_its_block_was_fresh(old_minutes: tuple[int, ...], pace: Pace) -> None:
    heads = Heads(TWELVE_SECONDS)
    for minute in (0, 5, 10, 15, 20):
        age_ms = 10 * MINUTE + (minute in old_minutes)
        heads.read(Reading(NOON + minute * MINUTE, minute, NOON + minute * MINUTE - age_ms))
    assert heads.pace() == pace


@pytest.mark.clause("S13", "S15")
def test_a_clock_set_back_makes_no_head_younger_and_no_block_older() -> None:
    heads = Heads(TWELVE_SECONDS, [Reading(NOON, 10, NOON - SECOND)])
    heads.start(-HOUR)
    assert heads.readings == (Reading(NOON - HOUR, 10, NOON - HOUR - SECOND),)


@pytest.mark.clause("M12", "S13", "S15")
def test_after_a_clock_set_forward_there_is_no_head_before_the_next_and_the_pace_begins_anew() -> None:
    heads = Heads(TWELVE_SECONDS)
    for minute in range(11):
        heads.read(Reading(NOON + minute * MINUTE, 10 * minute, NOON + minute * MINUTE))
    assert heads.pace() == Pace(10 * MINUTE, 100)
    heads.start(9 * HOUR)  # how much of it passed while the machine slept is not known
    assert heads.reference(0) is None
    assert heads.progress(NOON) == ChainProgress(None, TWELVE_SECONDS)
    assert heads.highest_before(NOON + 11 * MINUTE + 9 * HOUR) == 100
    assert heads.readings == ()  # a restart would go on from here
    for minute in range(11):
        assert heads.pace() == TWELVE_SECONDS
        at = NOON + (minute + 11) * MINUTE + 9 * HOUR
        heads.read(Reading(at, 3_000 + 5 * minute, at))
    assert heads.pace() == Pace(10 * MINUTE, 50)


@pytest.mark.clause("M8")
@pytest.mark.parametrize(
    ("answer", "is_new"),
    [
        pytest.param(Reading(NOON, 10, NOON), False, id="the last head itself"),
        pytest.param(Reading(NOON, 9, NOON), True, id="another one of the same instant"),
        pytest.param(Reading(NOON + 1, 10, NOON), True, id="the same block, read later"),
        pytest.param(Reading(NOON - 1, 11, NOON), False, id="one that was read earlier"),
    ],
)
def test_within_a_run_a_head_is_new_if_it_is_another_one_and_not_read_earlier(answer: Reading, is_new: bool) -> None:
    heads = Heads(TWELVE_SECONDS)
    assert heads.is_new(answer)
    heads.read(Reading(NOON, 10, NOON))
    assert heads.is_new(answer) == is_new
    heads.start()
    assert heads.is_new(answer)
