"""What is known of an indexer's list beside the chain's (S17 to S19)."""

import time

import msgspec
import pytest
from msgspec.structs import replace

from lookout.core.completeness.coverage import (
    Coverage,
    PutOff,
    Reach,
    Stretch,
    Transaction,
    add_agreed,
    checked_blocks,
    drop_findings,
    drop_healed,
    end_put_off,
    find_put_off,
    find_unchecked,
    follow_position,
    forget,
    gaps_of,
    is_as_expected,
    keep_controls,
    keep_extra,
    keep_missing,
    keep_stretch,
    oldest_unchecked_at,
    pause_list,
    put_off,
    resume,
)
from lookout.core.completeness.tasks import choose_task
from lookout.core.model import Gaps
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.unit.compared import EMPTY, FACTS, RULES, a_finding, a_hash

ASKED = replace(EMPTY, reaches={"a": Reach()})


def _agree(coverage: Coverage, first: int, last: int, **blocks: int) -> Coverage:
    chain = [Transaction(block, a_hash(int(number[1:]))) for number, block in blocks.items()]
    return add_agreed(coverage, first, last, chain, NOON, RULES.limit)


@pytest.mark.clause("S18")
def test_only_what_is_confirmed_is_held_against_a_row() -> None:
    coverage = keep_missing(EMPTY, a_finding(1, 110, "confirmed"), a_finding(2, 120), a_finding(3, 130, "elsewhere"))
    coverage = keep_extra(coverage, a_finding(4, 110, "confirmed"), a_finding(5, 110, "confirmed"), a_finding(6, 110))
    assert gaps_of(coverage) == Gaps(1, 2)


@pytest.mark.clause("S19")
def test_neighbours_are_joined_and_their_sums_add_up() -> None:
    coverage = _agree(_agree(ASKED, 100, 199, t1=110), 300, 399, t3=310)
    assert [(each.first, each.last) for each in coverage.stretches] == [(100, 199), (300, 399)]
    coverage = _agree(coverage, 200, 299, t2=210)
    (stretch,) = coverage.stretches
    assert (stretch.first, stretch.last, stretch.count) == (100, 399, 3)
    assert is_as_expected(coverage, stretch, {a_hash(1), a_hash(2), a_hash(3)})
    assert coverage.oldest == Transaction(110, a_hash(1))
    assert checked_blocks(coverage) == 300


@pytest.mark.clause("S19")
def test_stretches_are_not_joined_to_more_than_half_a_list() -> None:
    coverage = _agree(_agree(ASKED, 100, 199, t1=110, t2=111, t3=112), 200, 299, t4=210, t5=211, t6=212)
    assert [each.count for each in coverage.stretches] == [3, 3]


@pytest.mark.clause("S19")
def test_stretches_are_not_joined_to_more_blocks_than_the_list_may_be_asked_for() -> None:
    coverage = _agree(_agree(replace(ASKED, longest_list=150), 100, 199), 200, 299)
    assert len(coverage.stretches) == 2


@pytest.mark.clause("S19")
def test_a_stretch_in_doubt_is_joined_with_nothing() -> None:
    coverage = _agree(ASKED, 100, 199)
    coverage = replace(coverage, stretches=(replace(coverage.stretches[0], doubted_at=NOON),))
    assert len(_agree(coverage, 200, 299).stretches) == 2


@pytest.mark.clause("S19")
@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param({2, 3, 9}, True, id="what is known to differ is expected to"),
        pytest.param({1, 2, 3, 9}, False, id="what was missing is there"),
        pytest.param({2, 3}, False, id="what was too much is gone"),
        pytest.param({2, 4, 9}, False, id="another transaction of the same number"),
    ],
)
def test_a_list_is_compared_with_a_sum(listed: set[int], expected: bool) -> None:
    coverage = _agree(EMPTY, 100, 199, t1=110, t2=120, t3=130)
    coverage = keep_extra(keep_missing(coverage, a_finding(1, 110)), a_finding(9, 100), a_finding(8, 300))
    coverage = keep_missing(coverage, a_finding(7, 300))
    assert is_as_expected(coverage, coverage.stretches[0], {a_hash(each) for each in listed}) is expected


