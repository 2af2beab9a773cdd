"""What a chain's endpoints agree on: of many, of two, of one; and when they are waited for."""

import pytest

from lookout.core.agreement import Agreement
from lookout.core.heads import Heads, Reading
from tests.builders import HOUR, MINUTE, NOON, SECOND, TWELVE_SECONDS

MAX_AGE = 60 * SECOND
TEN_MINUTES = 50  # blocks of twelve seconds


def an_answer(height: int, *, at: int = NOON, block_at: int | None = None) -> Reading:
    return Reading(at, height, at - 2 * SECOND if block_at is None else block_at)


def heads_of(*heights: int) -> Heads:
    """A chain whose heads these were, the last of them a minute ago."""
    heads = Heads(TWELVE_SECONDS)
    for ago, height in reversed(list(enumerate(reversed(heights), 1))):
        heads.read(an_answer(height, at=NOON - ago * MINUTE))
    return heads


def agreed(*answers: Reading | None, heads: Heads | None = None, at: int = NOON) -> Reading | None:
    """What endpoints agree on that each gave this answer, or failed."""
    agreement = Agreement(len(answers), MAX_AGE)
    for endpoint, answer in enumerate(answers):
        if answer is None:
            agreement.failed(endpoint)
        else:
            agreement.answered(endpoint, answer)
    return agreement.agreed(at, heads_of() if heads is None else heads)


@pytest.mark.clause("M8")
@pytest.mark.parametrize(
    ("heights", "height"),
    [
        pytest.param([100], 100, id="of one that one"),
        pytest.param([100, 90], 90, id="of two the lower"),
        pytest.param([90, 100], 90, id="in whatever order"),
        pytest.param([100, 99, 98], 99, id="of three the second-highest"),
        pytest.param([100, 100, 10**9], 100, id="one that lies high changes nothing"),
        pytest.param([100, 100, 1], 100, id="one that lies low or is frozen changes nothing"),
        pytest.param([10**9, 10**9, 100], 10**9, id="two that lie alike are believed"),
        pytest.param([97, 98, 99, 100], 99, id="of four the second-highest"),
        pytest.param([10**9, 100, 100 - TEN_MINUTES], 100, id="ten minutes of blocks are near"),
        pytest.param([10**9, 100, 99 - TEN_MINUTES], None, id="more than that is nothing agreed"),
        pytest.param([100 + TEN_MINUTES, 100, 1], 100, id="the near one may be above"),
        pytest.param([100, None, None], None, id="one of three alone proves nothing"),
        pytest.param([100, 99, None], 99, id="two of three that are near agree"),
        pytest.param([10**6, 99, None], None, id="two of three that are not do not"),
        pytest.param([100, None], 100, id="one of two alone is believed"),
        pytest.param([None, None], None, id="nobody says nothing"),
        pytest.param([10**6, 100], None, id="two that are far from each other, of one time, agree on nothing"),
    ],
)
def test_the_endpoints_agree_on(heights: list[int | None], height: int | None) -> None:
    head = agreed(*(None if each is None else an_answer(each) for each in heights))
    assert (None if head is None else head.height) == height


@pytest.mark.clause("M8")
@pytest.mark.parametrize(
    ("later_ms", "height"),
    [
        pytest.param(10 * MINUTE + 1, 1_000_000, id="later by more than ten minutes"),
        pytest.param(10 * MINUTE, None, id="later by ten minutes"),
        pytest.param(-10 * MINUTE - 1, 0, id="earlier by more than ten minutes"),
    ],
)
def test_of_two_that_are_far_from_each_other_the_later_block_tells_who_is_synced(
    later_ms: int, height: int | None
) -> None:
    syncing = an_answer(0, block_at=NOON - HOUR)
    head = agreed(syncing, an_answer(1_000_000, block_at=NOON - HOUR + later_ms))
    assert (None if head is None else head.height) == height


@pytest.mark.clause("M8")
def test_a_single_answer_far_below_what_the_chain_had_reached_is_not_believed() -> None:
    """The highest head of the hour before it counts, not the newest."""
    heads = heads_of(1_000, 990)
    for configured in ((None,), ()):  # one of two, and the only one
        assert agreed(an_answer(1_000 - TEN_MINUTES), *configured, heads=heads) is not None
        assert agreed(an_answer(999 - TEN_MINUTES), *configured, heads=heads) is None
    an_hour_later = NOON + HOUR - MINUTE  # after the newest of them; the highest was read more than an hour before
    low = an_answer(989 - TEN_MINUTES, at=an_hour_later)
    assert agreed(low, heads=heads, at=an_hour_later) is None
    low = an_answer(0, at=an_hour_later + 1)
    assert agreed(low, heads=heads, at=an_hour_later + 1) == low


@pytest.mark.clause("M8")
def test_an_answer_takes_part_until_it_is_too_old() -> None:
    agreement = Agreement(2, MAX_AGE)
    agreement.answered(0, an_answer(100))
    agreement.answered(1, an_answer(90, at=NOON - 20 * SECOND))
    assert agreement.next_change_at(NOON) == NOON + 40 * SECOND + 1
    assert agreement.agreed(NOON + 40 * SECOND, heads_of()) == an_answer(90, at=NOON - 20 * SECOND)
    assert agreement.agreed(NOON + 40 * SECOND + 1, heads_of()) == an_answer(100)
    assert agreement.next_change_at(NOON + 40 * SECOND + 1) == NOON + 60 * SECOND + 1
    assert agreement.agreed(NOON + 60 * SECOND + 1, heads_of()) is None
    assert agreement.next_change_at(NOON + 60 * SECOND + 1) is None


