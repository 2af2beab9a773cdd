"""Holding an indexer's list against the chain, one look after the other, without I/O (S17 to S19).

A look is a generator: it yields what it has to know (``Ask``) and is sent the answer. So it reads from top to bottom,
though time passes between its lines, and returns what is known then. What cannot be confirmed changes nothing.
"""

from collections.abc import Collection, Generator, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.coverage import (
    MOST_FINDINGS,
    Coverage,
    Finding,
    Reach,
    Transaction,
    Trouble,
    add_agreed,
    drop_findings,
    drop_healed,
    end_put_off,
    forget,
    is_as_expected,
    keep_extra,
    keep_missing,
    keep_stretch,
    put_off,
    unchecked,
    waiting_until,
)

_MOST_PROOFS: Final = 5
"""Of how many extra transactions one look asks the endpoints: each costs a request to each of them."""


class Log(NamedTuple):
    """An event of the contracts, as an endpoint has it."""

    block: int
    block_hash: str
    transaction: str
    number: int
    """Of the log in its block."""


class Receipt(NamedTuple):
    """That a transaction is on the chain, and whether with one of the events."""

    block: int
    has_event: bool


class Listed(NamedTuple):
    hashes: frozenset[str]
    entries: int
    """Of the list; more than hashes if a transaction stands in it once for each of its events."""


class Position(NamedTuple):
    at: int
    block: int | None
    """None if the indexer did not say."""


class Refused(NamedTuple):
    """No answer that counts."""

    asks_for_less: bool = False


class AskList(NamedTuple):
    """The indexer's list of these blocks; sent back: Listed or Refused."""

    first: int
    last: int


class AskLogs(NamedTuple):
    """An endpoint's logs of these blocks; sent back: a frozenset of Log, or Refused."""

    endpoint: str
    first: int
    last: int


class AskReceipt(NamedTuple):
    """What an endpoint has of a transaction; sent back: Receipt, None if it has none, or Refused."""

    endpoint: str
    transaction: str


class AskPosition(NamedTuple):
    """How far the indexer is, asked now; sent back: Position."""


Ask = AskList | AskLogs | AskReceipt | AskPosition
Look = Generator[Ask, Any, Coverage]


class Rules(Struct, frozen=True, kw_only=True):
    """How a list is compared. The command that compares a range at once waits for nothing."""

    first_block: int
    limit: int
    endpoints: int
    newest_every_ms: int = 90_000
    confirm_ms: int = 60_000
    confirm_alone_ms: int = 180_000
    """Where the list has nothing before, or nothing after, what it lacks: it may only be late."""
    follow_ms: int = 300_000
    """How often the list is asked for what it is known to lack, or to have too much."""
    prove_ms: int = 3_600_000
    """How often the chain is asked for that too."""
    repeat_ms: int = 20 * 3_600_000
    """How often the list is asked for everything: once a day, less the time to find out what differs."""


class Facts(NamedTuple):
    """What is known when a look begins."""

    now: int
    final: int | None
    """The last block that is deep enough; None without a head."""
    position: int | None
    """What the indexer said last; None if that was nothing."""
    heights: Mapping[str, int]
    """Of the endpoints that agree on the head."""


What = Literal["compare", "repeat", "follow missing", "follow extra"]


class Task(NamedTuple):
    what: What
    first: int
    last: int
    hashes: tuple[str, ...] = ()
    """Of the findings to follow."""


def choose_task(coverage: Coverage, rules: Rules, facts: Facts) -> Task | None:
    """What is due: the newest blocks first, then what was found, what was agreed on long ago, and older blocks."""
    if facts.final is None or facts.position is None:
        return None
    end = min(facts.final, facts.position)
    asked = _endpoints_for(coverage, facts, end)[: rules.endpoints]
    may_ask = len(asked) == rules.endpoints
    reaches = (coverage.list_reach, *(coverage.reaches.get(name, Reach()) for name in asked))
    piece = min(each.blocks for each in reaches)
    return (
        (_newest(coverage, rules, facts.now, end, piece) if may_ask else None)
        or (_due_findings(coverage, rules, facts.now, end) if may_ask else None)
        or _due_stretch(coverage, rules, facts.now, end)
        or (_unchecked_piece(coverage, rules, facts.now, piece) if may_ask else None)
    )