@pytest.mark.clause("S18")
def test_what_agrees_again_is_dropped_and_nothing_else() -> None:
    coverage = keep_missing(EMPTY, a_finding(1, 110, "confirmed"), a_finding(2, 120), a_finding(3, 310))
    coverage = keep_extra(coverage, a_finding(4, 100, "confirmed"), a_finding(5, 100), a_finding(6, 300))
    coverage = drop_healed(coverage, 100, 199, {a_hash(1), a_hash(3), a_hash(5)})
    assert set(coverage.missing) == {a_hash(2), a_hash(3)}
    assert set(coverage.extra) == {a_hash(5), a_hash(6)}


@pytest.mark.clause("S19")
def test_a_stretch_that_was_doubted_is_joined_when_it_agrees_again() -> None:
    coverage = replace(EMPTY, reaches={"a": Reach(1_000)})
    coverage = add_agreed(coverage, 100, 199, [], NOON, 10)
    (old,) = coverage.stretches
    coverage = keep_stretch(coverage, replace(old, doubted_at=NOON), 10)
    coverage = add_agreed(coverage, 200, 299, [], NOON, 10)
    assert len(coverage.stretches) == 2
    coverage = keep_stretch(coverage, old, 10)
    assert [(each.first, each.last) for each in coverage.stretches] == [(100, 299)]


@pytest.mark.clause("S18")
def test_some_transactions_that_both_have_are_kept_the_oldest_and_the_newest() -> None:
    many = [Transaction(100 + each, a_hash(each)) for each in range(12)]
    coverage = keep_controls(EMPTY, many)
    assert [each.block for each in coverage.controls] == [100, 101, 106, 107, 108, 109, 110, 111]
    coverage = keep_controls(coverage, [Transaction(111, a_hash(20)), Transaction(120, a_hash(21))])
    assert [each.block for each in coverage.controls] == [100, 101, 107, 108, 109, 110, 111, 120]
    assert keep_controls(EMPTY, []) == EMPTY


@pytest.mark.clause("S17")
def test_nothing_is_held_against_an_indexer_above_its_position() -> None:
    coverage = _agree(_agree(EMPTY, 100, 199), 300, 399)
    coverage = keep_missing(coverage, a_finding(1, 110, "confirmed"), a_finding(2, 310, "confirmed"))
    coverage = keep_extra(coverage, a_finding(3, 300, "confirmed"))
    followed = follow_position(coverage, 250)
    assert set(followed.missing) == {a_hash(1)}
    assert not followed.extra
    assert [each.needs_repeat for each in followed.stretches] == [False, True]
    assert follow_position(followed, 250) == followed
    assert follow_position(coverage, 1_000) is coverage


@pytest.mark.clause("S19")
def test_of_blocks_that_are_forgotten_what_only_one_side_has_is_followed() -> None:
    coverage = _agree(_agree(EMPTY, 100, 199), 300, 399)
    coverage = keep_missing(coverage, a_finding(1, 110, "confirmed"), a_finding(2, 120), a_finding(3, 130, "elsewhere"))
    coverage = forget(keep_missing(coverage, a_finding(4, 310, "elsewhere")), 150, 160)
    assert [each.first for each in coverage.stretches] == [300]
    assert set(coverage.missing) == {a_hash(1), a_hash(2), a_hash(4)}
    assert drop_findings(coverage, []) is coverage


