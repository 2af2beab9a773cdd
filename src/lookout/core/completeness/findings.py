"""Following what only one side has, until it is reported or both agree (S18)."""

from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from lookout.core.completeness.around import FAR, Around, find_lowest, has
from lookout.core.completeness.asks import Ask, AskList, AskPosition, Listed, Look, Refused
from lookout.core.completeness.coverage import (
    MOST_FINDINGS,
    Coverage,
    Finding,
    Transaction,
    drop_findings,
    drop_healed,
    forget,
    keep_controls,
    keep_extra,
    keep_missing,
)
from lookout.core.completeness.readings import Agreed, expect_cuts, have_oldest, is_whole, read_logs, read_receipt
from lookout.core.completeness.tasks import Facts, Rules, Task

_ENOUGH_CONTROLS: Final = 3
"""No more are tried once those that the list gives outnumber the others by so many."""
_MOST_NEAR: Final = 16
"""With how many transactions of the same blocks a list is tried, beside those that are kept."""
_MOST_PIECES: Final = 64
"""Into how many requests a range is split to find an extra entry again."""
_MOST_PROOFS: Final = 5
"""Of how many extra transactions one look asks the endpoints: each costs a request to each of them."""
_MINUTE_MS: Final = 60_000


class _Trust(NamedTuple):
    """Whether a list may be believed that something is not in it. ``seen``: it gave what it should. ``empty``: it has
    nothing at all, though it had something once."""

    level: Literal["seen", "empty", "none"]
    control: Transaction | None = None
    """One that the list has under its block."""
    lost: tuple[Transaction, ...] = ()
    """Those that it does not have any more."""


