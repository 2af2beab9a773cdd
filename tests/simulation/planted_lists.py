"""Mistakes in how a list is compared, planted where the looks meet the world, to see that its worlds find them."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from lookout.core.completeness.asks import Ask, AskList, AskLogs, AskReceipt, Listed, Receipt
from lookout.core.completeness.coverage import Coverage, Transaction
from lookout.core.completeness.looks import run_task
from lookout.core.completeness.tasks import Facts, Rules, Task
from tests.simulation.lists import Look, Plan

Change = Callable[[Ask, Any], Any]


def _with_answers(look: Look, change: Change) -> Look:
    """The look, told something else than what was answered."""
    try:
        ask = next(look)
        while True:
            ask = look.send(change(ask, (yield ask)))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _ignores_neighbours(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """It takes it that the list has all around what it lacks."""
    others: set[str] = {each.hash for each in coverage.controls}

    def change(ask: Ask, answer: Any) -> Any:
        if isinstance(ask, AskLogs) and isinstance(answer, frozenset):
            others.update(log.transaction for log in answer)
        if task.what == "follow missing" and isinstance(ask, AskList) and isinstance(answer, Listed):
            return Listed(answer.hashes | others.difference(task.hashes), answer.entries)
        return answer

    return _with_answers(run_task(task, coverage, rules, facts), change)


def _asks_no_receipts(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """What is not among the logs of these blocks is not on the chain."""

    def change(ask: Ask, answer: Any) -> Any:
        return Receipt(0, has_event=False) if isinstance(ask, AskReceipt) else answer

    return _with_answers(run_task(task, coverage, rules, facts), change)


def _ignores_pruning(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """An endpoint that has the newest has all."""
    newest = Transaction(0, coverage.controls[-1].hash) if coverage.controls else None
    after = yield from run_task(task, replace(coverage, oldest=newest), rules, facts)
    return replace(after, oldest=coverage.oldest)


def _repeats_nothing(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """What was compared once is taken to be equal for ever."""
    if task.what != "repeat":
        return (yield from run_task(task, coverage, rules, facts))
    return replace(coverage, stretches=tuple(replace(each, compared_at=facts.now) for each in coverage.stretches))


def _never_looks_again(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """What was confirmed once is confirmed for ever."""
    after = yield from run_task(task, coverage, rules, facts)
    kept = {one: each for one, each in coverage.missing.items() if each.stage == "confirmed"}
    return replace(after, missing={**after.missing, **kept})


def _expects_what_is_missing(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """A sum is compared as if nothing were known to differ, and what differs is compared with the chain again."""
    if task.what != "repeat":
        return (yield from run_task(task, coverage, rules, facts))
    after = yield from run_task(task, replace(coverage, missing={}, extra={}), rules, facts)
    return replace(after, missing=coverage.missing, extra=coverage.extra)


WAITS_FOR_NOTHING = Plan(rules=lambda rules: replace(rules, look_again_ms=0, confirm_ms=0))
TRUSTS_ONE_ENDPOINT = Plan(rules=lambda rules: replace(rules, endpoints=1))
IGNORES_NEIGHBOURS = Plan(begin=_ignores_neighbours)
ASKS_NO_RECEIPTS = Plan(begin=_asks_no_receipts)
IGNORES_PRUNING = Plan(begin=_ignores_pruning)
REPEATS_NOTHING = Plan(begin=_repeats_nothing)
NEVER_LOOKS_AGAIN = Plan(begin=_never_looks_again)
EXPECTS_WHAT_IS_MISSING = Plan(begin=_expects_what_is_missing)
COUNTS_ITS_ABSENCE = Plan(resume=lambda coverage, _: coverage)
IGNORES_ROLLBACKS = Plan(follow=lambda coverage, _: coverage)
