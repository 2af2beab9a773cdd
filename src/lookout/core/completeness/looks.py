"""Holding an indexer's list against the chain, one look after the other, without I/O (S17 to S19).

A look is a generator: it yields what it has to know (``Ask``) and is sent the answer. So it reads from top to bottom,
though time passes between its lines, and returns what is known then. What cannot be confirmed changes nothing.
"""

from collections.abc import Iterable
from typing import Final, assert_never

from msgspec.structs import replace

from lookout.core.completeness.asks import AskList, AskPosition, Listed, Look, Refused
from lookout.core.completeness.coverage import (
    MOST_FINDINGS,
    Coverage,
    Transaction,
    Trouble,
    add_agreed,
    drop_findings,
    drop_healed,
    end_put_off,
    forget,
    is_as_expected,
    keep_controls,
    keep_extra,
    keep_missing,
    keep_stretch,
    pause_list,
    put_off,
)
from lookout.core.completeness.findings import follow_extra, follow_missing, suspect
from lookout.core.completeness.readings import Agreed, ask_less, is_whole, read_list, read_logs, rule_out_cut
from lookout.core.completeness.tasks import Facts, Rules, Task

_MOST_REFUSALS: Final = 3


def run_task(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The look that carries out a task. Whether the list had anything at all is noted on the way."""
    look = _start(task, coverage, rules, facts)
    had_some = False
    try:
        ask = next(look)
        while True:
            answer = yield ask
            had_some = had_some or (isinstance(answer, Listed) and bool(answer.hashes))
            ask = look.send(answer)
    except StopIteration as end:
        after: Coverage = replace(end.value, was_following=task.what in ("follow missing", "follow extra"))
        return replace(after, had_some_at=facts.now) if had_some else after


def _start(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    match task.what:
        case "compare":
            return _compare(task, coverage, rules, facts)
        case "repeat":
            return _repeat(task, coverage, rules, facts)
        case "follow missing":
            return follow_missing(task, coverage, rules, facts)
        case "follow extra":
            return follow_extra(task, coverage, rules, facts)
        case _:
            assert_never(task.what)


def _compare(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Both sides of blocks that were not compared yet."""
    first, last = task.first, task.last
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, newest_at=facts.now)
    coverage, listed = yield from read_list(coverage, rules, facts, first, last)
    if not isinstance(listed, Listed):
        return _postpone(coverage, listed, task, facts)
    coverage, agreed = yield from read_logs(coverage, rules, facts, first, last)
    if not isinstance(agreed, Agreed):
        return _postpone(coverage, agreed, task, facts)
    missing = [each for each in agreed.transactions if each.hash not in listed.hashes]
    common = [each for each in agreed.transactions if each.hash in listed.hashes]
    extra = listed.hashes - agreed.blocks.keys()
    if missing and common and not (yield from rule_out_cut(coverage, listed, first, last)):
        return _postpone(*ask_less(coverage, listed, last - first + 1), task, facts)
    at = facts.now
    if any(each.hash not in coverage.missing for each in missing) or not extra <= coverage.extra.keys():
        position = yield AskPosition()
        if position.block is None or position.block < last:
            return _postpone(coverage, "position", task, facts)
        at = position.at
    gone = (each.hash for each in coverage.missing.values() if first <= each.block <= last)
    coverage = drop_findings(coverage, [each for each in gone if each not in agreed.blocks])
    coverage = drop_healed(coverage, first, last, listed.hashes)
    differ = {*coverage.missing, *coverage.extra, *extra, *(each.hash for each in missing)}
    if len(differ) > MOST_FINDINGS:
        return _postpone(coverage, "too_many", task, facts)
    coverage = _note_missing(coverage, task, missing, at)
    coverage = _note_extra(coverage, task, extra, at)
    coverage = end_put_off(keep_controls(coverage, common), first, last)
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, checked_at=facts.now)
    return add_agreed(coverage, first, last, agreed.transactions, facts.now, rules.limit, listed.entries)


def _note_missing(coverage: Coverage, task: Task, missing: Iterable[Transaction], at: int) -> Coverage:
    for block, transaction in missing:
        if listed := coverage.extra.get(transaction):
            coverage = keep_extra(coverage, replace(listed, stage="elsewhere"))
        known = coverage.missing.get(transaction)
        found = known or suspect(transaction, task, block, at)
        coverage = keep_missing(coverage, replace(found, stage="elsewhere") if listed else found)
    return coverage


def _note_extra(coverage: Coverage, task: Task, extra: Iterable[str], at: int) -> Coverage:
    for transaction in extra:
        if lacking := coverage.missing.get(transaction):
            coverage = keep_missing(coverage, replace(lacking, stage="elsewhere"))
        known = coverage.extra.get(transaction) or suspect(transaction, task, task.first, at)
        found = replace(known, first=task.first, last=task.last, block=task.first)
        coverage = keep_extra(coverage, replace(found, stage="elsewhere") if lacking else found)
    return coverage


def _repeat(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list alone, of blocks whose transactions are known."""
    stretch = next(each for each in coverage.stretches if each.first == task.first)
    listed = yield AskList(task.first, task.last)
    if isinstance(listed, Refused):
        coverage = put_off(pause_list(coverage, facts.now), task.first, task.last, facts.now, "list_failed")
        if not listed.asks_for_less or coverage.put_off[-1].times < _MOST_REFUSALS:
            return coverage
        # So many blocks are never given at once.
        coverage = replace(coverage, longest_list=max(1, (task.last - task.first + 1) // 2))
        return end_put_off(forget(coverage, task.first, task.last), task.first, task.last)
    if not is_whole(listed, rules):
        return forget(coverage, task.first, task.last)
    coverage = end_put_off(coverage, task.first, task.last)
    healed = drop_healed(coverage, task.first, task.last, listed.hashes)
    if is_as_expected(healed, stretch, listed.hashes):
        new = replace(stretch, compared_at=facts.now, entries=listed.entries, doubted_at=None, needs_repeat=False)
        return keep_stretch(healed, new, rules.limit)
    if stretch.doubted_at is None:
        return keep_stretch(coverage, replace(stretch, doubted_at=facts.now), rules.limit)
    position = yield AskPosition()
    if position.block is None or position.block < task.last:
        return _postpone(coverage, "position", task, facts)
    return forget(coverage, task.first, task.last)


def _postpone(coverage: Coverage, why: Trouble | None, task: Task, facts: Facts) -> Coverage:
    """Try the task again later; in smaller pieces (None) at once."""
    if why is None:
        return replace(coverage, newest_at=0)
    return put_off(coverage, task.first, task.last, facts.now, why)