def begin_look(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    match task.what:
        case "compare":
            return _compare(task, coverage, rules, facts)
        case "repeat":
            return _repeat(task, coverage, rules, facts)
        case "follow missing":
            return _follow_missing(task, coverage, rules, facts)
        case "follow extra":
            return _follow_extra(task, coverage, rules, facts)


def _newest(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    checked_to = coverage.stretches[-1].last if coverage.stretches else rules.first_block - 1
    first = max(checked_to + 1, end - piece + 1)
    if (waiting := waiting_until(coverage, first, now)) is not None:
        first = waiting + 1
    is_due = now - coverage.newest_at >= rules.newest_every_ms or end - checked_to > piece
    return Task("compare", first, end) if first <= end and is_due else None


def _due_findings(coverage: Coverage, rules: Rules, now: int, end: int) -> Task | None:
    """Those of one piece, which are looked at together."""
    found: tuple[tuple[What, Mapping[str, Finding]], ...]
    found = ("follow missing", coverage.missing), ("follow extra", coverage.extra)
    due = [
        (each.looked_at, what, each)
        for what, some in found
        for each in some.values()
        if each.last <= end and _is_due(each, rules, now)
    ]
    if not due:
        return None
    _, what, one = min(due, key=lambda each: each[0])
    hashes = (each.hash for _, kind, each in due if kind == what and (each.first, each.last) == (one.first, one.last))
    return Task(what, one.first, one.last, tuple(hashes))


def _is_due(finding: Finding, rules: Rules, now: int) -> bool:
    match finding.stage:
        case "suspected":
            return now - max(finding.seen_at, finding.looked_at) >= rules.confirm_ms
        case "confirmed":
            return now - finding.looked_at >= rules.follow_ms
        case "elsewhere":
            return False


def _due_stretch(coverage: Coverage, rules: Rules, now: int, end: int) -> Task | None:
    for each in coverage.stretches:
        if each.last > end or waiting_until(coverage, each.first, now) is not None:
            continue
        if each.doubted_at is None:
            is_due = now - each.compared_at >= rules.repeat_ms
        else:
            is_due = now - each.doubted_at >= rules.confirm_ms
        if is_due:
            return Task("repeat", each.first, each.last)
    return None


def _unchecked_piece(coverage: Coverage, rules: Rules, now: int, piece: int) -> Task | None:
    """The lowest one below the newest blocks, which have their own time."""
    if not coverage.stretches:
        return None
    for first, last in unchecked(coverage, rules.first_block, coverage.stretches[-1].last):
        while first <= last and (waiting := waiting_until(coverage, first, now)) is not None:
            first = waiting + 1
        if first <= last:
            return Task("compare", first, min(last, first + piece - 1))
    return None


def _compare(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Both sides of blocks that were not compared yet."""
    first, last = task.first, task.last
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, newest_at=facts.now)
    coverage, listed = yield from _read_list(coverage, rules, first, last)
    if not isinstance(listed, Listed):
        return _give_up(coverage, task, facts, listed)
    coverage, agreed = yield from _read_logs(coverage, rules, facts, first, last)
    if not isinstance(agreed, _Agreed):
        return _give_up(coverage, task, facts, agreed)
    missing = [each for each in agreed.transactions if each.hash not in listed.hashes]
    extra = listed.hashes - agreed.blocks.keys()
    at = facts.now
    if any(each.hash not in coverage.missing for each in missing) or not extra <= coverage.extra.keys():
        position = yield AskPosition()
        if position.block is None or position.block < last:
            return _give_up(coverage, task, facts, "position")
        at = position.at
    gone = (each.hash for each in coverage.missing.values() if first <= each.block <= last)
    coverage = drop_findings(coverage, [each for each in gone if each not in agreed.blocks])
    coverage = drop_healed(coverage, first, last, listed.hashes)
    if len(coverage.missing) + len(coverage.extra) + len(missing) + len(extra) > MOST_FINDINGS:
        return _give_up(coverage, task, facts, "too_many")
    coverage = _note_missing(coverage, task, missing, at)
    coverage = _note_extra(coverage, task, extra, at)
    is_recognised = coverage.is_recognised or len(missing) < len(agreed.blocks)
    coverage = end_put_off(replace(coverage, is_recognised=is_recognised), first, last)
    return add_agreed(coverage, first, last, agreed.transactions, facts.now, rules.limit)


def _note_missing(coverage: Coverage, task: Task, missing: Iterable[Transaction], at: int) -> Coverage:
    for block, transaction in missing:
        if listed := coverage.extra.get(transaction):
            coverage = keep_extra(coverage, replace(listed, stage="elsewhere"))
        known = coverage.missing.get(transaction)
        found = known or _suspect(transaction, task, block, at)
        coverage = keep_missing(coverage, replace(found, stage="elsewhere") if listed else found)
    return coverage


def _note_extra(coverage: Coverage, task: Task, extra: Iterable[str], at: int) -> Coverage:
    for transaction in extra:
        if lacking := coverage.missing.get(transaction):
            coverage = keep_missing(coverage, replace(lacking, stage="elsewhere"))
        known = coverage.extra.get(transaction) or _suspect(transaction, task, task.first, at)
        found = replace(known, first=task.first, last=task.last, block=task.first)
        coverage = keep_extra(coverage, replace(found, stage="elsewhere") if lacking else found)
    return coverage


def _suspect(transaction: str, task: Task, block: int, at: int) -> Finding:
    return Finding(
        hash=transaction, first=task.first, last=task.last, block=block, seen_at=at, looked_at=at, proved_at=at
    )


def _repeat(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list alone, of blocks whose transactions are known."""
    stretch = next(each for each in coverage.stretches if each.first == task.first)
    coverage, listed = yield from _read_list(coverage, rules, task.first, task.last)
    if listed is None:  # it is too long to be asked for
        return forget(coverage, task.first, task.last)
    if not isinstance(listed, Listed):
        return _give_up(coverage, task, facts, listed)
    healed = drop_healed(coverage, task.first, task.last, listed.hashes)
    if is_as_expected(healed, stretch, listed.hashes):
        return keep_stretch(healed, replace(stretch, compared_at=facts.now, doubted_at=None))
    if stretch.doubted_at is None:
        return keep_stretch(coverage, replace(stretch, doubted_at=facts.now))
    position = yield AskPosition()
    if position.block is None or position.block < task.last:
        return _give_up(coverage, task, facts, "position")
    return forget(coverage, task.first, task.last)


def _follow_missing(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again, around what it lacks; and the chain again, before that is said and now and then."""
    coverage = keep_missing(coverage, *(replace(coverage.missing[each], looked_at=facts.now) for each in task.hashes))
    transactions: tuple[Transaction, ...] = ()
    if any(_needs_proof(coverage.missing[each], rules, facts.now) for each in task.hashes):
        coverage, agreed = yield from _read_logs(coverage, rules, facts, task.first, task.last)
        if not isinstance(agreed, _Agreed):
            return coverage
        gone = [each for each in task.hashes if agreed.blocks.get(each) != coverage.missing[each].block]
        if gone:
            return forget(drop_findings(coverage, gone), task.first, task.last)
        transactions = agreed.transactions
        coverage = keep_missing(
            coverage, *(replace(coverage.missing[each], proved_at=facts.now) for each in task.hashes)
        )
    around = yield from _read_around(coverage, rules, facts, task)
    if around is None:
        return coverage
    lacking: list[Finding] = []
    for finding in (coverage.missing[each] for each in task.hashes):
        if finding.stage == "confirmed" and finding.hash not in around:
            continue
        before, after = _neighbours(finding, transactions, around)
        close = yield AskList(before.block if before else finding.block, after.block if after else finding.block)
        if not _is_whole(close, rules):
            continue
        if finding.hash in close.hashes:
            coverage = drop_findings(coverage, [finding.hash])
        elif finding.hash in around:
            coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
        else:
            is_between = before and after and {before.hash, after.hash} <= close.hashes
            if is_between or (coverage.is_recognised and facts.now - finding.seen_at >= rules.confirm_alone_ms):
                lacking.append(finding)
    if not lacking:
        return coverage
    position = yield AskPosition()
    if position.block is None or position.block < task.last:
        return coverage
    return keep_missing(coverage, *(replace(each, stage="confirmed") for each in lacking))


def _neighbours(
    finding: Finding, transactions: Iterable[Transaction], listed: Collection[str]
) -> tuple[Transaction | None, Transaction | None]:
    """The nearest transactions before and after it that the list has. Where it has both, it is not late, cut or of
    another range: it lacks what is between them."""
    known = [each for each in transactions if each.hash in listed]
    before = max((each for each in known if each.block < finding.block), default=None)
    after = min((each for each in known if each.block > finding.block), default=None)
    return before, after


def _follow_extra(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again; and the chain again, before something is said and now and then."""
    coverage = keep_extra(coverage, *(replace(coverage.extra[each], looked_at=facts.now) for each in task.hashes))
    listed = yield AskList(task.first, task.last)
    if not _is_whole(listed, rules):
        return coverage
    coverage = drop_healed(coverage, task.first, task.last, listed.hashes)
    unproved = [
        each for each in task.hashes if each in coverage.extra and _needs_proof(coverage.extra[each], rules, facts.now)
    ][:_MOST_PROOFS]
    if not unproved:
        return coverage
    coverage, agreed = yield from _read_logs(coverage, rules, facts, task.first, task.last)
    if not isinstance(agreed, _Agreed):
        return coverage
    if gone := [each for each in unproved if each in agreed.blocks]:
        return forget(drop_findings(coverage, gone), task.first, task.last)
    reaches_back: bool | None = None
    for transaction in unproved:
        receipts = yield from _read_receipts(transaction, agreed.endpoints)
        if receipts is None:
            continue
        if reaches_back is None and None in receipts:
            reaches_back = yield from _reach_back(coverage, task.first, agreed.endpoints)
        finding = replace(coverage.extra[transaction], proved_at=facts.now)
        match {None if each is None else each.has_event for each in receipts}:
            case found if found == {True}:  # the chain has it in other blocks
                coverage = keep_extra(coverage, replace(finding, stage="elsewhere"))
            case found if found == {False} or (found == {None} and reaches_back):
                coverage = keep_extra(coverage, replace(finding, stage="confirmed"))
    return coverage


def _needs_proof(finding: Finding, rules: Rules, now: int) -> bool:
    return finding.stage == "suspected" or now - finding.proved_at >= rules.prove_ms


class _Agreed(NamedTuple):
    """The chain's side of some blocks."""

    endpoints: tuple[str, ...]
    transactions: tuple[Transaction, ...]
    blocks: Mapping[str, int]
    """By the transactions' hashes."""


_Reading = Generator[Ask, Any, tuple[Coverage, Any]]


def _read_list(coverage: Coverage, rules: Rules, first: int, last: int) -> _Reading:
    """The whole list of these blocks, why there is none, or None if fewer have to be asked for."""
    answer, asked = (yield AskList(first, last)), last - first + 1
    if _is_whole(answer, rules):
        return replace(coverage, list_reach=coverage.list_reach.grow(asked)), answer
    is_cut = isinstance(answer, Listed)
    if asked == 1 or not (is_cut or answer.asks_for_less):
        return coverage, "list_cut" if is_cut else "list_failed"
    longest = coverage.longest_list if is_cut else min(coverage.longest_list, asked // 2)
    return replace(coverage, list_reach=coverage.list_reach.shrink(asked), longest_list=longest), None


def _read_around(
    coverage: Coverage, rules: Rules, facts: Facts, task: Task
) -> Generator[Ask, Any, frozenset[str] | None]:
    """The list of these blocks and of as many around them as it gives at once: it may date something otherwise."""
    margin, end = coverage.list_reach.blocks, None
    while margin:
        last = task.last + margin if end is None else min(task.last + margin, end)
        answer = yield AskList(max(0, task.first - margin), last)
        if _is_whole(answer, rules):
            return answer.hashes  # type: ignore[no-any-return]
        if isinstance(answer, Listed) or answer.asks_for_less:
            margin //= 2
        elif end is None:
            end = facts.position  # it may give no list of blocks that it does not have
        else:
            break
    return None


def _is_whole(answer: Listed | Refused, rules: Rules) -> bool:
    """Whether it is a list, and not one that was cut."""
    return isinstance(answer, Listed) and answer.entries < rules.limit


def _read_logs(coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int) -> _Reading:
    """The logs that enough endpoints gave alike, why there are none, or None if fewer blocks have to be asked for."""
    asked, trouble = last - first + 1, "logs_failed"
    givers: dict[frozenset[Log], list[str]] = {}
    for name in _endpoints_for(coverage, facts, last):
        answer = yield AskLogs(name, first, last)
        if isinstance(answer, Refused):
            coverage = _demote(coverage, name)
            if answer.asks_for_less and asked > 1:
                reach = coverage.reaches.get(name, Reach()).shrink(asked)
                return replace(coverage, reaches={**coverage.reaches, name: reach}), None
            continue
        same = givers.setdefault(answer, [])
        same.append(name)
        if len(same) == rules.endpoints:
            for other in (each for some in givers.values() if some is not same for each in some):
                coverage = _demote(coverage, other)
            grown = {each: coverage.reaches.get(each, Reach()).grow(asked) for each in same}
            blocks = {log.transaction: log.block for log in answer}
            transactions = tuple(sorted(Transaction(block, each) for each, block in blocks.items()))
            coverage = replace(coverage, reaches={**coverage.reaches, **grown})
            return coverage, _Agreed(tuple(same), transactions, blocks)
        trouble = "logs_disagree" if len(givers) > 1 else trouble
    return coverage, trouble


def _read_receipts(transaction: str, endpoints: Iterable[str]) -> Generator[Ask, Any, list[Receipt | None] | None]:
    """What each endpoint has of it; None if one does not say."""
    receipts: list[Receipt | None] = []
    for name in endpoints:
        answer = yield AskReceipt(name, transaction)
        if isinstance(answer, Refused):
            return None
        receipts.append(answer)
    return receipts


def _reach_back(coverage: Coverage, first: int, endpoints: Iterable[str]) -> Generator[Ask, Any, bool]:
    """Whether the endpoints have what lies before these blocks: one that is pruned has forgotten more than is known."""
    if coverage.oldest is None or coverage.oldest.block > first:
        return False
    receipts = yield from _read_receipts(coverage.oldest.hash, endpoints)
    return receipts is not None and None not in receipts


def _endpoints_for(coverage: Coverage, facts: Facts, last: int) -> list[str]:
    """Those that have this block, the ones that did best lately first."""
    known = [name for name in coverage.endpoints if name in facts.heights]
    new = [name for name in facts.heights if name not in known]
    return [name for name in (*new, *known) if facts.heights[name] >= last]


def _demote(coverage: Coverage, name: str) -> Coverage:
    """Ask the others before this one from now on."""
    return replace(coverage, endpoints=(*(each for each in coverage.endpoints if each != name), name))


def _give_up(coverage: Coverage, task: Task, facts: Facts, why: Trouble | None) -> Coverage:
    """For now; what has to be asked for in smaller pieces does not wait."""
    return coverage if why is None else put_off(coverage, task.first, task.last, facts.now, why)