@pytest.mark.clause("S19")
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        pytest.param(100, 450, [(200, 299), (400, 450)], id="between and after the stretches"),
        pytest.param(50, 250, [(50, 99), (200, 250)], id="before and between them"),
        pytest.param(120, 180, [], id="within one"),
        pytest.param(210, 220, [(210, 220)], id="in a gap"),
    ],
)
def test_what_was_not_compared_is_what_is_in_no_stretch(first: int, last: int, expected: list[tuple[int, int]]) -> None:
    coverage = _agree(_agree(EMPTY, 100, 199), 300, 399)
    assert [*find_unchecked(coverage, first, last)] == expected


@pytest.mark.clause("S19")
def test_the_operator_is_told_since_when_blocks_wait() -> None:
    assert oldest_unchecked_at(EMPTY, 100) == NOON
    coverage = add_agreed(replace(EMPTY, checked_at=NOON + DAY), 100, 199, [], NOON + HOUR, 10)
    assert oldest_unchecked_at(coverage, 100) == NOON + HOUR
    assert oldest_unchecked_at(coverage, 50) == NOON
    assert oldest_unchecked_at(follow_position(coverage, 150), 100) == NOON + HOUR
    assert oldest_unchecked_at(replace(coverage, checked_at=NOON + MINUTE), 100) == NOON + MINUTE


@pytest.mark.clause("S19")
def test_a_refusal_is_forgotten_some_day() -> None:
    reach = Reach().shrink(7)
    for _ in range(10_000):
        reach = reach.grow(1, 16)
    assert reach == Reach(3)


@pytest.mark.clause("S19")
def test_stretches_are_joined_by_what_the_list_gives_at_once() -> None:
    coverage = add_agreed(EMPTY, 100, 199, [], NOON, 10, entries=3)
    assert len(add_agreed(coverage, 200, 299, [], NOON, 10, entries=3).stretches) == 2
    coverage = replace(coverage, reaches={"a": Reach()})
    (joined,) = add_agreed(coverage, 200, 299, [], NOON, 10, entries=2).stretches
    assert (joined.first, joined.last, joined.entries) == (100, 299, 5)


@pytest.mark.clause("S19")
def test_blocks_that_fail_again_and_again_are_tried_ever_more_rarely() -> None:
    coverage, waits = EMPTY, []
    for _ in range(12):
        coverage = put_off(coverage, 100, 199, NOON, "logs_failed")
        waits.append((coverage.put_off[0].until_at - NOON) // MINUTE)
    assert waits == [1, 2, 4, 8] + [10] * 8
    (waiting,) = coverage.put_off
    assert find_put_off(coverage, 150, NOON) == waiting
    assert find_put_off(coverage, 150, NOON + 10 * MINUTE) is None
    assert find_put_off(coverage, 200, NOON) is None
    coverage = put_off(coverage, 150, 160, NOON, "list_cut")
    assert coverage.put_off == (PutOff(150, 160, NOON + 10 * MINUTE, 13, "list_cut"),)
    assert end_put_off(coverage, 161, 199) is coverage
    assert end_put_off(coverage, 155, 155).put_off == ()


@pytest.mark.clause("S19")
def test_a_list_that_fails_again_and_again_rests_ever_longer() -> None:
    coverage, waits = EMPTY, []
    for _ in range(7):
        coverage = pause_list(coverage, NOON)
        waits.append((coverage.list_until_at - NOON) // SECOND)
    assert waits == [20, 40, 80, 160, 320, 320, 320]


@pytest.mark.clause("S19")
@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        pytest.param(Reach(100), 100, Reach(200), id="twice as many after an answer for all"),
        pytest.param(Reach(100), 50, Reach(100), id="as many after an answer for fewer"),
        pytest.param(Reach(100, 160), 100, Reach(100, 170), id="not what was refused lately"),
        pytest.param(Reach(100, 400), 100, Reach(200, 425), id="what was refused, after a while"),
        pytest.param(Reach(1 << 20), 1 << 20, Reach(1 << 20), id="no more than a million"),
        pytest.param(Reach(1, 3), 1, Reach(2, 4), id="a single block"),
    ],
)
def test_how_many_blocks_are_asked_for_grows(before: Reach, asked: int, expected: Reach) -> None:
    assert before.grow(asked, 16) == expected


