"""One endpoint may say whatever it likes: while two honest ones answer, neither the head nor the pace follows it."""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import cycle, islice
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.agreement import Agreement
from lookout.core.heads import Heads, Pace, Reading
from tests.builders import HOUR, MINUTE, NOON, SECOND

MAX_AGE = 60 * SECOND
FIRST_HEIGHT = 20_000_000
BLOCK_TIMES = st.sampled_from([250, 450, 1_750, 2_000, 12_000])


class Says(NamedTuple):
    """How an answer differs from the truth; None for an endpoint that does not answer at all."""

    height: int = 0
    block_ms: int = 0
    late_ms: int = 100
    wrong_chain: bool = False


class Answer(NamedTuple):
    """What one endpoint said, when it arrived; None if it failed."""

    at: int
    endpoint: int
    reading: Reading | None
    wrong_chain: bool = False


HONEST = Says()
# When each endpoint is first asked; the first of them is the one that lies.
BEGINNINGS = st.lists(st.integers(0, 15 * SECOND), min_size=3, max_size=5)
ANY_HEIGHT = st.integers(-200, 200) | st.sampled_from([-FIRST_HEIGHT, -1_000_000, 10_000, 2**50])
ANY_SHIFT = st.sampled_from([0, 59 * SECOND, 61 * SECOND, -9 * MINUTE, -11 * MINUTE, -24 * HOUR, -FIRST_HEIGHT * 1_000])
LIES = st.lists(
    st.none()
    | st.builds(Says, ANY_HEIGHT, ANY_SHIFT, st.integers(0, 9 * SECOND), st.sampled_from([False] * 4 + [True])),
    min_size=1,
    max_size=12,
)


def height_at(at: int, block_ms: int) -> int:
    return FIRST_HEIGHT + (at - NOON + HOUR) // block_ms


def readings_of(
    endpoint: int, says: Sequence[Says | None], block_ms: int, until_at: int, begin_ms: int
) -> Iterator[Answer]:
    """An endpoint's answers, read again a quarter of a minute after the last reading ended."""
    at = NOON + begin_ms
    for each in cycle(says):
        at += 10 * SECOND if each is None else each.late_ms
        if at > until_at:
            return
        if each is None:
            yield Answer(at, endpoint, None)
        else:
            height = height_at(at, block_ms)
            block_at = NOON - HOUR + (height - FIRST_HEIGHT) * block_ms
            reading = Reading(at, max(0, height + each.height), max(0, block_at + each.block_ms))
            yield Answer(at, endpoint, None if each.wrong_chain else reading, each.wrong_chain)
        at += 15 * SECOND + 750


def all_readings(
    said: Sequence[Sequence[Says | None]], begin_ms: Sequence[int], block_ms: int, until_at: int
) -> Iterator[Answer]:
    return merge(
        *(
            readings_of(endpoint, says, block_ms, until_at, begins_ms)
            for endpoint, (says, begins_ms) in enumerate(zip(said, begin_ms, strict=True))
        )
    )


def follow(answers: Iterator[Answer], endpoints: int, heads: Heads) -> Iterator[tuple[Answer, Reading | None]]:
    """Every answer with what is agreed after it; the head is taken as the monitor takes it."""
    agreement = Agreement(endpoints, MAX_AGE)
    for answer in answers:
        if answer.reading is None:
            agreement.failed(answer.endpoint, is_wrong_chain=answer.wrong_chain)
        else:
            agreement.answered(answer.endpoint, answer.reading)
        head = agreement.agreed(answer.at, heads)
        if head is not None and heads.is_new(head):
            heads.read(head)
        yield answer, head


@pytest.mark.clause("M8")
@given(
    BEGINNINGS,
    st.lists(st.none() | st.just(HONEST), min_size=1, max_size=9).filter(any),
    LIES,
    BLOCK_TIMES,
)
def test_the_agreed_height_lies_between_those_of_the_honest_endpoints(
    begin_ms: list[int], honest: list[Says | None], lies: list[Says | None], block_ms: int
) -> None:
    said: list[list[Says | None]] = [
        lies,
        *(list(islice(cycle(honest), n, n + len(honest))) for n in range(1, len(begin_ms))),
    ]
    answers = all_readings(said, begin_ms, block_ms, NOON + 20 * MINUTE)
    newest: dict[int, Reading] = {}
    for answer, head in follow(answers, len(begin_ms), Heads(Pace(block_ms, 1))):
        if answer.endpoint and answer.reading:
            newest[answer.endpoint] = answer.reading
        honest_heights = [reading.height for reading in newest.values() if answer.at - reading.at <= MAX_AGE]
        if head is not None and len(honest_heights) > 1:
            assert min(honest_heights) <= head.height <= max(honest_heights)
        if head is not None:
            assert answer.at - head.at <= MAX_AGE


@pytest.mark.clause("M8", "S15")
@given(BEGINNINGS, LIES, BLOCK_TIMES)
def test_the_pace_is_the_true_one_or_the_configured_one(
    begin_ms: list[int], lies: list[Says | None], block_ms: int
) -> None:
    configured = Pace(3 * block_ms, 1)
    heads = Heads(configured)
    said: list[Sequence[Says | None]] = [lies, *((HONEST,) for _ in begin_ms[1:])]
    answers = all_readings(said, begin_ms, block_ms, NOON + 75 * MINUTE)
    for _ in follow(answers, len(begin_ms), heads):
        pace = heads.pace()
        assert pace == configured or abs(pace.ms - block_ms * pace.blocks) <= 0.05 * block_ms * pace.blocks
    assert heads.pace() != configured


@pytest.mark.clause("M8", "S15")
@given(
    st.tuples(st.integers(0, 15 * SECOND), st.integers(0, 15 * SECOND)),
    st.integers(0, FIRST_HEIGHT),
    st.integers(0, 2_000),
    st.integers(0, 75),
    BLOCK_TIMES,
)
def test_of_two_endpoints_one_that_is_syncing_misleads_nobody(
    begin_ms: tuple[int, int], behind: int, blocks_a_second: int, leaves_min: int, block_ms: int
) -> None:
    """It tells old blocks with their own old timestamps, from the first one on or from anywhere, catches up, and may
    be gone at any time."""
    configured = Pace(3 * block_ms, 1)
    heads = Heads(configured)
    until_at = NOON + 75 * MINUTE
    syncing = (
        _catching_up(answer, behind - (answer.at - NOON) * blocks_a_second // 1_000, block_ms)
        for answer in readings_of(0, [HONEST], block_ms, NOON + leaves_min * MINUTE, begin_ms[0])
    )
    right = readings_of(1, [HONEST], block_ms, until_at, begin_ms[1])
    near_at = 0  # since when its blocks are so new that they count
    for answer, head in follow(merge(syncing, right), 2, heads):
        assert answer.reading is not None
        if answer.endpoint == 0 and answer.at - answer.reading.block_at <= 12 * MINUTE:
            near_at = answer.at
        if head is not None:
            true_height = height_at(head.at, block_ms)
            assert true_height - configured.blocks * 10 * MINUTE // block_ms <= head.height <= true_height
        if not near_at:
            pace = heads.pace()
            assert pace == configured or abs(pace.ms - block_ms * pace.blocks) <= 0.05 * block_ms * pace.blocks


def _catching_up(answer: Answer, behind: int, block_ms: int) -> Answer:
    assert answer.reading is not None
    height = max(0, answer.reading.height - max(0, behind))
    block_at = max(0, NOON - HOUR + (height - FIRST_HEIGHT) * block_ms)
    return answer._replace(reading=Reading(answer.at, height, block_at))
