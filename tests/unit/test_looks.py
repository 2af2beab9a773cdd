"""What is looked at next, and what a look finds (S17 to S19)."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from lookout.core.completeness.asks import Ask, AskList, AskLogs, AskPosition, AskReceipt, Listed, Log, Receipt, Refused
from lookout.core.completeness.coverage import (
    Coverage,
    Reach,
    Transaction,
    add_agreed,
    drop_findings,
    keep_extra,
    keep_missing,
    put_off,
)
from lookout.core.completeness.tasks import Task, choose_task
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.unit.compared import EMPTY, FACTS, RULES, Both, a_finding, a_hash, look

COMPARED = replace(add_agreed(EMPTY, 100, 1_000, [], NOON, 10), newest_at=NOON)
MANY = tuple(replace(COMPARED.stretches[0], first=each, last=each) for each in range(100, 2_001))
PIECE = Task("compare", 900, 1_000)
LONGER = replace(EMPTY, most_entries=5)
FEW = Reach(50)


def _stages(coverage: Coverage) -> dict[str, dict[int, str]]:
    found = {"missing": coverage.missing, "extra": coverage.extra}
    return {what: {int(each.hash[-32:], 16): each.stage for each in some.values()} for what, some in found.items()}


def _whys(coverage: Coverage) -> list[str]:
    return [each.why for each in coverage.put_off]


def _kinds(asked: list[Ask]) -> str:
    return " ".join(type(each).__name__[3:] for each in asked)


@pytest.mark.clause("S19")
@pytest.mark.parametrize(
    ("coverage", "facts", "expected"),
    [
        pytest.param(EMPTY, FACTS._replace(final=None), None, id="nothing without a head"),
        pytest.param(EMPTY, FACTS._replace(position=None), None, id="nothing without a position"),
        pytest.param(EMPTY, FACTS._replace(heights={"a": 2_000}), None, id="nothing with too few endpoints"),
        pytest.param(
            EMPTY, FACTS._replace(heights={"a": 2_000, "b": 999}), None, id="nothing with an endpoint that is behind"
        ),
        pytest.param(replace(EMPTY, list_until_at=NOON + 1), FACTS, None, id="nothing while the list rests"),
        pytest.param(EMPTY, FACTS, Task("compare", 100, 1_000), id="all final blocks if they are few"),
        pytest.param(
            EMPTY, FACTS._replace(position=700), Task("compare", 100, 700), id="not above the indexer's position"
        ),
        pytest.param(
            replace(EMPTY, list_reach=FEW), FACTS, Task("compare", 951, 1_000), id="as many as the list gives"
        ),
        pytest.param(
            replace(EMPTY, reaches={"a": FEW}),
            FACTS._replace(heights={"a": 2_000, "b": 2_000}),
            Task("compare", 951, 1_000),
            id="as many as the endpoints give",
        ),
        pytest.param(
            replace(EMPTY, reaches={"a": FEW}),
            FACTS,
            Task("compare", 100, 1_000),
            id="not from one that gives few",
        ),
        pytest.param(
            replace(COMPARED, newest_at=NOON - 89 * SECOND),
            FACTS._replace(final=1_100, position=1_100),
            None,
            id="the newest not more often",
        ),
        pytest.param(
            put_off(replace(EMPTY, newest_at=NOON, list_reach=FEW), 951, 1_000, NOON, "list_failed"),
            FACTS,
            Task("compare", 100, 149),
            id="the past too while the newest fail",
        ),
        pytest.param(
            put_off(EMPTY, 900, 999, NOON, "logs_failed"),
            FACTS,
            Task("compare", 100, 1_000),
            id="from the first block on",
        ),
        pytest.param(
            put_off(EMPTY, 100, 999, NOON, "logs_failed"),
            FACTS,
            Task("compare", 1_000, 1_000),
            id="after what is put off",
        ),
        pytest.param(COMPARED, FACTS, None, id="nothing if all was compared"),
        pytest.param(
            COMPARED, FACTS._replace(now=NOON + HOUR), Task("repeat", 100, 1_000), id="the list alone after an hour"
        ),
        pytest.param(COMPARED, FACTS._replace(now=NOON + HOUR - 1), None, id="not the list alone before"),
        pytest.param(
            replace(COMPARED, stretches=MANY, newest_at=NOON + 2 * HOUR),
            FACTS._replace(now=NOON + 2 * HOUR, final=2_000, position=2_000),
            None,
            id="the list alone more rarely where many are to be asked for",
        ),
        pytest.param(
            COMPARED,
            FACTS._replace(now=NOON + DAY, heights={}),
            Task("repeat", 100, 1_000),
            id="the list alone without endpoints",
        ),
        pytest.param(
            COMPARED, FACTS._replace(now=NOON + DAY, position=999), None, id="not the list above the position"
        ),
        pytest.param(
            put_off(COMPARED, 100, 200, NOON + DAY, "list_cut"),
            FACTS._replace(now=NOON + DAY),
            None,
            id="not the list that is put off",
        ),
        pytest.param(
            replace(COMPARED, stretches=(replace(COMPARED.stretches[0], doubted_at=NOON - MINUTE),)),
            FACTS,
            Task("repeat", 100, 1_000),
            id="what is in doubt after a minute",
        ),
        pytest.param(
            add_agreed(replace(COMPARED, stretches=()), 700, 1_000, [], NOON, 10),
            FACTS,
            Task("compare", 100, 699),
            id="the past after the newest",
        ),
        pytest.param(
            replace(add_agreed(replace(COMPARED, stretches=()), 700, 1_000, [], NOON, 10), list_reach=FEW),
            FACTS,
            Task("compare", 100, 149),
            id="the past from the first block on",
        ),
        pytest.param(
            put_off(add_agreed(replace(COMPARED, stretches=()), 700, 1_000, [], NOON, 10), 600, 699, NOON, "position"),
            FACTS,
            Task("compare", 100, 599),
            id="the past below what is put off",
        ),
        pytest.param(
            put_off(add_agreed(replace(COMPARED, stretches=()), 700, 1_000, [], NOON, 10), 100, 699, NOON, "position"),
            FACTS,
            None,
            id="nothing if all that is left is put off",
        ),
        pytest.param(
            keep_missing(COMPARED, a_finding(1, 500), a_finding(2, 510), a_finding(3, 520, "elsewhere")),
            FACTS,
            Task("follow missing", 100, 1_000, (a_hash(1), a_hash(2))),
            id="what is missing, together",
        ),
        pytest.param(
            replace(keep_missing(COMPARED, a_finding(1, 500), a_finding(2, 900)), reaches=dict.fromkeys("abc", FEW)),
            FACTS,
            Task("follow missing", 475, 524, (a_hash(1),)),
            id="what is missing near one another",
        ),
        pytest.param(
            keep_extra(COMPARED, a_finding(1, 500), a_finding(2, 510), a_finding(3, 600)),
            FACTS,
            Task("follow extra", 500, 599, (a_hash(1), a_hash(2))),
            id="what is too much, of the same blocks",
        ),
        pytest.param(
            keep_extra(COMPARED, a_finding(1, 500, "elsewhere", HOUR)),
            FACTS,
            None,
            id="not what the chain has elsewhere",
        ),
        pytest.param(
            keep_missing(COMPARED, a_finding(1, 500, "elsewhere", HOUR)),
            FACTS,
            Task("follow missing", 100, 1_000, (a_hash(1),)),
            id="what the list has elsewhere once an hour",
        ),
        pytest.param(
            keep_missing(COMPARED, a_finding(1, 500, age_ms=59_000)), FACTS, None, id="no sooner than a minute"
        ),
        pytest.param(
            keep_missing(COMPARED, replace(a_finding(1, 500, age_ms=DAY), looked_at=NOON - 59 * MINUTE)),
            FACTS,
            None,
            id="more rarely what is long unconfirmed",
        ),
        pytest.param(
            keep_missing(COMPARED, replace(a_finding(1, 500, age_ms=DAY), looked_at=NOON - HOUR)),
            FACTS,
            Task("follow missing", 100, 1_000, (a_hash(1),)),
            id="once an hour what is long unconfirmed",
        ),
        pytest.param(
            keep_missing(COMPARED, a_finding(1, 500, "confirmed", 299_000)),
            FACTS,
            None,
            id="what is confirmed not before five minutes",
        ),
        pytest.param(
            keep_missing(COMPARED, a_finding(1, 500, "confirmed", 300_000)),
            FACTS,
            Task("follow missing", 100, 1_000, (a_hash(1),)),
            id="what is confirmed every five minutes",
        ),
    ],
)
def test_what_is_due(coverage: Coverage, facts: Any, expected: Task | None) -> None:
    assert choose_task(coverage, RULES, facts) == expected


@pytest.mark.clause("S17")
def test_blocks_in_which_both_have_the_same_are_kept_as_a_sum() -> None:
    both = Both({1: 910, 2: 920}, {1: 910, 2: 920})
    coverage, asked = look(PIECE, both)
    assert _kinds(asked) == "List Logs Logs"
    assert [(each.first, each.last, each.count) for each in coverage.stretches] == [(900, 1_000, 2)]
    assert coverage.controls == (Transaction(910, a_hash(1)), Transaction(920, a_hash(2)))
    assert coverage.oldest == Transaction(910, a_hash(1))
    assert (coverage.newest_at, coverage.most_entries) == (NOON, 2)
    assert not coverage.missing
    _, asked = look(PIECE, both, replace(coverage, stretches=()))
    assert _kinds(asked) == "List Logs Logs"


@pytest.mark.clause("S18")
def test_what_one_side_lacks_is_suspected_after_the_position_was_asked() -> None:
    both = Both({1: 910, 2: 920, 3: 930}, {1: 910, 3: 930, 9: 940})
    coverage, asked = look(PIECE, both, LONGER)
    assert _kinds(asked) == "List Logs Logs Position"
    assert _stages(coverage) == {"missing": {2: "suspected"}, "extra": {9: "suspected"}}
    assert coverage.missing[a_hash(2)].seen_at == NOON + MINUTE
    again, asked = look(PIECE, both, replace(coverage, stretches=()))
    assert _kinds(asked) == "List Logs Logs"
    assert again.missing == coverage.missing


@pytest.mark.clause("S18")
def test_what_left_the_chain_is_not_missing() -> None:
    coverage, _ = look(PIECE, Both({1: 910}, {1: 910}), keep_missing(EMPTY, a_finding(2, 920, "confirmed")))
    assert not coverage.missing


@pytest.mark.clause("S18")
def test_what_both_have_in_other_blocks_is_neither_missing_nor_extra() -> None:
    coverage, _ = look(Task("compare", 800, 899), Both({1: 850}, {1: 950}))
    assert _stages(coverage) == {"missing": {1: "suspected"}, "extra": {}}
    coverage, _ = look(PIECE, Both({}, {1: 950}), coverage)
    assert _stages(coverage) == {"missing": {1: "elsewhere"}, "extra": {1: "elsewhere"}}
    coverage, _ = look(PIECE, Both({}, {1: 950}))
    coverage, _ = look(Task("compare", 800, 899), Both({1: 850}, {1: 950}), coverage)
    assert _stages(coverage) == {"missing": {1: "elsewhere"}, "extra": {1: "elsewhere"}}


def _refuse(kind: type, *, asks_for_less: bool = False, by: str = "abc") -> Any:
    def change(ask: Ask, answer: Any) -> Any:
        is_other = isinstance(ask, AskLogs | AskReceipt) and ask.endpoint not in by
        return answer if is_other or not isinstance(ask, kind) else Refused(asks_for_less)

    return change


def _drop_logs(*endpoints: str) -> Any:
    """Each of these has one log that nobody else has."""

    def change(ask: Ask, answer: Any) -> Any:
        if isinstance(ask, AskLogs) and ask.endpoint in endpoints:
            return answer | {Log(ask.first, ask.endpoint, a_hash(77), 0)}
        return answer

    return change


@pytest.mark.clause("S17", "S18")
@pytest.mark.parametrize(
    ("both", "task", "why"),
    [
        pytest.param(Both(change=_refuse(AskList)), PIECE, "list_failed", id="the list fails"),
        pytest.param(
            Both(change=_refuse(AskList, asks_for_less=True)),
            Task("compare", 900, 900),
            "list_failed",
            id="the list of one block is refused",
        ),
        pytest.param(
            Both({}, dict.fromkeys(range(10), 900)), Task("compare", 900, 900), "list_cut", id="one block's list is cut"
        ),
        pytest.param(Both(change=_refuse(AskLogs)), PIECE, "logs_failed", id="the endpoints fail"),
        pytest.param(
            Both(change=_refuse(AskLogs, asks_for_less=True)),
            Task("compare", 900, 900),
            "logs_failed",
            id="the endpoints refuse one block",
        ),
        pytest.param(Both(change=_drop_logs("a", "b", "c")), PIECE, "logs_disagree", id="the endpoints disagree"),
        pytest.param(Both({1: 910}, {}, 999), PIECE, "position", id="the indexer went back meanwhile"),
        pytest.param(Both({1: 910}, {}, None), PIECE, "position", id="the indexer does not say how far it is"),
        pytest.param(Both(dict.fromkeys(range(1_001), 910)), PIECE, "too_many", id="too much differs"),
    ],
)
def test_what_cannot_be_compared_proves_nothing_and_is_put_off(both: Both, task: Task, why: str) -> None:
    coverage, _ = look(task, both)
    assert _whys(coverage) == [why]
    assert (coverage.stretches, coverage.missing, coverage.extra) == ((), {}, {})
    assert (coverage.list_until_at > 0) == why.startswith("list")


@pytest.mark.clause("S17")
def test_one_endpoint_that_differs_is_outvoted_and_asked_last_from_then_on() -> None:
    coverage, asked = look(PIECE, Both({1: 910}, {1: 910}, change=_drop_logs("a")))
    assert _kinds(asked) == "List Logs Logs Logs"
    assert coverage.endpoints == ("a",)
    assert coverage.controls
    _, asked = look(PIECE, Both({1: 910}, {1: 910}, change=_drop_logs("a")), coverage)
    assert [each.endpoint for each in asked if isinstance(each, AskLogs)] == ["b", "c"]


@pytest.mark.clause("S19")
def test_a_list_that_is_cut_is_asked_for_fewer_blocks_at_once() -> None:
    coverage, asked = look(PIECE, Both({}, dict.fromkeys(range(10), 910)))
    assert _kinds(asked) == "List"
    assert (coverage.list_reach, coverage.put_off, coverage.newest_at) == (Reach(50, 101), (), 0)
    assert coverage.longest_list == EMPTY.longest_list
    coverage, _ = look(PIECE, Both(change=_refuse(AskList, asks_for_less=True)))
    assert (coverage.list_reach, coverage.longest_list) == (Reach(50, 101), EMPTY.longest_list)


@pytest.mark.clause("S18")
def test_a_list_as_long_as_the_longest_may_have_been_cut_without_a_word() -> None:
    chain = {each: 900 + 9 * each // 5 for each in range(1, 54)}
    rules = replace(RULES, limit=100)

    def cut(ask: Ask, answer: Any) -> Any:
        return (
            Listed(frozenset(sorted(answer.hashes)[:50]), 50)
            if isinstance(ask, AskList) and len(answer.hashes) > 50
            else answer
        )

    coverage, asked = look(PIECE, Both(chain, chain, change=cut), rules=rules)
    assert _kinds(asked) == "List Logs Logs List List"
    assert (coverage.list_reach, coverage.missing) == (Reach(50, 101), {})

    lacking = Both(chain, {each: chain[each] for each in range(1, 51)})
    for known in (EMPTY, replace(EMPTY, most_entries=51)):
        coverage, _ = look(PIECE, lacking, known, rules)
        assert _stages(coverage)["missing"] == dict.fromkeys((51, 52, 53), "suspected")

    def fail(ask: Ask, answer: Any) -> Any:
        return Refused() if isinstance(ask, AskList) and ask.last < PIECE.last else answer

    coverage, _ = look(PIECE, lacking._replace(change=fail), rules=rules)
    assert not coverage.missing


@pytest.mark.clause("S18")
def test_a_list_of_a_single_block_may_have_been_cut_without_a_word() -> None:
    chain = dict.fromkeys(range(1, 54), 901)
    both = Both(chain, dict.fromkeys(range(1, 51), 901))
    task = Task("compare", 901, 901)
    coverage, _ = look(task, both, rules=replace(RULES, limit=100))
    assert (coverage.missing, coverage.put_off[-1].why) == ({}, "list_cut")


@pytest.mark.clause("S19")
@pytest.mark.parametrize(("failures", "blocks"), [(2, 2_000), (3, 50)])
def test_a_list_that_fails_again_and_again_is_asked_for_fewer_blocks(failures: int, blocks: int) -> None:
    coverage, _ = look(PIECE, Both(change=_refuse(AskList)), replace(EMPTY, list_failures=failures))
    assert coverage.list_reach.blocks == blocks
    few, _ = look(PIECE._replace(first=902), Both(change=_refuse(AskList)), replace(EMPTY, list_failures=9))
    assert few.list_reach == Reach()


@pytest.mark.clause("S19")
def test_an_endpoint_that_refuses_so_many_blocks_is_asked_for_fewer() -> None:
    coverage, _ = look(PIECE, Both(change=_refuse(AskLogs, asks_for_less=True, by="a")))
    assert (coverage.reaches, coverage.put_off, coverage.endpoints) == ({"a": Reach(50, 101)}, (), ("a",))
    coverage, _ = look(PIECE, Both(change=_refuse(AskLogs, asks_for_less=True, by="c")))
    assert coverage.stretches
    both = Both(
        change=lambda ask, answer: _refuse(AskLogs, asks_for_less=True, by="c")(ask, _drop_logs("a")(ask, answer))
    )
    coverage, _ = look(PIECE, both)
    assert (_whys(coverage), coverage.reaches) == (["logs_disagree"], {"c": Reach(50, 101)})


def _agreed(**blocks: int) -> Coverage:
    chain = [Transaction(block, a_hash(int(number[1:]))) for number, block in blocks.items()]
    return replace(add_agreed(EMPTY, 900, 1_000, chain, NOON - DAY, 10), most_entries=5)


REPEAT = Task("repeat", 900, 1_000)


@pytest.mark.clause("S19")
def test_the_list_alone_is_compared_with_the_sum() -> None:
    coverage, asked = look(REPEAT, Both({}, {1: 910, 2: 920}), _agreed(t1=910, t2=920))
    assert _kinds(asked) == "List"
    assert coverage.stretches[0].compared_at == NOON


@pytest.mark.clause("S18", "S19")
def test_a_list_that_differs_twice_is_compared_with_the_chain_again() -> None:
    both = Both({}, {1: 910})
    doubted, asked = look(REPEAT, both, _agreed(t1=910, t2=920))
    assert _kinds(asked) == "List"
    assert doubted.stretches[0].doubted_at == NOON
    forgotten, asked = look(REPEAT, both, doubted)
    assert _kinds(asked) == "List Position"
    assert forgotten.stretches == ()
    kept, _ = look(REPEAT, both._replace(position=999), doubted)
    assert (kept.stretches, _whys(kept)) == (doubted.stretches, ["position"])


@pytest.mark.clause("S19")
def test_a_list_that_fails_is_repeated_later_and_one_too_long_in_pieces() -> None:
    coverage, _ = look(REPEAT, Both(change=_refuse(AskList)), _agreed(t1=910))
    assert (len(coverage.stretches), _whys(coverage)) == (1, ["list_failed"])
    coverage, _ = look(REPEAT, Both({}, dict.fromkeys(range(10), 910)), _agreed(t1=910))
    assert coverage.stretches == ()
    coverage = _agreed(t1=910)
    for refusals in (1, 2):
        coverage, _ = look(REPEAT, Both(change=_refuse(AskList, asks_for_less=True)), coverage)
        assert (len(coverage.stretches), coverage.put_off[0].times) == (1, refusals)
    coverage, _ = look(REPEAT, Both(change=_refuse(AskList, asks_for_less=True)), coverage)
    assert (coverage.stretches, coverage.put_off, coverage.longest_list) == ((), (), 50)


@pytest.mark.clause("S18")
def test_what_is_known_to_differ_is_counted_once() -> None:
    many = range(100, 1_000)
    coverage = keep_missing(EMPTY, *(a_finding(n, 950) for n in many))
    both = Both(dict.fromkeys(many, 950) | {2: 960, 3: 970}, {3: 970})
    coverage, _ = look(PIECE, both, coverage, replace(RULES, limit=5_000))
    assert (len(coverage.missing), coverage.put_off) == (901, ())


KNOWN = {11: 510, 12: 520, 13: 530}
CHAIN = {1: 910, 2: 920, 3: 930, 4: 940}
TWO = {2: 920, 3: 930}


def _missing(*numbers: int, controls: Mapping[int, int] = KNOWN, **how: Any) -> tuple[Coverage, Task]:
    findings = [a_finding(each, 900 + 10 * each, **how) for each in numbers]
    both = tuple(Transaction(block, a_hash(each)) for each, block in controls.items())
    coverage = keep_missing(replace(LONGER, oldest=Transaction(500, a_hash(8)), controls=both), *findings)
    return coverage, Task("follow missing", 900, 1_000, tuple(a_hash(each) for each in numbers))


def _round_down(ask: Ask, answer: Any) -> Any:
    """A list that gives blocks up to the last hundred only."""
    if not isinstance(ask, AskList):
        return answer
    return Both(CHAIN, KNOWN | CHAIN).answer(AskList(ask.first, ask.last // 100 * 100))


def _give_few_blocks(ask: Ask, answer: Any) -> Any:
    """A list that gives the first ten blocks of a range and says nothing."""
    if not isinstance(ask, AskList) or ask.last - ask.first < 10:
        return answer
    return Both(CHAIN, KNOWN | CHAIN).answer(AskList(ask.first, ask.first + 9))


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("both", "stages"),
    [
        pytest.param(Both(CHAIN, KNOWN | {1: 910, 4: 940}), {2: "confirmed", 3: "confirmed"}, id="among others"),
        pytest.param(Both(TWO, KNOWN), {2: "confirmed", 3: "confirmed"}, id="if it has older ones"),
        pytest.param(Both(CHAIN, {}), {2: "suspected", 3: "suspected"}, id="not in an empty list"),
        pytest.param(Both(CHAIN, KNOWN | {1: 910, 2: 920, 4: 940}), {3: "confirmed"}, id="what came meanwhile is not"),
        pytest.param(
            Both(TWO, KNOWN | {2: 1_500}), {2: "elsewhere", 3: "confirmed"}, id="what it has in far blocks is not"
        ),
        pytest.param(Both(CHAIN, KNOWN | CHAIN), {}, id="nothing if all came"),
        pytest.param(Both(TWO, KNOWN, 999), {2: "suspected", 3: "suspected"}, id="not if the indexer went back"),
        pytest.param(Both(TWO, KNOWN, None), {2: "suspected", 3: "suspected"}, id="not if it does not say where it is"),
        pytest.param(
            Both(TWO, KNOWN, change=_refuse(AskList)), {2: "suspected", 3: "suspected"}, id="not if the list fails"
        ),
        pytest.param(
            Both(TWO, KNOWN, change=_refuse(AskLogs)),
            {2: "suspected", 3: "suspected"},
            id="not if the endpoints fail",
        ),
        pytest.param(
            Both(TWO, KNOWN, change=_refuse(AskLogs, asks_for_less=True)),
            {2: "suspected", 3: "suspected"},
            id="not if the endpoints want fewer blocks",
        ),
        pytest.param(Both({1: 910, 3: 930}, KNOWN | {1: 910}), {3: "suspected"}, id="what left the chain is forgotten"),
        pytest.param(
            Both(CHAIN, {each: block + 5 for each, block in (KNOWN | CHAIN).items()}),
            {2: "suspected", 3: "suspected"},
            id="not if it dates by other blocks",
        ),
        pytest.param(
            Both(CHAIN, {}, change=_round_down), {2: "suspected", 3: "suspected"}, id="not if it rounds where to end"
        ),
        pytest.param(
            Both(CHAIN, KNOWN | CHAIN, change=_give_few_blocks), {}, id="nothing if it gives few blocks at once"
        ),
        pytest.param(
            Both(CHAIN, {11: 510, 1: 910}),
            {2: "confirmed", 3: "confirmed", 4: "suspected"},
            id="if it has lost others as well, which are suspected then",
        ),
        pytest.param(
            Both(TWO, KNOWN | dict.fromkeys(range(20, 29), 1_100)),
            {2: "confirmed", 3: "confirmed"},
            id="with fewer blocks around if more are cut",
        ),
        pytest.param(
            Both(TWO, KNOWN | dict.fromkeys(range(20, 30), 920)),
            {2: "suspected", 3: "suspected"},
            id="not near a block whose list is cut",
        ),
    ],
)
def test_what_a_list_lacks_is_confirmed(both: Both, stages: dict[int, str]) -> None:
    coverage, task = _missing(2, 3)
    coverage, _ = look(task, both, coverage)
    assert _stages(coverage)["missing"] == stages


@pytest.mark.clause("S18")
@pytest.mark.parametrize("listed", [KNOWN | {5: 990}, KNOWN], ids=["between others", "as the last"])
def test_what_is_missing_is_reported_after_four_minutes(listed: dict[int, int]) -> None:
    for age_ms, stage in ((239_999, "suspected"), (240_000, "confirmed")):
        coverage, task = _missing(2, age_ms=age_ms)
        coverage, asked = look(task, Both({2: 920}, listed), coverage)
        assert _stages(coverage)["missing"] == {2: stage}
        assert ("Logs" in _kinds(asked)) is (stage == "confirmed")


@pytest.mark.clause("S18")
def test_what_the_chain_has_moved_is_forgotten() -> None:
    coverage, task = _missing(2)
    coverage, _ = look(task, Both({2: 930}, KNOWN), coverage)
    assert _stages(coverage)["missing"] == {}


@pytest.mark.clause("S18")
def test_a_list_that_does_not_give_half_of_what_it_is_tried_with_is_not_believed_where_it_is_cut() -> None:
    coverage, task = _missing(2, controls=KNOWN | {14: 540})
    listed = {11: 510, 14: 540} | dict.fromkeys(range(20, 30), 1_500)
    coverage, _ = look(task, Both({2: 920}, listed), coverage)
    assert _stages(coverage)["missing"] == {2: "suspected"}


@pytest.mark.clause("S18")
def test_what_the_list_is_known_to_have_elsewhere_is_not_missing() -> None:
    coverage, task = _missing(2)
    coverage = keep_extra(coverage, a_finding(2, 300, "elsewhere"))
    coverage, _ = look(task, Both({2: 920}, KNOWN), coverage)
    assert _stages(coverage)["missing"] == {2: "elsewhere"}


@pytest.mark.clause("S19")
def test_a_list_that_gives_nothing_of_before_its_first_block_is_asked_for_none_of_it() -> None:
    def refuse(ask: Ask, answer: Any) -> Any:
        return Refused() if isinstance(ask, AskList) and ask.first < 500 else answer

    coverage, task = _missing(2)
    coverage, _ = look(task, Both({2: 920}, KNOWN, change=refuse), coverage, replace(RULES, lowest_block=500))
    assert _stages(coverage)["missing"] == {2: "confirmed"}


@pytest.mark.clause("S18")
def test_the_list_of_a_block_is_asked_for_once_for_all_that_it_lacks() -> None:
    coverage, task = _missing(2)
    coverage = keep_missing(coverage, replace(a_finding(3, 920), block=920))
    task = task._replace(hashes=(a_hash(2), a_hash(3)))
    coverage, asked = look(task, Both({2: 920, 3: 920}, KNOWN), coverage)
    assert asked.count(AskList(920, 920)) == 1
    assert _stages(coverage)["missing"] == {2: "confirmed", 3: "confirmed"}


@pytest.mark.clause("S18")
def test_a_block_whose_list_is_cut_begins_the_four_minutes_again() -> None:
    coverage, task = _missing(2)
    coverage, _ = look(task, Both(CHAIN, KNOWN | dict.fromkeys(range(20, 30), 920)), coverage)
    assert coverage.missing[a_hash(2)].seen_at == NOON


@pytest.mark.clause("S18")
def test_what_is_known_to_be_missing_costs_one_request_for_the_list_until_it_is_proved_again() -> None:
    coverage, task = _missing(2, stage="confirmed", age_ms=HOUR - 1)
    after, asked = look(task, Both({2: 920}, KNOWN), coverage)
    assert _kinds(asked) == "List"
    assert after.missing[a_hash(2)].looked_at == NOON
    coverage, task = _missing(2, stage="confirmed", age_ms=HOUR)
    after, asked = look(task, Both({2: 920}, KNOWN), replace(coverage, list_reach=Reach(10_000)))
    assert _kinds(asked) == "List Logs Logs List List List List List Position"
    assert after.missing[a_hash(2)].proved_at == NOON


@pytest.mark.clause("S19")
def test_many_that_are_known_to_be_missing_are_proved_more_rarely() -> None:
    coverage, task = _missing(2, stage="confirmed", age_ms=HOUR)
    many = keep_missing(coverage, *(a_finding(each, 500, "confirmed") for each in range(100, 160)))
    _, asked = look(task, Both({2: 920}, KNOWN), many)
    assert _kinds(asked) == "List"


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("listed", "stage"),
    [
        pytest.param({7: 600}, "confirmed", id="if it has that under its block"),
        pytest.param({7: 605}, "suspected", id="not if it dates it otherwise"),
        pytest.param({}, "suspected", id="not if it lost that too"),
        pytest.param(
            {7: 600} | dict.fromkeys(range(20, 30), 1_100), "suspected", id="not if the blocks around are cut"
        ),
    ],
)
def test_one_transaction_that_both_have_is_enough(listed: dict[int, int], stage: str) -> None:
    coverage, task = _missing(2, controls={7: 600})
    coverage, _ = look(task, Both({2: 920}, listed), coverage)
    assert _stages(coverage)["missing"] == {2: stage}


@pytest.mark.clause("S18")
def test_transactions_of_the_same_blocks_show_as_well_whether_a_list_may_be_believed() -> None:
    coverage, task = _missing(2, controls={})
    coverage, _ = look(task, Both(CHAIN, {1: 910, 3: 930, 4: 940}), coverage)
    assert _stages(coverage)["missing"] == {2: "confirmed"}


@pytest.mark.clause("S18")
def test_what_the_list_lost_is_not_tried_again() -> None:
    coverage, task = _missing(2, controls=KNOWN | {14: 540})
    coverage, _ = look(task, Both({2: 920}, {12: 520, 13: 530, 14: 540}), coverage)
    assert [each.block for each in coverage.controls] == [520, 530, 540]
    assert _stages(coverage)["missing"] == {2: "confirmed"}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("age_ms", "listed", "stage"),
    [
        pytest.param(30 * MINUTE - 1, {}, "suspected", id="not before half an hour"),
        pytest.param(30 * MINUTE, {}, "confirmed", id="after half an hour"),
        pytest.param(30 * MINUTE, {5: 700}, "suspected", id="not if it has something else"),
        pytest.param(30 * MINUTE, {5: 480}, "suspected", id="not if it has something older than all that is known"),
    ],
)
def test_a_list_that_lost_everything_lacks_it(age_ms: int, listed: dict[int, int], stage: str) -> None:
    coverage, task = _missing(2, age_ms=age_ms)
    coverage, _ = look(task, Both({2: 920}, listed), coverage)
    assert _stages(coverage)["missing"] == {2: stage}


@pytest.mark.clause("S18")
def test_a_list_that_is_empty_at_two_moments_only_is_not_accused() -> None:
    coverage, task = _missing(2, age_ms=DAY)
    elsewhere = Task("compare", 800, 899)
    coverage, _ = look(elsewhere, Both({5: 850}, {5: 850}), coverage, facts=FACTS._replace(now=NOON - 20 * MINUTE))
    coverage, _ = look(task, Both({2: 920}, {}), coverage)
    assert _stages(coverage)["missing"] == {2: "suspected"}


def _empty_in(*numbers: int) -> Callable[[Ask, Any], Any]:
    """A list that is empty for these of the requests for it."""
    lists = itertools.count()

    def change(ask: Ask, answer: Any) -> Any:
        return Listed(frozenset(), 0) if isinstance(ask, AskList) and next(lists) in numbers else answer

    return change


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("empty", "stages"),
    [
        pytest.param((0,), {}, id="if it has it when the blocks around are looked at"),
        pytest.param((0, 4), {}, id="if it has it one turn later"),
        pytest.param((0, 4, 6), {}, id="if it has it two turns later"),
        pytest.param((0, 4, 7), {2: "suspected"}, id="if it is empty every other time"),
        pytest.param(range(5), {}, id="if it has it in the end"),
    ],
)
def test_a_list_that_is_empty_for_moments_of_a_look_is_not_accused(
    empty: Iterable[int], stages: dict[int, str]
) -> None:
    coverage, task = _missing(2, age_ms=DAY)
    both = Both({2: 920}, KNOWN | {2: 920}, change=_empty_in(*empty))
    coverage, _ = look(task, both, coverage)
    assert _stages(coverage)["missing"] == stages


@pytest.mark.clause("S18")
def test_a_list_that_never_had_anything_of_the_chain_is_not_accused() -> None:
    coverage, task = _missing(2, controls={}, age_ms=DAY)
    coverage, _ = look(task, Both({2: 920}, {}), coverage)
    assert _stages(coverage)["missing"] == {2: "suspected"}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("listed", "stage"),
    [
        pytest.param(KNOWN | {2: 925}, "elsewhere", id="while the list has it there"),
        pytest.param(KNOWN, "suspected", id="and is suspected again if it has left the list"),
    ],
)
def test_what_the_list_has_elsewhere_is_looked_at_again(listed: dict[int, int], stage: str) -> None:
    coverage, task = _missing(2, stage="elsewhere", age_ms=HOUR)
    coverage, _ = look(task, Both({2: 920}, listed), coverage)
    assert _stages(coverage)["missing"] == {2: stage}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("longest", "highest", "stage"),
    [
        pytest.param(9_999, 1_010, "confirmed", id="up to its position if it gives nothing above it"),
        pytest.param(150, 9_999, "confirmed", id="of fewer blocks if it gives no more"),
        pytest.param(1, 9_999, "suspected", id="not if it gives few blocks at once"),
        pytest.param(9_999, 950, "suspected", id="not if it fails below its position too"),
    ],
)
def test_a_list_is_asked_for_as_far_as_it_goes(longest: int, highest: int, stage: str) -> None:
    def change(ask: Ask, answer: Any) -> Any:
        if not isinstance(ask, AskList):
            return answer
        if ask.last > highest:
            return Refused()
        return Refused(asks_for_less=True) if ask.last - ask.first >= longest else answer

    coverage, task = _missing(2)
    coverage, _ = look(task, Both({1: 910, 2: 920}, KNOWN | {1: 910}, change=change), coverage)
    assert _stages(coverage)["missing"] == {2: stage}


def _add_extra(ask: Ask, answer: Any) -> Any:
    """A list that has the extra entry whatever is asked for."""
    return Listed(answer.hashes | {a_hash(9)}, answer.entries + 1) if isinstance(ask, AskList) else answer


def _refuse_after(count: int) -> Callable[[Ask, Any], Any]:
    """Nothing is answered any more after so many requests."""
    asked = itertools.count()
    return lambda _, answer: answer if next(asked) < count else Refused()


def _extra(**how: Any) -> tuple[Coverage, Task]:
    known = replace(EMPTY, oldest=Transaction(500, a_hash(8)), controls=(Transaction(600, a_hash(7)),))
    coverage = keep_extra(known, a_finding(9, 900, **how))
    return coverage, Task("follow extra", 900, 999, (a_hash(9),))


def _list_without_beginning(ask: Ask, answer: Any) -> Any:
    return Listed(frozenset((a_hash(9),)), 1) if isinstance(ask, AskList) else answer


ELSEWHERE = dict.fromkeys("abc", Receipt(700, has_event=True))
OTHER_EVENT = dict.fromkeys("abc", Receipt(950, has_event=False))


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("both", "stages"),
    [
        pytest.param(Both({8: 500}, {7: 600, 9: 950}), {9: "confirmed"}, id="the chain does not have it"),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, receipts=OTHER_EVENT),
            {9: "confirmed"},
            id="the chain has it without event",
        ),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, receipts=ELSEWHERE),
            {9: "elsewhere"},
            id="the chain has it in other blocks",
        ),
        pytest.param(Both({8: 500, 9: 950}, {9: 950}), {}, id="the chain has it here after all"),
        pytest.param(Both({8: 500}, {}), {}, id="the list has it no more"),
        pytest.param(Both({8: 500}, {7: 600, 9: 950}, position=998), {9: "suspected"}, id="the indexer went back"),
        pytest.param(Both({}, {9: 950}), {9: "suspected"}, id="the endpoints have forgotten what is older"),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, change=_refuse(AskReceipt)),
            {9: "suspected"},
            id="the endpoints do not answer",
        ),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, receipts={"a": ELSEWHERE["a"]}),
            {9: "confirmed"},
            id="one endpoint is outvoted",
        ),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, receipts={"a": ELSEWHERE["a"], "b": OTHER_EVENT["b"]}),
            {9: "suspected"},
            id="the endpoints disagree",
        ),
        pytest.param(Both({8: 500}, {7: 600, 9: 950}, change=_refuse(AskList)), {9: "suspected"}, id="the list fails"),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, change=_list_without_beginning),
            {9: "suspected"},
            id="the list gives what comes before its range",
        ),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, change=_refuse(AskList, asks_for_less=True)),
            {9: "suspected"},
            id="the list is not given",
        ),
        pytest.param(
            Both({8: 500}, dict.fromkeys(range(9, 20), 950)),
            {9: "suspected"},
            id="the list is cut, and compared again in pieces",
        ),
    ],
)
def test_what_a_list_has_too_much_is_confirmed(both: Both, stages: dict[int, str]) -> None:
    coverage, task = _extra()
    coverage = add_agreed(coverage, 900, 999, [], NOON, 10)
    coverage, _ = look(task, both, coverage)
    assert _stages(coverage)["extra"] == stages


@pytest.mark.clause("S18")
def test_what_leaves_the_list_while_it_is_looked_at_is_not_too_much() -> None:
    lists = itertools.count()

    def ignore_from_and_lose(ask: Ask, answer: Any) -> Any:
        """A list without beginning, which loses what was old after it was asked for it once."""
        if not isinstance(ask, AskList):
            return answer
        return Listed(frozenset((a_hash(9),)), 1) if next(lists) == 0 else Listed(frozenset(), 0)

    coverage, task = _extra()
    coverage, _ = look(task, Both({8: 500}, change=ignore_from_and_lose), coverage)
    assert _stages(coverage)["extra"] == {9: "suspected"}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("both", "stage"),
    [
        pytest.param(Both({8: 500}, {9: 950}), "suspected", id="not if the list gives nothing that both have"),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950, **dict.fromkeys(range(20, 31), 1_000)}),
            "suspected",
            id="not if the list behind it is cut",
        ),
        pytest.param(
            Both({}, {7: 600, 9: 950}, receipts={"c": Receipt(500, has_event=True)}),
            "suspected",
            id="not if an endpoint has forgotten what is older",
        ),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, change=_add_extra),
            "suspected",
            id="not if the list gives it behind its range as well",
        ),
        pytest.param(
            Both({8: 500}, {7: 600, 9: 950}, change=_refuse_after(5)),
            "suspected",
            id="not if the list fails in the end",
        ),
    ],
)
def test_what_is_too_much_is_not_confirmed_without_every_proof(both: Both, stage: str) -> None:
    coverage, task = _extra()
    coverage, _ = look(task, both, coverage)
    assert _stages(coverage)["extra"] == {9: stage}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("listed", "blocks"),
    [
        pytest.param(dict.fromkeys(range(20, 30), 910) | {9: 980}, (950, 999), id="into the half that has it"),
        pytest.param(dict.fromkeys(range(20, 30), 910) | {9: 930}, (900, 949), id="also if that is still cut"),
        pytest.param(dict.fromkeys(range(20, 30), 910), (900, 999), id="not at all if a half is cut"),
        pytest.param({20 + n: 900 + 9 * n for n in range(10)}, None, id="and out of the list if both halves are whole"),
    ],
)
def test_what_is_too_much_is_followed_into_fewer_blocks(listed: dict[int, int], blocks: tuple[int, int] | None) -> None:
    coverage, task = _extra(stage="confirmed")
    coverage, _ = look(task, Both({8: 500}, listed), coverage)
    assert [(each.first, each.last) for each in coverage.extra.values()] == ([blocks] if blocks else [])


@pytest.mark.clause("S18")
@pytest.mark.parametrize(("blocks", "left"), [(20, []), (1, [9])], ids=["few blocks", "not one by one"])
def test_what_is_gone_is_dropped_though_few_blocks_are_given_at_once(blocks: int, left: list[int]) -> None:
    coverage, task = _extra(stage="confirmed")

    def refuse(ask: Ask, answer: Any) -> Any:
        is_long = isinstance(ask, AskList) and ask.last - ask.first >= blocks
        return Refused(asks_for_less=True) if is_long else answer

    coverage, _ = look(task, Both(change=refuse), replace(coverage, list_reach=Reach(blocks)))
    assert list(coverage.extra) == list(map(a_hash, left))


@pytest.mark.clause("S18")
def test_what_is_too_much_in_a_block_whose_list_is_cut_stays_so() -> None:
    coverage, task = _extra(stage="confirmed")
    coverage, _ = look(task._replace(first=950, last=950), Both({}, dict.fromkeys(range(20, 30), 950)), coverage)
    assert _stages(coverage)["extra"] == {9: "confirmed"}


@pytest.mark.clause("S18")
def test_what_is_too_much_stays_so_while_the_list_cannot_be_read() -> None:
    coverage, task = _extra(stage="confirmed")
    for both in (Both(change=_refuse(AskList, asks_for_less=True)), Both({}, dict.fromkeys(range(20, 31), 950))):
        after, _ = look(task, both, coverage)
        assert _stages(after)["extra"] == {9: "confirmed"}
        assert after.extra[a_hash(9)].looked_at == NOON


@pytest.mark.clause("S18")
def test_those_that_could_not_be_proved_let_others_pass() -> None:
    numbers = range(20, 27)
    coverage = keep_extra(drop_findings(_extra()[0], [a_hash(9)]), *(a_finding(n, 900) for n in numbers))
    task = Task("follow extra", 900, 999, tuple(map(a_hash, numbers)))

    def fail(ask: Ask, answer: Any) -> Any:
        of_first = isinstance(ask, AskReceipt) and ask.transaction in map(a_hash, numbers[:5])
        return Refused() if of_first else answer

    both = Both({8: 500}, {7: 600} | dict.fromkeys(numbers, 950), change=fail)
    for _ in range(2):
        coverage, _ = look(task, both, coverage)
    assert _stages(coverage)["extra"] == dict.fromkeys(numbers[:5], "suspected") | dict.fromkeys(
        numbers[5:], "confirmed"
    )


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("far", "stage"),
    [
        pytest.param(2_900, "elsewhere", id="within some thousand blocks"),
        pytest.param(100, "elsewhere", id="anywhere, if all of it is given at once"),
        pytest.param(9_000, "confirmed", id="not beyond the indexer's position"),
    ],
)
def test_what_the_list_has_far_from_its_block_is_not_missing(far: int, stage: str) -> None:
    coverage, task = _missing(2)
    coverage, _ = look(task, Both(CHAIN, KNOWN | {1: 910, 2: far, 3: 930, 4: 940}), coverage)
    assert _stages(coverage)["missing"] == {2: stage}


ONE = {2: 920}


def _fail_above(blocks: int, *, asks_for_less: bool = False) -> Callable[[Ask, Any], Any]:
    def change(ask: Ask, answer: Any) -> Any:
        is_long = isinstance(ask, AskList) and ask.last - ask.first >= blocks
        return Refused(asks_for_less=asks_for_less) if is_long else answer

    return change


def _fail_where(*blocks: int, asks_for_less: bool = False) -> Callable[[Ask, Any], Any]:
    def change(ask: Ask, answer: Any) -> Any:
        is_there = isinstance(ask, AskList) and any(ask.first <= block <= ask.last for block in blocks)
        return Refused(asks_for_less=asks_for_less) if is_there else answer

    return change


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("both", "stage"),
    [
        pytest.param(Both(ONE, KNOWN, change=_fail_above(1_500)), "confirmed", id="that fails for many blocks"),
        pytest.param(Both(ONE, KNOWN | {2: 1_200}, change=_fail_above(300)), "elsewhere", id="but has it elsewhere"),
        pytest.param(
            Both(ONE, KNOWN | {2: 1_200}, change=_fail_above(300, asks_for_less=True)),
            "elsewhere",
            id="that wants to be asked for less, and has it above its position",
        ),
        pytest.param(Both(ONE, KNOWN, change=_fail_where(700)), "suspected", id="not if a block near it fails"),
        pytest.param(
            Both(ONE, KNOWN, change=_fail_where(700, asks_for_less=True)),
            "suspected",
            id="nor if a block is always too much",
        ),
        pytest.param(
            Both(ONE, KNOWN | dict.fromkeys(range(20, 32), 700)),
            "suspected",
            id="nor if a list is always cut",
        ),
    ],
)
def test_what_a_list_lacks_is_confirmed_if_all_blocks_around_it_are_given(both: Both, stage: str) -> None:
    coverage, task = _missing(2)
    coverage = replace(coverage, list_reach=Reach(250))
    for _ in range(4):
        coverage, _ = look(task, both, coverage)
    assert coverage.missing[a_hash(2)].stage == stage


@pytest.mark.clause("S19")
def test_a_list_that_fails_is_not_asked_again_and_again_in_one_look() -> None:
    coverage, task = _missing(2)

    def fail(ask: Ask, answer: Any) -> Any:
        is_piece = isinstance(ask, AskList) and ask.first < ask.last
        return Refused(asks_for_less=ask.last - ask.first > 3) if is_piece and isinstance(ask, AskList) else answer

    _, asked = look(task, Both(CHAIN, KNOWN, change=fail), coverage)
    assert len(asked) < 30


@pytest.mark.clause("S18")
def test_a_piece_that_is_empty_for_a_moment_hides_nothing() -> None:
    """The list has it in a piece of its own, since all around are too many for one request."""
    listed = KNOWN | {20 + each: 905 + each for each in range(9)} | {2: 2_400}
    coverage, task = _missing(2)
    seen: list[AskList] = []

    def change(ask: Ask, answer: Any) -> Any:
        if isinstance(ask, AskList) and ask.first <= 2_400 <= ask.last and ask.first > 1_000:
            seen.append(ask)
            return Listed(frozenset(), 0) if len(seen) == 1 else answer
        return answer

    coverage, _ = look(task, Both({2: 920}, listed, change=change), coverage)
    assert len(seen) > 1
    assert coverage.missing[a_hash(2)].stage != "confirmed"


@pytest.mark.clause("S18")
def test_a_burst_near_one_hides_no_other() -> None:
    """A burst is too long for a look, but lies near the second one alone."""
    burst = {100 + each: 2_911 + each // 9 for each in range(3_000)}
    coverage, task = _missing(1, 9)
    coverage, _ = look(task, Both({1: 910, 9: 990}, KNOWN | burst), coverage)
    assert _stages(coverage)["missing"] == {1: "confirmed", 9: "suspected"}


BUSY = KNOWN | {number: 900 + 20 * number for number in range(20, 125)} | {1: 910, 2: 2_111, 3: 930, 4: 940}


def _cut_to(count: int) -> Callable[[Ask, Any], Any]:
    """A list that gives so many entries at most and says nothing."""

    def change(ask: Ask, answer: Any) -> Any:
        if not isinstance(ask, AskList):
            return answer
        listed = sorted((block, each) for each, block in BUSY.items() if ask.first <= block <= ask.last)
        return Listed(frozenset(a_hash(each) for _, each in listed[:count]), min(count, len(listed)))

    return change


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("both", "limit"),
    [
        pytest.param(Both(CHAIN, BUSY), 10, id="to the limit"),
        pytest.param(Both(CHAIN, {}, change=_cut_to(60)), 1_000, id="without a word"),
    ],
)
def test_what_a_busy_list_has_far_from_its_block_is_found_though_its_lists_are_cut(both: Both, limit: int) -> None:
    coverage, task = _missing(2)
    coverage, _ = look(task, both, replace(coverage, most_entries=60), replace(RULES, limit=limit))
    assert _stages(coverage)["missing"] == {2: "elsewhere"}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("listed", "stage"),
    [
        pytest.param(dict.fromkeys(range(20, 26), 880) | dict.fromkeys(range(30, 36), 985), "confirmed", id="near"),
        pytest.param({20 + each: 919 + each // 8 for each in range(24)}, "suspected", id="not if two blocks are cut"),
    ],
)
def test_what_a_list_lacks_where_it_is_cut_is_confirmed_by_blocks_around_it(listed: dict[int, int], stage: str) -> None:
    coverage, task = _missing(2)
    coverage, _ = look(task, Both({2: 920}, KNOWN | listed), coverage, replace(RULES, lowest_block=600))
    assert _stages(coverage)["missing"] == {2: stage}


@pytest.mark.clause("S18")
def test_a_list_whose_pieces_lack_what_the_whole_has_is_not_believed() -> None:
    """It gives blocks up to the last thousand, so that one control alone is right."""
    listed = {7: 1_000} | {20 + each: 1_001 + each for each in range(12)}

    def change(ask: Ask, answer: Any) -> Any:
        if not isinstance(ask, AskList):
            return answer
        return Both({}, listed).answer(AskList(ask.first, ask.last // 1_000 * 1_000))

    coverage, task = _missing(9, controls={7: 1_000})
    coverage, _ = look(task, Both({9: 990}, change=change), coverage, replace(RULES, lowest_block=900))
    assert _stages(coverage)["missing"] == {9: "suspected"}


@pytest.mark.clause("S18")
def test_what_a_list_has_in_blocks_that_it_rounds_off_is_found_by_others() -> None:
    listed = KNOWN | {2: 1_000} | {20 + each: 1_450 + each for each in range(12)}

    def change(ask: Ask, answer: Any) -> Any:
        """Up to the last multiple of 400, unless it is asked for one block; the newest ten."""
        if not isinstance(ask, AskList):
            return answer
        last = ask.last if ask.first == ask.last else ask.last // 400 * 400
        newest = sorted((block, each) for each, block in listed.items() if ask.first <= block <= last)[-10:]
        return Listed(frozenset(a_hash(each) for _, each in newest), len(newest))

    coverage, task = _missing(2)
    coverage = replace(coverage, list_reach=Reach(10_000))
    coverage, _ = look(task, Both({2: 920}, change=change), coverage, replace(RULES, lowest_block=600))
    assert _stages(coverage)["missing"] == {2: "elsewhere"}


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("moved", "stage"),
    [
        pytest.param(2, "confirmed", id="if they are few"),
        pytest.param(4, "suspected", id="not if they are half of them"),
    ],
)
def test_transactions_that_the_chain_has_moved_do_not_make_a_list_unbelievable(moved: int, stage: str) -> None:
    chain = {2: 920} | {n: 930 + n for n in range(20, 28)}
    listed = {n: chain[n] for n in range(20, 28)} | dict.fromkeys(range(20, 20 + moved), 905)
    coverage, task = _missing(2, controls={})
    coverage, _ = look(task, Both(chain, listed), coverage)
    assert _stages(coverage)["missing"] == {2: stage}


@pytest.mark.clause("S19")
def test_what_cannot_be_looked_at_does_not_keep_others_waiting() -> None:
    coverage, task = _missing(2)
    coverage, _ = look(task, Both(CHAIN, change=_refuse(AskList)), coverage)
    assert coverage.missing[a_hash(2)].looked_at == NOON
    coverage, task = _missing(2)
    after, _ = look(task, Both(CHAIN, KNOWN, change=_refuse(AskLogs, asks_for_less=True)), coverage)
    assert after.missing == coverage.missing  # of fewer blocks at once


@pytest.mark.clause("S18")
@pytest.mark.parametrize(
    ("oldest", "stage"),
    [
        pytest.param(None, "suspected", id="not if nothing is known of the chain"),
        pytest.param(1_005, "suspected", id="not in blocks before all that is known"),
        pytest.param(960, "suspected", id="not if the list has it before the first that is known"),
        pytest.param(940, "confirmed", id="if the list has it after the first that is known"),
    ],
)
def test_nothing_is_too_much_where_the_endpoints_may_have_forgotten_it(oldest: int | None, stage: str) -> None:
    coverage, task = _extra()
    coverage = replace(coverage, oldest=None if oldest is None else Transaction(oldest, a_hash(8)))
    coverage, _ = look(task, Both({8: oldest or 0}, {7: 600, 9: 950}), coverage)
    assert _stages(coverage)["extra"] == {9: stage}


@pytest.mark.clause("S18")
def test_what_is_known_to_be_too_much_costs_one_request_for_the_list_until_it_is_proved_again() -> None:
    coverage, task = _extra(stage="confirmed", age_ms=4 * MINUTE)
    after, asked = look(task, Both({8: 500}, {7: 600, 9: 950}), coverage)
    assert _kinds(asked) == "List"
    assert after.extra[a_hash(9)].looked_at == NOON
    coverage, task = _extra(stage="confirmed", age_ms=HOUR)
    _, asked = look(task, Both({8: 500}, {7: 600, 9: 950}), coverage)
    assert _kinds(asked) == "List Receipt Receipt List Receipt Receipt List List Position"


@pytest.mark.clause("S17")
def test_one_endpoint_is_enough_where_the_settings_say_so() -> None:
    rules = replace(RULES, endpoints=1)
    coverage, asked = look(PIECE, Both({1: 910}, {1: 910}), rules=rules)
    assert _kinds(asked) == "List Logs"
    assert coverage.controls == (Transaction(910, a_hash(1)),)


@pytest.mark.clause("S19")
def test_findings_and_blocks_that_were_not_compared_take_turns() -> None:
    suspected = keep_missing(EMPTY, a_finding(1, 950))
    suspected = replace(add_agreed(suspected, 900, 1_000, [], NOON, 10), newest_at=NOON)
    assert choose_task(suspected, RULES, FACTS) == Task("follow missing", 100, 1_000, (a_hash(1),))
    followed, _ = look(Task("follow missing", 900, 1_000, (a_hash(1),)), Both(), suspected)
    assert followed.was_following
    task = choose_task(replace(suspected, was_following=True), RULES, FACTS)
    assert task == Task("compare", 100, 899)
    compared, _ = look(task, Both(), replace(suspected, was_following=True))
    assert not compared.was_following


@pytest.mark.clause("S19")
def test_one_look_follows_twenty_of_many_those_that_waited_longest() -> None:
    many = {n: replace(a_finding(n, 950), looked_at=NOON - 2 * HOUR + n) for n in range(100, 160)}
    coverage = keep_missing(replace(EMPTY, newest_at=NOON), *many.values())
    task = choose_task(add_agreed(coverage, 100, 1_000, [], NOON, 10), RULES, FACTS)
    assert task is not None
    assert task.hashes == tuple(map(a_hash, range(100, 120)))


@pytest.mark.clause("S17")
def test_the_indexer_is_asked_last_how_far_it_is() -> None:
    coverage, task = _missing(2)
    _, asked = look(task, Both({2: 920}, KNOWN), coverage)
    assert asked[-1] == AskPosition()
