"""Reference heads: agreement, age and pace."""

import pytest

from lookout.core.heads import Heads, Pace, Reading, Reference, agree, counts
from tests.builders import HOUR, MINUTE, NOON, SECOND, TWELVE_SECONDS

MAX_AGE = 60 * SECOND


def an_answer(height: int, *, at: int = NOON, block_at: int | None = None) -> Reading:
    return Reading(at, height, at - 2 * SECOND if block_at is None else block_at)


@pytest.mark.clause("M8")
@pytest.mark.parametrize(
    ("heights", "agreed"),
    [
        pytest.param([100], 100, id="of one that one"),
        pytest.param([100, 90], 90, id="of two the lower"),
        pytest.param([90, 100], 90, id="in whatever order"),
        pytest.param([100, 99, 98], 99, id="of three the second-highest"),
        pytest.param([100, 100, 10**9], 100, id="one that lies high changes nothing"),
        pytest.param([100, 100, 1], 100, id="one that lies low or is frozen changes nothing"),
        pytest.param([97, 98, 99, 100], 99, id="of four the second-highest"),
    ],
)
def test_endpoints_agree_on_the_second_highest(heights: list[int], agreed: int) -> None:
    head = agree([an_answer(height) for height in heights], NOON, MAX_AGE)
    assert head is not None
    assert head.height == agreed


@pytest.mark.clause("M8")
def test_the_agreed_head_is_of_the_instant_of_the_newest_answer_and_of_the_chosen_block() -> None:
    answers = [an_answer(100, at=NOON - 9 * SECOND), an_answer(101, at=NOON)]
    assert agree(answers, NOON, MAX_AGE) == Reading(NOON, 100, NOON - 11 * SECOND)


@pytest.mark.clause("M8")
def test_an_answer_takes_part_for_as_long_as_a_head_may_be_old() -> None:
    answers = [an_answer(100), an_answer(90, at=NOON - MAX_AGE)]
    assert agree(answers, NOON, MAX_AGE) == Reading(NOON, 90, NOON - MAX_AGE - 2 * SECOND)
    answers = [an_answer(100), an_answer(90, at=NOON - MAX_AGE - 1)]
    assert agree(answers, NOON, MAX_AGE) == Reading(NOON, 100, NOON - 2 * SECOND)
    assert agree([], NOON, MAX_AGE) is None


@pytest.mark.clause("M8")
def test_a_block_more_than_a_minute_in_the_future_does_not_count() -> None:
    near = an_answer(100, block_at=NOON + 60 * SECOND)
    far = an_answer(100, block_at=NOON + 60 * SECOND + 1)
    assert counts(near)
    assert not counts(far)
    assert agree([near], NOON, MAX_AGE) == Reading(NOON, 100, NOON + 60 * SECOND)
    assert agree([far], NOON, MAX_AGE) is None
    assert agree([far, far, an_answer(7)], NOON, MAX_AGE) == Reading(NOON, 7, NOON - 2 * SECOND)


@pytest.mark.clause("R11")
def test_the_net_head_is_never_below_zero() -> None:
    heads = Heads(TWELVE_SECONDS, [an_answer(12)])
    assert heads.reference(5) == Reference(7, NOON, TWELVE_SECONDS)
    assert heads.reference(12) == Reference(0, NOON, TWELVE_SECONDS)
    assert heads.reference(13) == Reference(0, NOON, TWELVE_SECONDS)


@pytest.mark.clause("S13")
def test_before_the_first_reading_there_is_no_reference() -> None:
    assert Heads(TWELVE_SECONDS).reference(5) is None
    assert Heads(TWELVE_SECONDS).pace() == TWELVE_SECONDS


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
def test_the_pace_is_measured_between_block_timestamps(span_ms: int, blocks: int, pace: Pace) -> None:
    heads = Heads(TWELVE_SECONDS)
    heads.read(Reading(NOON, 1_000, NOON))
    heads.read(Reading(NOON + SECOND, 1_000 + blocks, NOON + span_ms))
    assert heads.pace() == pace


@pytest.mark.clause("S15")
def test_the_pace_follows_the_hour_before_the_newest_head() -> None:
    heads = Heads(TWELVE_SECONDS)
    for minute in range(121):  # a block a minute for an hour, then two a minute
        height = minute if minute <= 60 else 60 + (minute - 60) * 2
        heads.read(Reading(NOON + minute * MINUTE, height, NOON + minute * MINUTE))
    assert heads.pace() == Pace(HOUR, 120)
    assert heads.readings[0].at == NOON + HOUR  # exactly an hour before is still in it
    assert len(heads.readings) == 61


@pytest.mark.clause("S15", "S13")
def test_a_chain_that_halts_goes_back_to_its_configured_pace() -> None:
    heads = Heads(TWELVE_SECONDS)
    for minute in range(90):
        heads.read(Reading(NOON + minute * MINUTE, min(minute, 20), NOON + min(minute, 20) * MINUTE))
    assert heads.pace() == TWELVE_SECONDS


def test_of_the_heads_of_one_instant_the_first_and_the_last_are_kept() -> None:
    heads = Heads(TWELVE_SECONDS)
    for height in range(1_000):
        heads.read(an_answer(height))
    assert [reading.height for reading in heads.readings] == [0, 999]
    heads.read(an_answer(1_000, at=NOON + 1))
    assert [reading.height for reading in heads.readings] == [0, 999, 1_000]


@pytest.mark.clause("S13")
def test_a_clock_set_back_makes_no_head_younger() -> None:
    heads = Heads(TWELVE_SECONDS, [Reading(NOON, 10, NOON - SECOND)])
    heads.set_back(HOUR)
    assert heads.readings == (Reading(NOON - HOUR, 10, NOON - SECOND),)
