"""Following what only one side has, until it is reported or both agree (S18)."""

from collections.abc import Callable, Collection, Generator
from typing import Any, Final, Literal, NamedTuple, assert_never

from msgspec.structs import replace

from lookout.core.completeness.asks import Ask, AskList, AskPosition, Listed, Look, Refused
from lookout.core.completeness.coverage import (
    Coverage,
    Finding,
    Transaction,
    drop_findings,
    drop_healed,
    forget,
    keep_extra,
    keep_missing,
)
from lookout.core.completeness.readings import (
    Agreed,
    have_oldest,
    is_whole,
    read_list,
    read_logs,
    read_receipt,
    rule_out_cut,
)
from lookout.core.completeness.tasks import Facts, Rules, Task

_FAR: Final = 2_000
_MOST_NEIGHBOURS: Final = 3
_MOST_PROOFS: Final = 5
"""Of how many extra transactions one look asks the endpoints: each costs a request to each of them."""


def follow_missing(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again, around what it lacks; and the chain again, before that is reported and once an hour."""
    coverage, listed = yield from read_list(coverage, rules, facts, task.first, task.last)
    if listed is None:  # fewer blocks are asked for at once
        return coverage
    if not isinstance(listed, Listed):
        return keep_missing(coverage, *(replace(coverage.missing[each], looked_at=facts.now) for each in task.hashes))
    seen = drop_healed(coverage, task.first, task.last, listed.hashes)
    left = [seen.missing[each] for each in task.hashes if each in seen.missing]
    unproved = [each for each in left if _needs_proof(each, rules, facts.now)]
    coverage = keep_missing(seen, *(replace(each, looked_at=facts.now) for each in left))
    if not unproved:
        return coverage
    coverage, agreed = yield from read_logs(coverage, rules, facts, task.first, task.last)
    if agreed is None:
        return replace(coverage, missing=seen.missing)
    if not isinstance(agreed, Agreed):
        return coverage
    if gone := [each.hash for each in unproved if agreed.blocks.get(each.hash) != each.block]:
        return forget(drop_findings(coverage, gone), task.first, task.last)
    common = [each for each in agreed.transactions if each.hash in listed.hashes]
    if coverage.recognised and not task.first <= coverage.recognised.block <= task.last:
        common.append(coverage.recognised)
    lacking: list[Finding] = []
    lists: dict[_Neighbours, _Between] = {}
    for finding in (replace(each, looked_at=facts.now, proved_at=facts.now) for each in unproved):
        between = _Between()
        for _ in range(_MOST_NEIGHBOURS):
            before = max((each for each in common if each.block < finding.block), default=None)
            after = min((each for each in common if each.block > finding.block), default=None)
            around = _Neighbours(before, after)
            if around not in lists:
                lists[around] = yield from _read_between(coverage, rules, facts, around, finding.block)
            between = lists[around]
            if not between.unfit:
                break
            common = [each for each in common if each not in between.unfit]
        if finding.hash in between.hashes:
            coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
        elif _is_lacking_long_enough(coverage, finding, between, rules, facts.now):
            match (yield from _look_far_away(finding, between, rules, facts)):
                case "found":
                    coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
                case "absent":
                    lacking.append(finding)
    return (yield from _confirm(coverage, task, keep_missing, lacking))


def _is_lacking_long_enough(coverage: Coverage, finding: Finding, between: "_Between", rules: Rules, now: int) -> bool:
    match between.proof:
        case "neighbours":
            return now - finding.seen_at >= rules.confirm_ms
        case "empty":
            return now - max(finding.seen_at, coverage.had_some_at) >= rules.confirm_empty_ms
        case None:
            return False
        case _:
            assert_never(between.proof)


def _look_far_away(
    finding: Finding, between: "_Between", rules: Rules, facts: Facts
) -> Generator[Ask, Any, Literal["found", "absent", "unclear"]]:
    """Whether the list has it far from its block: some date entries by another one."""
    end = finding.block if facts.position is None else max(finding.block, facts.position)
    for first, last in ((max(0, finding.block - _FAR), finding.block + _FAR), (rules.first_block, end)):
        answer = yield AskList(first, last)
        if isinstance(answer, Listed):
            if finding.hash in answer.hashes:
                return "found"
            if answer.hashes and between.proof == "empty":  # it was so only for a moment
                return "unclear"
    return "absent"


class _Neighbours(NamedTuple):
    """The nearest transactions before and after one that the list lacks, which both it and the chain have."""

    before: Transaction | None
    after: Transaction | None


class _Between(NamedTuple):
    """The list from one neighbour to the other."""

    hashes: frozenset[str] = frozenset()
    proof: Literal["neighbours", "empty"] | None = None
    """Why it may be believed that it lacks something; None if it proves nothing."""
    unfit: tuple[Transaction, ...] = ()
    """The neighbours that it does not have there, but elsewhere: the chain may have moved them; and one that is so far
    away that the list up to it is not given."""


def _read_between(
    coverage: Coverage, rules: Rules, facts: Facts, around: _Neighbours, block: int
) -> Generator[Ask, Any, _Between]:
    """Whether the list of the blocks around this one may be believed:

    - If it has both neighbours, it is neither late nor of other blocks.
    - If there is one neighbour, it is asked for 2,000 blocks more on the other side, and for the neighbour's block
      alone: it may date by other blocks, or round where a range ends.
    - A neighbour of an earlier look is asked for by its block alone as well: the chain may have changed since.
    """
    before, after = around
    margin = 0 if before and after else _FAR
    while True:
        first = before.block if before else max(0, block - margin)
        last = after.block if after else block + margin
        answer = yield AskList(first, last)
        if isinstance(answer, Refused) and facts.position is not None and block <= facts.position < last:
            last = facts.position  # it may give no list of blocks that it does not have
            answer = yield AskList(first, last)
        is_too_long = answer.asks_for_less if isinstance(answer, Refused) else not is_whole(answer, rules)
        if not is_too_long or not margin:
            break
        margin //= 2
    known = [each for each in around if each]
    if not is_whole(answer, rules) or not known:
        far = tuple(each for each in known if each == coverage.recognised and len(known) > 1)
        return _Between(answer.hashes if isinstance(answer, Listed) else frozenset(), unfit=far)
    if not answer.hashes and coverage.oldest:
        everything = yield AskList(coverage.oldest.block, max(coverage.oldest.block, last))
        if isinstance(everything, Listed) and not everything.hashes:  # though it had something once
            return _Between(proof="empty")
    if absent := tuple(each for each in known if each.hash not in answer.hashes):
        return _Between(answer.hashes, unfit=absent)
    for one in (each for each in known if len(known) == 1 or each == coverage.recognised):
        exact = yield AskList(one.block, one.block)
        if not isinstance(exact, Listed) or one.hash not in exact.hashes:
            return _Between(answer.hashes)
    if after is None and margin < _FAR:  # it may round its end down: then it does not reach the block
        nearer = yield AskList(first, block)
        if not isinstance(nearer, Listed) or not nearer.hashes < answer.hashes:
            return _Between(answer.hashes)
    if not (yield from rule_out_cut(coverage, answer, first, last)):
        return _Between(answer.hashes)
    return _Between(answer.hashes, "neighbours")


def follow_extra(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again; and the chain again, before something is reported and once an hour."""
    coverage = keep_extra(coverage, *(replace(coverage.extra[each], looked_at=facts.now) for each in task.hashes))
    listed = yield AskList(task.first, task.last)
    if not is_whole(listed, rules):
        return forget(coverage, task.first, task.last) if isinstance(listed, Listed) else coverage
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
    off_chain = (yield from _select_off_chain(coverage, task, rules, witnesses)) if absent else frozenset()
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


def _confirm(
    coverage: Coverage, task: Task, keep: Callable[..., Coverage], findings: Collection[Finding]
) -> Generator[Ask, Any, Coverage]:
    """They are reported from now on, unless the indexer is not that far any more: it is being rebuilt."""
    position = (yield AskPosition()) if findings else None
    if position is None or position.block is None or position.block < task.last:
        return coverage
    return keep(coverage, *(replace(each, stage="confirmed") for each in findings))


def _needs_proof(finding: Finding, rules: Rules, now: int) -> bool:
    """The chain is asked when something can be reported, and then rarely."""
    if finding.stage == "suspected":
        return now - finding.seen_at >= rules.confirm_ms
    return now - finding.proved_at >= rules.prove_ms


def _by_proof(finding: Finding) -> int:
    return finding.proved_at
