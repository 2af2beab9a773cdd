"""Holding an indexer's list against the chain, one look after the other, without I/O (S17 to S19).

A look is a generator: it yields what it has to know (``Ask``) and is sent the answer. So it reads from top to bottom,
though time passes between its lines, and returns what is known then. What cannot be confirmed changes nothing.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, assert_never

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
    find_put_off,
    forget,
    is_as_expected,
    keep_extra,
    keep_missing,
    keep_stretch,
    put_off,
    recognise,
    rest_list,
    unchecked,
)

_FAR: Final = 2_000
# A request too large costs next to nothing at a list, but some of the budget at an endpoint.
_LIST_PATIENCE: Final = 1
_ENDPOINT_PATIENCE: Final = 16
_MOST_REFUSALS: Final = 3
_MOST_NEIGHBOURS: Final = 3
_SHORTEST_CUT: Final = 50
"""No server is known to cut a list to fewer entries on its own; Ponder does so to as many."""
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_FAR_LESS: Final = 8
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
_Reading = Generator[Ask, Any, tuple[Coverage, Any]]


class Rules(Struct, frozen=True, kw_only=True):
    """How a list is compared. The command that compares a range at once waits for nothing."""

    first_block: int
    limit: int
    endpoints: int
    newest_every_ms: int = 90_000
    look_again_ms: int = 60_000
    """How soon a difference is looked at again."""
    confirm_ms: int = 180_000
    """How long the list has to lack something before that is said: it may only be late."""
    follow_ms: int = 300_000
    """How often the list is asked for what it is known to lack, or to have too much."""
    prove_ms: int = 3_600_000
    """How often the chain is asked for that too."""
    confirm_last_ms: int = 240_000
    """How long, if it has nothing after what it lacks."""
    confirm_empty_ms: int = 30 * 60_000
    """How long it has to lack all that it is asked for: it may only fail without a word."""
    repeat_ms: int = 20 * 3_600_000
    """How often the list is asked for everything at least: once a day, less the time to find out what differs."""


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
    if facts.final is None or facts.position is None or facts.now < coverage.list_until_at:
        return None
    end = min(facts.final, facts.position)
    asked = _endpoints_for(coverage, facts, end)[: rules.endpoints]
    may_ask = len(asked) == rules.endpoints
    reaches = (coverage.list_reach, *(coverage.reaches.get(name, Reach()) for name in asked))
    piece = min(each.blocks for each in reaches)
    return (
        (_newest(coverage, rules, facts.now, end, piece) if may_ask else None)
        or (_due_findings(coverage, rules, facts.now, end, piece) if may_ask else None)
        or _due_stretch(coverage, rules, facts.now, end)
        or (_unchecked_piece(coverage, rules, facts.now, end, piece) if may_ask else None)
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
        case _:
            assert_never(task.what)


def _newest(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    checked_to = coverage.stretches[-1].last if coverage.stretches else rules.first_block - 1
    first = max(checked_to + 1, end - piece + 1)
    if waiting := find_put_off(coverage, first, now):
        first = waiting.last + 1
    is_due = now - coverage.newest_at >= rules.newest_every_ms
    return Task("compare", first, end) if first <= end and is_due else None


def _due_findings(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    """The one that waited longest, and those near it, which are looked at together."""
    missing = [each for each in coverage.missing.values() if each.block <= end and _is_due(each, rules, now)]
    extra = [each for each in coverage.extra.values() if each.last <= end and _is_due(each, rules, now)]
    if not missing and not extra:
        return None
    one = min((*missing, *extra), key=lambda each: each.looked_at)
    if one in extra:
        same = (each.hash for each in extra if (each.first, each.last) == (one.first, one.last))
        return Task("follow extra", one.first, one.last, tuple(same))
    first, last = max(rules.first_block, one.block - piece // 2), min(end, one.block + (piece - 1) // 2)
    return Task("follow missing", first, last, tuple(each.hash for each in missing if first <= each.block <= last))


def _is_due(finding: Finding, rules: Rules, now: int) -> bool:
    """What cannot be confirmed is tried ever more rarely."""
    waited_ms = now - max(finding.seen_at, finding.looked_at)
    match finding.stage:
        case "suspected":
            age_ms = finding.looked_at - finding.seen_at
            return waited_ms >= min(max(rules.look_again_ms, age_ms // 4), rules.prove_ms)
        case "confirmed":
            return waited_ms >= rules.follow_ms
        case "elsewhere":
            return False
        case _:
            assert_never(finding.stage)


def _due_stretch(coverage: Coverage, rules: Rules, now: int, end: int) -> Task | None:
    """Where there are few, the list is asked for them more often: about once a minute for one of them, once an hour for
    each."""
    repeat_ms = min(rules.repeat_ms, max(_HOUR_MS, _MINUTE_MS * len(coverage.stretches)))
    for each in coverage.stretches:
        if each.doubted_at is None:
            is_due = each.is_due or now - each.compared_at >= repeat_ms
        else:
            is_due = now - each.doubted_at >= rules.look_again_ms
        if is_due and each.last <= end and not find_put_off(coverage, each.first, now):
            return Task("repeat", each.first, each.last)
    return None


def _unchecked_piece(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    """Of the highest gap below the newest blocks, which have their own time, from its first block on."""
    highest = coverage.stretches[-1].last if coverage.stretches else end
    gaps = [*unchecked(coverage, rules.first_block, highest, now)]
    if not gaps:
        return None
    first, last = gaps[-1]
    return Task("compare", first, min(last, first + piece - 1))


def _compare(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Both sides of blocks that were not compared yet."""
    first, last = task.first, task.last
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, newest_at=facts.now)
    coverage, listed = yield from _read_list(coverage, rules, facts, first, last)
    if not isinstance(listed, Listed):
        return _give_up(coverage, listed, task, facts)
    coverage, agreed = yield from _read_logs(coverage, rules, facts, first, last)
    if not isinstance(agreed, _Agreed):
        return _give_up(coverage, agreed, task, facts)
    missing = [each for each in agreed.transactions if each.hash not in listed.hashes]
    common = [each for each in agreed.transactions if each.hash in listed.hashes]
    extra = listed.hashes - agreed.blocks.keys()
    if missing and common:
        coverage, is_whole = yield from _rule_out_cut(coverage, facts, listed)
        if not is_whole:
            return _give_up(*_ask_less(coverage, listed, last - first + 1), task, facts)
    at = facts.now
    if any(each.hash not in coverage.missing for each in missing) or not extra <= coverage.extra.keys():
        position = yield AskPosition()
        if position.block is None or position.block < last:
            return _give_up(coverage, "position", task, facts)
        at = position.at
    gone = (each.hash for each in coverage.missing.values() if first <= each.block <= last)
    coverage = drop_findings(coverage, [each for each in gone if each not in agreed.blocks])
    coverage = drop_healed(coverage, first, last, listed.hashes)
    differ = {*coverage.missing, *coverage.extra, *extra, *(each.hash for each in missing)}
    if len(differ) > MOST_FINDINGS:
        return _give_up(coverage, "too_many", task, facts)
    coverage = _note_missing(coverage, task, missing, at)
    coverage = _note_extra(coverage, task, extra, at)
    if common and coverage.recognised is None:
        exact = yield AskList(common[-1].block, common[-1].block)
        if not isinstance(exact, Listed) or common[-1].hash not in exact.hashes:
            common = []  # it dates by other blocks
    coverage = end_put_off(recognise(coverage, common), first, last)
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, checked_at=facts.now)
    return add_agreed(coverage, first, last, agreed.transactions, facts.now, rules.limit, listed.entries)


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
    listed = yield AskList(task.first, task.last)
    if isinstance(listed, Refused):
        coverage = put_off(rest_list(coverage, facts.now), task.first, task.last, facts.now, "list_failed")
        if not listed.asks_for_less or coverage.put_off[-1].times < _MOST_REFUSALS:
            return coverage
        # So many blocks are never given at once.
        coverage = replace(coverage, longest_list=max(1, (task.last - task.first + 1) // 2))
        return end_put_off(forget(coverage, task.first, task.last), task.first, task.last)
    if not _is_whole(listed, rules):
        return forget(coverage, task.first, task.last)
    coverage = end_put_off(coverage, task.first, task.last)
    healed = drop_healed(coverage, task.first, task.last, listed.hashes)
    if is_as_expected(healed, stretch, listed.hashes):
        new = replace(stretch, compared_at=facts.now, entries=listed.entries, doubted_at=None, is_due=False)
        return keep_stretch(healed, new)
    if stretch.doubted_at is None:
        return keep_stretch(coverage, replace(stretch, doubted_at=facts.now))
    position = yield AskPosition()
    if position.block is None or position.block < task.last:
        return _give_up(coverage, "position", task, facts)
    return forget(coverage, task.first, task.last)


def _follow_missing(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again, around what it lacks; and the chain again, before that is said and now and then."""
    coverage, listed = yield from _read_list(coverage, rules, facts, task.first, task.last)
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
    coverage, agreed = yield from _read_logs(coverage, rules, facts, task.first, task.last)
    if agreed is None:
        return replace(coverage, missing=seen.missing)
    if not isinstance(agreed, _Agreed):
        return coverage
    if gone := [each.hash for each in unproved if agreed.blocks.get(each.hash) != each.block]:
        return forget(drop_findings(coverage, gone), task.first, task.last)
    common = [each for each in agreed.transactions if each.hash in listed.hashes]
    if coverage.recognised and not task.first <= coverage.recognised.block <= task.last:
        common.append(coverage.recognised)
    lacking: list[Finding] = []
    lists: dict[_Neighbours, _Close] = {}
    for finding in (replace(each, looked_at=facts.now, proved_at=facts.now) for each in unproved):
        close = _Close()
        for _ in range(_MOST_NEIGHBOURS):
            before = max((each for each in common if each.block < finding.block), default=None)
            after = min((each for each in common if each.block > finding.block), default=None)
            around = _Neighbours(before, after)
            if around not in lists:
                coverage, lists[around] = yield from _read_close(coverage, rules, facts, around, finding.block)
            close = lists[around]
            if not close.absent:
                break
            common = [each for each in common if each not in close.absent]
        if finding.hash in close.hashes:
            coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
        elif close.confirm_ms is not None and facts.now - finding.seen_at >= close.confirm_ms:
            if (yield from _is_far_away(finding, rules, facts)):
                coverage = keep_missing(coverage, replace(finding, stage="elsewhere"))
            else:
                lacking.append(finding)
    return (yield from _confirm(coverage, task, keep_missing, lacking))


def _is_far_away(finding: Finding, rules: Rules, facts: Facts) -> Generator[Ask, Any, bool]:
    """Whether the list has it far from its block: some date entries by another one."""
    end = finding.block if facts.position is None else max(finding.block, facts.position)
    for first, last in ((max(0, finding.block - _FAR), finding.block + _FAR), (rules.first_block, end)):
        answer = yield AskList(first, last)
        if isinstance(answer, Listed) and finding.hash in answer.hashes:
            return True
    return False


class _Neighbours(NamedTuple):
    """The nearest transactions before and after one that the list lacks, which both it and the chain have."""

    before: Transaction | None
    after: Transaction | None


class _Close(NamedTuple):
    """The list from one neighbour to the other."""

    hashes: frozenset[str] = frozenset()
    confirm_ms: int | None = None
    """How long it has to lack something for that to be said; None if it proves nothing."""
    absent: tuple[Transaction, ...] = ()
    """The neighbours that it does not have there, but elsewhere: the chain may have moved them."""


def _read_close(coverage: Coverage, rules: Rules, facts: Facts, around: _Neighbours, block: int) -> _Reading:
    """A list that has both neighbours is neither late nor of other blocks. One that has a single neighbour has to reach
    far beyond, and to give it for its block alone: it may date or round otherwise. So has one whose neighbour was found
    before, since which the chain may have changed."""
    before, after = around
    margin = 0 if before and after else _FAR
    while True:
        first = before.block if before else max(0, block - margin)
        last = after.block if after else block + margin
        answer = yield AskList(first, last)
        if isinstance(answer, Refused) and facts.position is not None and block <= facts.position < last:
            answer = yield AskList(first, facts.position)  # it may give no list of blocks that it does not have
        if isinstance(answer, Listed):
            is_too_long = after is not None and not _is_whole(answer, rules)
        else:
            is_too_long = answer.asks_for_less
        if not is_too_long or not margin:
            break
        margin //= 2
    known = [each for each in around if each]
    if not _is_whole(answer, rules) or not known:
        return coverage, _Close(answer.hashes if isinstance(answer, Listed) else frozenset())
    if not answer.hashes and coverage.oldest:
        everything = yield AskList(coverage.oldest.block, max(coverage.oldest.block, last))
        if isinstance(everything, Listed) and not everything.hashes:  # though it had something once
            return coverage, _Close(confirm_ms=rules.confirm_empty_ms)
    if absent := tuple(each for each in known if each.hash not in answer.hashes):
        return coverage, _Close(answer.hashes, absent=absent)
    for one in (each for each in known if len(known) == 1 or each == coverage.recognised):
        exact = yield AskList(one.block, one.block)
        if not isinstance(exact, Listed) or one.hash not in exact.hashes:
            return coverage, _Close(answer.hashes)
    coverage, is_whole = yield from _rule_out_cut(coverage, facts, answer)
    confirm_ms = rules.confirm_ms if after else rules.confirm_last_ms
    return coverage, _Close(answer.hashes, confirm_ms if is_whole else None)


def _follow_extra(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list again; and the chain again, before something is said and now and then."""
    coverage = keep_extra(coverage, *(replace(coverage.extra[each], looked_at=facts.now) for each in task.hashes))
    listed = yield AskList(task.first, task.last)
    if not _is_whole(listed, rules):
        return forget(coverage, task.first, task.last) if isinstance(listed, Listed) else coverage
    coverage = drop_healed(coverage, task.first, task.last, listed.hashes)
    left = sorted((coverage.extra[each] for each in task.hashes if each in coverage.extra), key=_by_proof)
    unproved = [each.hash for each in left if _needs_proof(each, rules, facts.now)][:_MOST_PROOFS]
    off_chain: list[Finding] = []
    for transaction in unproved:
        coverage, agreed = yield from _read_receipt(coverage, rules, facts, transaction, task.last)
        finding = replace(coverage.extra[transaction], proved_at=facts.now)
        coverage = keep_extra(coverage, finding)
        if agreed is None:
            continue
        endpoints, receipt = agreed
        if receipt is None:
            is_off_chain = yield from _reach_back(coverage, finding, endpoints)
            if is_off_chain:  # a list that does not keep to its range may give what is older than all they have
                beyond = yield AskList(task.last + 1, task.last + 1)
                is_off_chain = _is_whole(beyond, rules) and transaction not in beyond.hashes
        else:
            is_off_chain = not receipt.has_event
        if is_off_chain:
            off_chain.append(finding)
        elif receipt and task.first <= receipt.block <= task.last:
            return forget(drop_findings(coverage, [transaction]), task.first, task.last)
        elif receipt:
            coverage = keep_extra(coverage, replace(finding, stage="elsewhere"))
    return (yield from _confirm(coverage, task, keep_extra, off_chain))


def _confirm(
    coverage: Coverage, task: Task, keep: Callable[..., Coverage], findings: Collection[Finding]
) -> Generator[Ask, Any, Coverage]:
    """They are said from now on, unless the indexer is not that far any more: it is being rebuilt."""
    position = (yield AskPosition()) if findings else None
    if position is None or position.block is None or position.block < task.last:
        return coverage
    return keep(coverage, *(replace(each, stage="confirmed") for each in findings))


def _needs_proof(finding: Finding, rules: Rules, now: int) -> bool:
    """New ones more often: the chain may change near its head."""
    prove_ms = rules.follow_ms if now - finding.seen_at < rules.prove_ms else rules.prove_ms
    return finding.stage == "suspected" or now - finding.proved_at >= prove_ms


def _by_proof(finding: Finding) -> int:
    return finding.proved_at


class _Agreed(NamedTuple):
    """The chain's side of some blocks."""

    endpoints: tuple[str, ...]
    transactions: tuple[Transaction, ...]
    blocks: Mapping[str, int]
    """By the transactions' hashes."""


def _read_list(coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int) -> _Reading:
    """The whole list of these blocks, why there is none, or None if fewer have to be asked for."""
    answer, asked = (yield AskList(first, last)), last - first + 1
    if _is_whole(answer, rules):
        most_entries = max(coverage.most_entries, answer.entries)
        reach = coverage.list_reach.grow(asked, _LIST_PATIENCE)
        return replace(coverage, list_reach=reach, most_entries=most_entries, list_failures=0), answer
    if isinstance(answer, Listed) or answer.asks_for_less:
        coverage, trouble = _ask_less(coverage, answer, asked)
    else:
        trouble = "list_failed"
    return (rest_list(coverage, facts.now) if trouble else coverage), trouble


def _ask_less(coverage: Coverage, answer: Listed | Refused, asked: int) -> tuple[Coverage, Trouble | None]:
    """The list of fewer blocks next time, if there are fewer."""
    is_cut = isinstance(answer, Listed)
    if asked == 1:
        return coverage, "list_cut" if is_cut else "list_failed"
    return replace(coverage, list_reach=coverage.list_reach.shrink(asked)), None


def _is_whole(answer: Listed | Refused, rules: Rules) -> bool:
    """Whether it is a list, and not one that was cut."""
    return isinstance(answer, Listed) and answer.entries < rules.limit


def _rule_out_cut(coverage: Coverage, facts: Facts, listed: Listed) -> _Reading:
    """Whether the list is shorter than another, so that it was not cut without a word."""
    longest = max(coverage.most_entries, _SHORTEST_CUT)
    if listed.entries >= longest and coverage.oldest and facts.position is not None:
        answer = yield AskList(coverage.oldest.block, max(coverage.oldest.block, facts.position))
        if isinstance(answer, Listed):
            coverage = replace(coverage, most_entries=max(coverage.most_entries, answer.entries))
    return coverage, listed.entries < max(coverage.most_entries, _SHORTEST_CUT)


def _read_logs(coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int) -> _Reading:
    """The logs that enough endpoints gave alike, why there are none, or None if fewer blocks have to be asked for."""
    asked, trouble = last - first + 1, "logs_failed"
    givers: dict[frozenset[Log], list[str]] = {}
    names = _endpoints_for(coverage, facts, last)
    for name in names:
        answer = yield AskLogs(name, first, last)
        if isinstance(answer, Refused):
            coverage = _demote(coverage, name)
            if answer.asks_for_less and asked > 1:
                reach = coverage.reaches.get(name, Reach()).shrink(asked)
                coverage = replace(coverage, reaches={**coverage.reaches, name: reach})
                if name in names[: rules.endpoints]:
                    return coverage, None
            continue
        same = givers.setdefault(answer, [])
        same.append(name)
        if len(same) == rules.endpoints:
            for other in (each for some in givers.values() if some is not same for each in some):
                coverage = _demote(coverage, other)
            grown = {each: coverage.reaches.get(each, Reach()).grow(asked, _ENDPOINT_PATIENCE) for each in same}
            blocks = {log.transaction: log.block for log in answer}
            transactions = tuple(sorted(Transaction(block, each) for each, block in blocks.items()))
            coverage = replace(coverage, reaches={**coverage.reaches, **grown})
            return coverage, _Agreed(tuple(same), transactions, blocks)
        trouble = "logs_disagree" if len(givers) > 1 else trouble
    return coverage, trouble


def _read_receipt(coverage: Coverage, rules: Rules, facts: Facts, transaction: str, last: int) -> _Reading:
    """What enough endpoints have of it alike, and which they are; None if they are not enough."""
    givers: dict[Receipt | None, list[str]] = {}
    for name in _endpoints_for(coverage, facts, last):
        answer = yield AskReceipt(name, transaction)
        if isinstance(answer, Refused):
            coverage = _demote(coverage, name)
            continue
        same = givers.setdefault(answer, [])
        same.append(name)
        if len(same) == rules.endpoints:
            return coverage, (same, answer)
    return coverage, None


def _reach_back(coverage: Coverage, finding: Finding, endpoints: Iterable[str]) -> Generator[Ask, Any, bool]:
    """Whether the endpoints have what lies before it: one that is pruned has forgotten more than is known."""
    oldest = coverage.oldest
    if oldest is None or oldest.block > finding.last:
        return False
    if oldest.block > finding.first:
        listed = yield AskList(oldest.block, finding.last)
        if not isinstance(listed, Listed) or finding.hash not in listed.hashes:
            return False
    for name in endpoints:
        answer = yield AskReceipt(name, oldest.hash)
        if answer is None or isinstance(answer, Refused):
            return False
    return True


def _endpoints_for(coverage: Coverage, facts: Facts, last: int) -> list[str]:
    """Those that have this block: the ones that did best lately first, and last those of which little can be asked."""
    known = [name for name in coverage.endpoints if name in facts.heights]
    new = [name for name in facts.heights if name not in known]
    able = {name: coverage.reaches.get(name, Reach()).blocks for name in (*new, *known) if facts.heights[name] >= last}
    most = max(able.values(), default=0)
    return sorted(able, key=lambda name: able[name] * _FAR_LESS < most)


def _demote(coverage: Coverage, name: str) -> Coverage:
    """Ask the others before this one from now on."""
    return replace(coverage, endpoints=(*(each for each in coverage.endpoints if each != name), name))


def _give_up(coverage: Coverage, why: Trouble | None, task: Task, facts: Facts) -> Coverage:
    """For now; what has to be asked for in smaller pieces does not wait."""
    if why is None:
        return replace(coverage, newest_at=0)
    return put_off(coverage, task.first, task.last, facts.now, why)