@pytest.mark.clause("M8")
def test_an_endpoint_found_to_be_of_another_chain_is_withdrawn_and_any_other_failure_changes_nothing() -> None:
    agreement = Agreement(3, MAX_AGE)
    for endpoint, height in enumerate((100, 99, 98)):
        agreement.answered(endpoint, an_answer(height))
    agreement.failed(1)
    assert agreement.agreed(NOON, heads_of()) == an_answer(99)
    agreement.failed(1, is_wrong_chain=True)
    assert agreement.agreed(NOON, heads_of()) == an_answer(98)


@pytest.mark.clause("M8")
@pytest.mark.parametrize(("ahead_ms", "counts"), [(60 * SECOND, True), (60 * SECOND + 1, False)])
def test_a_block_more_than_a_minute_in_the_future_is_a_failed_reading(ahead_ms: int, *, counts: bool) -> None:
    agreement = Agreement(1, MAX_AGE)
    agreement.answered(0, an_answer(7))
    assert agreement.answered(0, an_answer(100, block_at=NOON + ahead_ms)) == counts
    head = agreement.agreed(NOON, heads_of())
    assert head is not None
    assert head.height == (100 if counts else 7)


@pytest.mark.clause("M8")
@pytest.mark.parametrize("is_waited_for", [True, False], ids=["it answers", "the wait for it ends"])
def test_at_first_nothing_is_agreed_until_each_endpoint_was_heard(*, is_waited_for: bool) -> None:
    agreement = Agreement(3, MAX_AGE)
    agreement.answered(0, an_answer(100))
    agreement.answered(1, an_answer(101))
    assert agreement.agreed(NOON, heads_of()) is None
    if is_waited_for:
        agreement.answered(2, an_answer(102))
        assert agreement.agreed(NOON, heads_of()) == an_answer(101)
    else:
        agreement.end_wait()
        assert agreement.agreed(NOON, heads_of()) == an_answer(100)


def standings(
    *answers: Reading | None, last_head: Reading | None = None, wrong: int | None = None, at: int = NOON
) -> list[str]:
    """What these answers count for beside the last head."""
    agreement = Agreement(len(answers), MAX_AGE)
    for endpoint, answer in enumerate(answers):
        if answer is None:
            agreement.failed(endpoint, is_wrong_chain=endpoint == wrong)
        else:
            agreement.answered(endpoint, answer)
    heads = Heads(TWELVE_SECONDS, [] if last_head is None else [last_head])
    return list(agreement.standings(at, heads))


HEAD = an_answer(100)


@pytest.mark.clause("M16")
@pytest.mark.parametrize(
    ("answers", "head", "expected"),
    [
        pytest.param([100, 99, 98], HEAD, ["agrees"] * 3, id="all are near the head"),
        pytest.param([100, 100 - TEN_MINUTES], HEAD, ["agrees"] * 2, id="ten minutes of blocks are near"),
        pytest.param([100, 99 - TEN_MINUTES], HEAD, ["agrees", "behind"], id="one is far below: syncing, or frozen"),
        pytest.param([100, 101 + TEN_MINUTES], HEAD, ["agrees", "disagrees"], id="one is far above"),
        pytest.param([100, 99, None], HEAD, ["agrees", "agrees", "failed"], id="one never answered"),
        pytest.param([100, 10**6], None, ["disagrees"] * 2, id="two of which nobody knows who is right"),
        pytest.param([100, None, None], None, ["not_confirmed", "failed", "failed"], id="one that nobody confirms"),
        pytest.param(
            [100], an_answer(900, at=NOON - HOUR), ["below"], id="one alone that fell, and a head that is too old"
        ),
        pytest.param([100, None], an_answer(900, at=NOON - HOUR), ["below", "failed"], id="so of two, one that fell"),
    ],
)
def test_an_endpoint_beside_the_head(answers: list[int | None], head: Reading | None, expected: list[str]) -> None:
    assert standings(*(None if each is None else an_answer(each) for each in answers), last_head=head) == expected


@pytest.mark.clause("M16")
def test_an_endpoint_of_another_chain_is_called_so_until_it_answers_for_the_right_one() -> None:
    assert standings(HEAD, HEAD, None, last_head=HEAD, wrong=2) == ["agrees", "agrees", "wrong_chain"]
    agreement = Agreement(1, MAX_AGE)
    agreement.failed(0, is_wrong_chain=True)
    agreement.failed(0)
    assert list(agreement.standings(NOON, heads_of())) == ["wrong_chain"]
    agreement.answered(0, HEAD)
    assert list(agreement.standings(NOON, Heads(TWELVE_SECONDS, [HEAD]))) == ["agrees"]


@pytest.mark.clause("M16")
def test_while_endpoints_are_waited_for_nothing_is_said_of_any() -> None:
    agreement = Agreement(2, MAX_AGE)
    agreement.answered(0, HEAD)
    assert agreement.standings(NOON, heads_of()) == ()
    agreement.end_wait()
    assert agreement.standings(NOON, Heads(TWELVE_SECONDS, [HEAD])) == ("agrees", "failed")