def follow_missing(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list of each block alone; and the chain again, before something is reported and once an hour."""
    findings = [coverage.missing[each] for each in task.hashes]
    followed = [replace(each, looked_at=facts.now) for each in findings]
    coverage = keep_missing(coverage, *followed)
    rules = expect_cuts(rules, coverage)
    coverage, left = yield from _ask_for_blocks(coverage, followed, rules, facts.now)
    unproved = [each for each in left if _needs_proof(each, len(coverage.missing), rules, facts.now)]
    if not unproved:
        return coverage
    coverage, agreed = yield from read_logs(coverage, rules, facts, task.first, task.last)
    if agreed is None:  # fewer blocks are asked for, at once
        return keep_missing(coverage, *(each for each in findings if each.hash in coverage.missing))
    if not isinstance(agreed, Agreed):
        return coverage
    if gone := [each.hash for each in unproved if agreed.blocks.get(each.hash) != each.block]:
        return forget(drop_findings(coverage, gone), task.first, task.last)
    unproved = [replace(each, proved_at=facts.now) for each in unproved]
    coverage = keep_missing(coverage, *unproved)
    trust = yield from _try_list(coverage, rules, facts, agreed.transactions)
    coverage = _suspect_lost(coverage, task, trust.lost, agreed, facts.now)
    ripe = [each for each in unproved if _is_ripe(each, trust, coverage, rules, facts.now)]
    coverage, lacking = yield from _look_for(coverage, ripe, trust, rules, facts)
    return (yield from _confirm(coverage, task, keep_missing, lacking))


def _ask_for_blocks(
    coverage: Coverage, findings: Iterable[Finding], rules: Rules, now: int
) -> Generator[Ask, Any, tuple[Coverage, list[Finding]]]:
    """Those that are still not in the list of their block alone."""
    left: list[Finding] = []
    lists: dict[int, Listed | Refused] = {}
    for finding in findings:
        if finding.block not in lists:
            lists[finding.block] = yield AskList(finding.block, finding.block)
        alone = lists[finding.block]
        if isinstance(alone, Listed) and finding.hash in alone.hashes:
            coverage = _drop_found(coverage, finding)
        elif is_whole(alone, rules):
            left.append(finding)
        elif isinstance(alone, Listed) and finding.stage == "suspected":
            coverage = keep_missing(coverage, replace(finding, seen_at=now))  # it may be in what was cut off
    return coverage, left


def _look_for(
    coverage: Coverage, findings: Sequence[Finding], trust: _Trust, rules: Rules, facts: Facts
) -> Generator[Ask, Any, tuple[Coverage, list[Finding]]]:
    """Those that the list has under no other block either."""
    around = Around(rules, coverage.list_reach.blocks, facts.position, trust.control)
    yield from around.read(findings)
    if trust.level == "empty" and around.hashes:
        return coverage, []  # it was so only for a moment
    lacking: list[Finding] = []
    for finding in findings:
        match (yield from around.find(finding)):
            case "there":
                coverage = _drop_found(coverage, finding)
            case "elsewhere":
                coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
            case "nowhere" if finding.hash in coverage.extra:  # it has it in blocks that were compared
                coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
            case "nowhere" if finding.stage == "elsewhere":
                coverage = keep_missing(coverage, replace(finding, stage="suspected", seen_at=facts.now))
            case "nowhere":
                lacking.append(finding)
    if lacking:
        highest = max(each.block for each in lacking)
        everything = yield AskList(rules.lowest_block, max(highest, facts.position or 0))
        far = [each for each in lacking if isinstance(everything, Listed) and each.hash in everything.hashes]
        coverage = keep_missing(coverage, *(replace(each, stage="elsewhere") for each in far))
        lacking = [each for each in lacking if each not in far]
    return coverage, lacking


def _drop_found(coverage: Coverage, finding: Finding) -> Coverage:
    """The list has it where the chain has it."""
    return keep_controls(drop_findings(coverage, [finding.hash]), [Transaction(finding.block, finding.hash)])


def _try_list(
    coverage: Coverage, rules: Rules, facts: Facts, near: Sequence[Transaction] = ()
) -> Generator[Ask, Any, _Trust]:
    """Whether the list gives transactions of the chain for their blocks alone. One that dates by other blocks or rounds
    gives most of them only for more blocks. What it does not have at all shows nothing: it is lost as well."""
    some = near[:: 1 + len(near) // _MOST_NEAR]
    by_block = {each.block: each for each in (*some, *coverage.controls) if each.hash not in coverage.missing}
    passed: list[Transaction] = []
    lost: list[Transaction] = []
    failed = 0
    for control in by_block.values():
        if (yield from has(control)):
            passed.append(control)
        else:
            around = yield AskList(find_lowest(control.block, rules), control.block + FAR)
            if is_whole(around, rules) and control.hash not in around.hashes:
                lost.append(control)
            else:
                failed += 1
        if len(passed) == failed + _ENOUGH_CONTROLS:
            break
    if len(passed) > failed + 1 or (passed and not failed):
        return _Trust("seen", passed[-1], tuple(lost))
    if not passed and coverage.controls and coverage.oldest:
        everything = yield AskList(coverage.oldest.block, max(coverage.oldest.block, facts.position or 0))
        if isinstance(everything, Listed) and not everything.hashes:
            return _Trust("empty")
    return _Trust("none")


def _suspect_lost(coverage: Coverage, task: Task, lost: Collection[Transaction], agreed: Agreed, now: int) -> Coverage:
    """What the list had once is looked at from now on, as far as the chain has it."""
    controls = tuple(each for each in coverage.controls if each not in lost)
    found = [suspect(each.hash, task, each.block, now) for each in lost if agreed.blocks.get(each.hash) == each.block]
    return keep_missing(replace(coverage, controls=controls), *found[: max(0, MOST_FINDINGS - len(coverage.missing))])


def _is_ripe(finding: Finding, trust: _Trust, coverage: Coverage, rules: Rules, now: int) -> bool:
    if trust.level == "empty":
        return now - max(finding.seen_at, coverage.had_some_at) >= rules.confirm_empty_ms
    return trust.level != "none"


def follow_extra(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again; and the chain again, before something is reported and once an hour."""
    coverage = keep_extra(coverage, *(replace(coverage.extra[each], looked_at=facts.now) for each in task.hashes))
    listed = yield AskList(task.first, task.last)
    if not is_whole(listed, rules):
        is_too_long = isinstance(listed, Listed) or listed.asks_for_less
        return (yield from _narrow_down(coverage, task, rules)) if is_too_long else coverage
    coverage = drop_healed(coverage, task.first, task.last, listed.hashes)
    left = sorted((coverage.extra[each] for each in task.hashes if each in coverage.extra), key=_by_proof)
    unproved = [each for each in left if each.stage == "suspected" or facts.now - each.proved_at >= rules.prove_ms]
    eventless: list[Finding] = []
    absent: list[Finding] = []
    witnesses: set[str] = set()
    for finding in (replace(each, proved_at=facts.now) for each in unproved[:_MOST_PROOFS]):
        coverage, agreed = yield from read_receipt(keep_extra(coverage, finding), rules, facts, finding.hash, task.last)
        if agreed is None:
            continue
        endpoints, receipt = agreed
        if receipt is None:
            absent.append(finding)
            witnesses.update(endpoints)
        elif not receipt.has_event:
            eventless.append(finding)
        elif task.first <= receipt.block <= task.last:
            return forget(drop_findings(coverage, [finding.hash]), task.first, task.last)
        else:
            coverage = keep_extra(coverage, replace(finding, stage="elsewhere"))
    off_chain: frozenset[str] = frozenset()
    if absent and (yield from _try_list(coverage, rules, facts)).control:
        off_chain = yield from _select_off_chain(coverage, task, rules, witnesses)
    extra = [*eventless, *(each for each in absent if each.hash in off_chain)]
    return (yield from _confirm(coverage, task, keep_extra, extra))


def _select_off_chain(
    coverage: Coverage, task: Task, rules: Rules, witnesses: Collection[str]
) -> Generator[Ask, Any, frozenset[str]]:
    """What of the list is not on the chain if these endpoints do not have it: they have the oldest transaction known,
    and the list gives nothing that is older than its range."""
    oldest = coverage.oldest
    if oldest is None or oldest.block > task.last or not (yield from have_oldest(witnesses, oldest)):
        return frozenset()
    beyond = yield AskList(task.last + 1, task.last + 1)
    again = yield AskList(max(task.first, oldest.block), task.last)  # last: what has gone meanwhile is not too much
    if not is_whole(beyond, rules) or not isinstance(again, Listed):
        return frozenset()
    kept: frozenset[str] = again.hashes - beyond.hashes
    return kept


def _narrow_down(coverage: Coverage, task: Task, rules: Rules) -> Look:
    """So many blocks are not given at once any more: in which of fewer are they?"""
    size = min(coverage.list_reach.blocks, (task.last - task.first + 1) // 2)
    if not size or (task.last - task.first) // size >= _MOST_PIECES:
        return coverage
    pieces = [(first, min(first + size - 1, task.last)) for first in range(task.first, task.last + 1, size)]
    lists: dict[tuple[int, int], Listed | Refused] = {}
    for piece in pieces:
        lists[piece] = yield AskList(*piece)
    for finding in [coverage.extra[each] for each in task.hashes]:
        having = [piece for piece, each in lists.items() if isinstance(each, Listed) and finding.hash in each.hashes]
        if having:
            first, last = having[0]
            coverage = keep_extra(coverage, replace(finding, first=first, last=last, block=first))
        elif all(is_whole(each, rules) for each in lists.values()):
            coverage = drop_findings(coverage, [finding.hash])
    return coverage


def suspect(transaction: str, task: Task, block: int, at: int) -> Finding:
    """Only one side has it, in the blocks of this task."""
    return Finding(
        hash=transaction, first=task.first, last=task.last, block=block, seen_at=at, looked_at=at, proved_at=at
    )


def _confirm(
    coverage: Coverage, task: Task, keep: Callable[..., Coverage], findings: Collection[Finding]
) -> Generator[Ask, Any, Coverage]:
    """They are reported from now on, unless the indexer is not that far any more: it is being rebuilt."""
    position = (yield AskPosition()) if findings else None
    if position is None or position.block is None or position.block < task.last:
        return coverage
    return keep(coverage, *(replace(each, stage="confirmed") for each in findings))


def _needs_proof(finding: Finding, findings: int, rules: Rules, now: int) -> bool:
    """The chain is asked when something can be reported, and then rarely, the more so if there are many."""
    if finding.stage == "suspected":
        return now - finding.seen_at >= rules.confirm_ms
    return now - finding.proved_at >= max(rules.prove_ms, _MINUTE_MS * findings)


def _by_proof(finding: Finding) -> int:
    return finding.proved_at