@pytest.mark.clause("S19")
@pytest.mark.parametrize(
    ("patience", "answers"), [pytest.param(1, 1, id="of a list soon"), pytest.param(16, 12, id="of an endpoint later")]
)
def test_what_was_refused_is_asked_for_again(patience: int, answers: int) -> None:
    reach, count = Reach(2_000).shrink(2_000), 0
    while reach.blocks < 2_000:
        reach, count = reach.grow(reach.blocks, patience), count + 1
    assert count == answers


@pytest.mark.clause("S19")
@pytest.mark.parametrize(
    ("before", "asked", "expected"),
    [
        pytest.param(Reach(100), 100, Reach(50, 100), id="half of what was refused"),
        pytest.param(Reach(10), 100, Reach(10, 100), id="no more than before"),
        pytest.param(Reach(1), 1, Reach(1, 2), id="at least one"),
    ],
)
def test_how_many_blocks_are_asked_for_shrinks(before: Reach, asked: int, expected: Reach) -> None:
    assert before.shrink(asked) == expected


@pytest.mark.clause("S19")
def test_after_a_start_what_waited_waits_anew_and_the_rest_is_as_it_was() -> None:
    coverage = keep_missing(_agree(EMPTY, 100, 199, t1=110, t2=120), a_finding(1, 110), a_finding(2, 120, "confirmed"))
    coverage = pause_list(put_off(keep_extra(coverage, a_finding(3, 100)), 300, 400, NOON, "position"), NOON)
    coverage = replace(coverage, stretches=(replace(coverage.stretches[0], doubted_at=NOON),))
    resumed = resume(msgspec.json.decode(msgspec.json.encode(coverage), type=Coverage), NOON + HOUR)
    assert resumed.missing[a_hash(1)].seen_at == resumed.extra[a_hash(3)].seen_at == NOON + HOUR
    assert resumed.missing[a_hash(2)] == coverage.missing[a_hash(2)]
    assert resumed.stretches == (replace(coverage.stretches[0], doubted_at=None),)
    assert (resumed.put_off, resumed.list_until_at) == ((), 0)


@pytest.mark.clause("S19")
def test_nothing_has_happened_in_the_future_when_the_clock_was_set_back() -> None:
    coverage = keep_missing(_agree(EMPTY, 100, 199), a_finding(2, 120, "confirmed"))
    resumed = resume(replace(coverage, newest_at=NOON), NOON - HOUR)
    finding = resumed.missing[a_hash(2)]
    instants = finding.seen_at, finding.looked_at, finding.proved_at, resumed.stretches[0].compared_at
    assert {*instants, resumed.newest_at, resumed.began_at} == {NOON - HOUR}


@pytest.mark.clause("S19")
def test_choosing_among_thousands_of_stretches_takes_no_time() -> None:
    stretches = tuple(Stretch(first, first + 50, 5, bytes(16), NOON) for first in range(100, 500_100, 100))
    gaps = range(400_100, 500_100, 100)
    waiting = tuple(PutOff(first + 51, first + 99, NOON + HOUR, 1, "logs_failed") for first in gaps)
    missing = {a_hash(each): a_finding(each, 100 * each, "confirmed", 0) for each in range(1, 1_000)}
    coverage = replace(EMPTY, stretches=stretches, put_off=waiting, missing=missing, newest_at=NOON)
    facts = FACTS._replace(final=500_051, position=600_000, heights={"a": 600_000, "b": 600_000})
    took: list[float] = []
    for _ in range(5):
        began = time.process_time()
        assert choose_task(coverage, RULES, facts) is not None
        took.append(time.process_time() - began)
    assert min(took) < 0.05  # a few milliseconds, if the coverage of the tests is not being measured
