"""Comparing an indexer's list with its chain, one look after the other, without I/O (S17 to S19).

A look is a generator: it yields a question (``Ask``), is sent the answer, and returns what is known then. So it reads
from top to bottom although time passes between its lines. What could not be read changes nothing.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.coverage import (
    MOST_FINDINGS,
    Counts,
    Coverage,
    Finding,
    Trouble,
    add_stretch,
    confirmed_of,
    drop_findings,
    find_unchecked,
    forget,
    is_as_expected,
    keep_findings,
    put_off,
    renew_stretch,
)

_MOST_AT_ONCE: Final = 5
"""How many findings one look follows: newer blocks wait for it meanwhile."""
_ROUNDS: Final = 6
"""How often position and list are asked in turn before a finding is confirmed: a balancer may have a replica that is
behind, and each question may reach another one."""
_TRIAL_FAILURES: Final = 3
_NOWHERE: Final = -1
_FEW: Final = 100
"""Every list can give so many blocks: a refusal counts as a failure."""
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS


class Rules(Struct, frozen=True, kw_only=True):
    """How a list is compared. ``lookout coverage`` waits less long."""

    first_block: int
    limit: int
    endpoints: int
    each: bool = False
    newest_every_ms: int = 90_000
    again_ms: int = _MINUTE_MS
    """How long after its first sight a difference is looked at again."""
    follow_ms: int = 2 * _MINUTE_MS
    """How often the list is asked for what is confirmed."""
    prove_ms: int = _HOUR_MS
    """How often the chain is asked for that too."""
    retry_ms: int = 10 * _MINUTE_MS
    repeat_ms: int = 20 * _HOUR_MS
    """How often the list is asked for everything at least: once a day, less the time to find out what differs."""
    try_ms: int = 24 * _HOUR_MS


class Facts(NamedTuple):
    """What is known when a look begins."""

    now: int
    final: int | None
    """The last final block; None without a head."""
    position: int | None
    """What the indexer said last; None if that was nothing."""
    heights: Mapping[str, int]
    """Of the endpoints that agree on the head."""


class Log(NamedTuple):
    """An event of the contracts, as an endpoint has it."""

    block: int
    block_hash: str
    transaction: str
    number: int
    """The log's number in its block."""


class Listed(NamedTuple):
    entries: Counts
    length: int
    """Of the longest single list: one as long as the limit may have been cut."""


class Refused(NamedTuple):
    """No answer that counts."""

    asks_for_less: bool = False


class AskList(NamedTuple):
    """The indexer's list of these blocks; the answer is Listed or Refused."""

    first: int
    last: int


class AskLogs(NamedTuple):
    """An endpoint's logs of these blocks; the answer is a frozenset of Log, or Refused."""

    endpoint: str
    first: int
    last: int


class AskPosition(NamedTuple):
    """How far the indexer is, asked now; the answer is a block, or None if it does not say."""


Ask = AskList | AskLogs | AskPosition
Look = Generator[Ask, Any, Coverage]


class Task(NamedTuple):
    what: Literal["compare", "repeat", "follow", "try"]
    first: int
    last: int
    hashes: tuple[str, ...] = ()
    """Of the findings to follow."""


def choose_task(coverage: Coverage, rules: Rules, facts: Facts) -> Task | None:
    """What is due: the newest blocks, blocks compared a day ago, findings, other compared blocks, then older ones."""
    if facts.final is None or facts.position is None or facts.now < coverage.paused_until_at:
        return None
    now, end = facts.now, min(facts.final, facts.position)
    if len(_endpoints_for(coverage, facts, end)) < rules.endpoints:  # then only the list can be asked
        confirmed = _due_findings(confirmed_of(coverage), rules, now, end)
        return None if coverage.unusable else confirmed or _due_stretch(coverage, rules, now, end)
    trial = _due_trial(coverage, rules, now, end)
    if trial or coverage.unusable:
        return trial
    piece = min(coverage.lists_reach.blocks, coverage.logs_reach.blocks)
    newest = _newest_piece(coverage, rules, now, end, piece)
    overdue = _due_stretch(coverage, rules, now, end, rules.repeat_ms)  # also while there are findings without end
    findings = _due_findings(coverage.findings.values(), rules, now, end)
    return (
        newest
        or overdue
        or findings
        or _due_stretch(coverage, rules, now, end)
        or _old_piece(coverage, rules, now, end, piece)
    )


def _due_trial(coverage: Coverage, rules: Rules, now: int, end: int) -> Task | None:
    if coverage.sample is None or coverage.sample[1] > end:
        return None
    wait_ms = rules.try_ms
    if coverage.unusable:
        wait_ms = _HOUR_MS
    elif coverage.trial_failures or coverage.tried_at is None:
        wait_ms = rules.again_ms
    return Task("try", *coverage.sample) if now - coverage.trial_at >= wait_ms else None


def _newest_piece(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    checked_to = coverage.stretches[-1].last if coverage.stretches else rules.first_block - 1
    waits_to = max((blocks.last for blocks in coverage.waiting if now < blocks.until_at), default=0)
    first = max(checked_to + 1, waits_to + 1, end - piece + 1)
    is_due = now - coverage.newest_at >= rules.newest_every_ms
    return Task("compare", first, end) if first <= end and is_due else None


def _due_findings(findings: Iterable[Finding], rules: Rules, now: int, end: int) -> Task | None:
    def is_due(finding: Finding) -> bool:
        if finding.is_confirmed:
            return now - finding.looked_at >= rules.follow_ms
        return now - max(finding.seen_at, finding.looked_at) >= rules.again_ms

    due = [finding for finding in findings if finding.last <= end and is_due(finding)]
    due = sorted(due, key=lambda finding: finding.looked_at)[:_MOST_AT_ONCE]
    return Task("follow", due[0].first, due[0].last, tuple(finding.hash for finding in due)) if due else None


def _due_stretch(coverage: Coverage, rules: Rules, now: int, end: int, after_ms: int | None = None) -> Task | None:
    """Where there are few stretches, the list is asked for them more often: each at most once an hour."""
    repeat_ms = after_ms or min(rules.repeat_ms, max(_HOUR_MS, _MINUTE_MS * len(coverage.stretches)))
    waits = [(blocks.first, blocks.last) for blocks in coverage.waiting if now < blocks.until_at]
    for stretch in coverage.stretches:
        since_at, wait_ms = stretch.compared_at, repeat_ms
        if stretch.doubted_at is not None:
            since_at, wait_ms = stretch.doubted_at, rules.again_ms
        if now - since_at >= wait_ms and stretch.last <= end and (stretch.first, stretch.last) not in waits:
            return Task("repeat", stretch.first, stretch.last)
    return None


def _old_piece(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    """Of the highest gap below the newest blocks, which have their own time."""
    highest = coverage.stretches[-1].last if coverage.stretches else end
    gaps = [*find_unchecked(coverage, rules.first_block, min(end, highest), now)]
    return Task("compare", gaps[-1][0], min(gaps[-1][1], gaps[-1][0] + piece - 1)) if gaps else None


def run_task(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The look that carries out a task."""
    match task.what:
        case "compare":
            return _compare(task, coverage, rules, facts)
        case "repeat":
            return _repeat(task, coverage, rules, facts)
        case "follow":
            return _follow(task, coverage, rules, facts)
        case _:
            return _try(task, coverage, rules, facts)


class _Sides(NamedTuple):
    """What both sides have in some blocks."""

    listed: Counts
    length: int
    logged: Counts
    blocks: Mapping[str, int]
    """Where the chain has its transactions."""


def _compare(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Both sides of blocks that were not compared yet."""
    first, last = task.first, task.last
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, newest_at=facts.now)
    coverage, sides = yield from _read_both(coverage, rules, facts, first, last)
    if sides is None:
        return coverage
    if sides.listed.keys() & sides.logged.keys():
        coverage = replace(coverage, sample=(first, last))
        if coverage.tried_at is None and facts.now - coverage.trial_at >= rules.again_ms:
            coverage = yield from _try_blocks(coverage, rules, facts, sides)
    differing = {key for key in {*sides.listed, *sides.logged} if sides.listed.get(key, 0) != sides.logged.get(key, 0)}
    if differing:
        if coverage.tried_at is None or coverage.unusable:
            return put_off(coverage, first, last, facts.now + rules.retry_ms, "untried")
        if len(coverage.findings.keys() | differing) > MOST_FINDINGS:
            return put_off(coverage, first, last, facts.now + rules.retry_ms, "too_many")
        position = yield AskPosition()
        if position is None or position < last:
            return put_off(coverage, first, last, facts.now + rules.retry_ms, "position")
    in_blocks = [key for key, finding in coverage.findings.items() if first <= finding.first and finding.last <= last]
    coverage = drop_findings(coverage, set(in_blocks) - differing)
    coverage = keep_findings(coverage, [_find(key, coverage, task, sides, facts.now) for key in sorted(differing)])
    return add_stretch(coverage, first, last, sides.logged, sides.length, facts.now, rules.limit)


def _find(key: str, coverage: Coverage, task: Task, sides: _Sides, now: int) -> Finding:
    block = sides.blocks.get(key)
    first, last = (task.first, task.last) if block is None else (block, block)
    listed, logged = sides.listed.get(key, 0), sides.logged.get(key, 0)
    known = coverage.findings.get(key)
    if known is not None and task.first <= known.first and known.last <= task.last:
        return replace(known, listed=listed, logged=logged)
    return Finding(
        hash=key, first=first, last=last, listed=listed, logged=logged, seen_at=now, looked_at=now, proved_at=now
    )


def _repeat(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list alone, of blocks of which the chain's side is known."""
    stretch = next(stretch for stretch in coverage.stretches if stretch.first == task.first)
    answer = yield AskList(task.first, task.last)
    if isinstance(answer, Refused):
        coverage = _fail(coverage, task, rules, facts, "list_failed")
        if not answer.asks_for_less:
            return coverage
        if stretch.doubted_at is None:
            return renew_stretch(coverage, replace(stretch, doubted_at=facts.now), rules.limit)
        # So many blocks are not given at once any more.
        reach = coverage.lists_reach.shrink(task.last - task.first + 1, facts.now)
        return forget(replace(coverage, lists_reach=reach), task.first, task.last)
    if answer.length >= rules.limit:
        return forget(coverage, task.first, task.last)
    if is_as_expected(coverage, stretch, _count(answer.entries, rules)):
        new = replace(stretch, compared_at=facts.now, entries=answer.length, doubted_at=None)
        return renew_stretch(coverage, new, rules.limit)
    if stretch.doubted_at is None:
        return renew_stretch(coverage, replace(stretch, doubted_at=facts.now), rules.limit)
    position = yield AskPosition()
    if position is None or position < task.last:
        return put_off(coverage, task.first, task.last, facts.now + rules.retry_ms, "position")
    return forget(coverage, task.first, task.last)


def _follow(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Each finding by its block alone: confirmed if it still differs, and dropped if it does not."""
    for key in task.hashes:
        finding = replace(coverage.findings[key], looked_at=facts.now)
        coverage = keep_findings(coverage, [finding])
        if finding.first < finding.last:
            block = yield from _locate(finding)
            if block is None:
                continue
            if block == _NOWHERE:
                coverage = drop_findings(coverage, [key])
                continue
            finding = replace(finding, first=block, last=block)
            coverage = keep_findings(coverage, [finding])
        coverage = yield from _look_again(finding, coverage, rules, facts)
    return coverage


def _locate(finding: Finding) -> Generator[Ask, Any, int | None]:
    """The block under which the list has a transaction, by halving; None if the list cannot be read."""
    first, last = finding.first, finding.last
    while first < last:
        middle = (first + last) // 2
        answer = yield AskList(first, middle)
        if isinstance(answer, Refused):
            return None
        first, last = (first, middle) if finding.hash in answer.entries else (middle + 1, last)
    answer = yield AskList(first, first)
    if isinstance(answer, Refused):
        return None
    return first if finding.hash in answer.entries else _NOWHERE


def _look_again(finding: Finding, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    key, block = finding.hash, finding.first
    listed = yield from _list_alone(finding, rules)
    if listed is None:
        return coverage
    finding = replace(finding, listed=listed)
    if finding.is_confirmed and finding.listed == finding.logged:
        return drop_findings(coverage, [key])
    if not finding.is_confirmed or facts.now - finding.proved_at >= rules.prove_ms:
        coverage, agreed = yield from _read_logs(coverage, rules, facts, block, block)
        if not isinstance(agreed, frozenset):
            return coverage
        logged = _count(Counter(log.transaction for log in agreed), rules).get(key, 0)
        finding = replace(finding, logged=logged, proved_at=facts.now)
    for number in range(0 if finding.is_confirmed else _ROUNDS):
        position = yield AskPosition()
        if position is None or position < block:
            return keep_findings(coverage, [replace(finding, seen_at=facts.now)])
        for _ in range(1 + number % 2):  # so that replicas that take turns do not always get the same question
            if finding.listed != finding.logged:
                again = yield from _list_alone(finding, rules)
                if again is None:
                    return coverage
                finding = replace(finding, listed=again)
    if finding.listed == finding.logged:
        return drop_findings(coverage, [key])
    return keep_findings(coverage, [replace(finding, is_confirmed=True)])


def _list_alone(finding: Finding, rules: Rules) -> Generator[Ask, Any, int | None]:
    """How often the list of its block alone has a transaction; None if that list could not be read."""
    answer = yield AskList(finding.first, finding.first)
    if not isinstance(answer, Listed) or answer.length >= rules.limit:
        return None
    return _count(answer.entries, rules).get(finding.hash, 0)


def _try(task: Task, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list against itself, in blocks of which both sides had something."""
    coverage, sides = yield from _read_both(coverage, rules, facts, task.first, task.last)
    if sides is None:
        return replace(coverage, trial_at=facts.now)
    if not sides.listed.keys() & sides.logged.keys():  # an unusable list has no other sample
        return replace(coverage, trial_at=facts.now, sample=coverage.sample if coverage.unusable else None)
    return (yield from _try_blocks(coverage, rules, facts, sides))


def _try_blocks(coverage: Coverage, rules: Rules, facts: Facts, sides: _Sides) -> Look:
    """Two blocks that the list's answer names, each asked for alone, have to give what the range gave (S17)."""
    coverage = replace(coverage, trial_at=facts.now)
    blocks = sorted({sides.blocks[key] for key in sides.listed.keys() & sides.logged.keys()})
    for block in {blocks[0], blocks[-1]}:
        answer = yield AskList(block, block)
        if isinstance(answer, Refused) or answer.length >= rules.limit:
            return coverage
        alone = _count(answer.entries, rules)
        expected = {key: times for key, times in sides.listed.items() if sides.blocks.get(key) == block}
        differs = any(alone.get(key) != times for key, times in expected.items()) or any(
            sides.listed.get(key) != times for key, times in alone.items()
        )
        if differs:
            failures, why = coverage.trial_failures + 1, ""
            if failures >= _TRIAL_FAILURES:
                why = f"for block {block} alone it gives something else than for blocks around it"
            findings = {} if why else coverage.findings
            return replace(coverage, trial_failures=failures, unusable=why, findings=findings)
    return replace(coverage, tried_at=facts.now, trial_failures=0, unusable="")


def _read_both(
    coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int
) -> Generator[Ask, Any, tuple[Coverage, _Sides | None]]:
    """Both sides of these blocks; None if they wait, or fewer are asked for next time."""
    task, asked = Task("compare", first, last), last - first + 1
    answer = yield AskList(first, last)
    is_cut = isinstance(answer, Listed) and answer.length >= rules.limit
    if (is_cut and asked > 1) or (isinstance(answer, Refused) and answer.asks_for_less and asked > _FEW):
        return replace(coverage, lists_reach=coverage.lists_reach.shrink(asked, facts.now), newest_at=0), None
    if is_cut:
        return put_off(coverage, first, last, facts.now + rules.retry_ms, "list_cut"), None
    if isinstance(answer, Refused):
        return _fail(coverage, task, rules, facts, "list_failed"), None
    coverage = replace(coverage, lists_reach=coverage.lists_reach.grow(asked, facts.now))
    coverage, agreed = yield from _read_logs(coverage, rules, facts, first, last)
    if agreed is None:
        return replace(coverage, newest_at=0), None
    if not isinstance(agreed, frozenset):
        return _fail(coverage, task, rules, facts, agreed), None
    logged = _count(Counter(log.transaction for log in agreed), rules)
    blocks = {log.transaction: log.block for log in agreed}
    return coverage, _Sides(_count(answer.entries, rules), answer.length, logged, blocks)


def _read_logs(
    coverage: Coverage, rules: Rules, facts: Facts, first: int, last: int
) -> Generator[Ask, Any, tuple[Coverage, frozenset[Log] | Trouble | None]]:
    """The logs that enough endpoints gave alike, or why there are none; None if fewer are asked for next time."""
    asked, has_refused = last - first + 1, False
    givers: dict[frozenset[Log], list[str]] = {}
    for name in _endpoints_for(coverage, facts, last):
        answer = yield AskLogs(name, first, last)
        if isinstance(answer, Refused):
            has_refused = has_refused or answer.asks_for_less
            coverage = _demote(coverage, [name])
            continue
        givers.setdefault(answer, []).append(name)
        if len(givers[answer]) == rules.endpoints:
            coverage = _demote(coverage, [other for logs, names in givers.items() if logs != answer for other in names])
            return replace(coverage, logs_reach=coverage.logs_reach.grow(asked, facts.now)), answer
    if has_refused and asked > 1:
        paused = replace(coverage, paused_until_at=facts.now + rules.again_ms // 4)  # it may only be a rate limit
        return replace(paused, logs_reach=coverage.logs_reach.shrink(asked, facts.now)), None
    return coverage, "logs_disagree" if len(givers) > 1 else "logs_failed"


def _fail(coverage: Coverage, task: Task, rules: Rules, facts: Facts, why: Trouble) -> Coverage:
    """Nothing is asked for a minute, and nothing about these blocks for longer."""
    coverage = replace(coverage, paused_until_at=facts.now + rules.again_ms)
    return put_off(coverage, task.first, task.last, facts.now + rules.retry_ms, why)


def _count(entries: Counts, rules: Rules) -> Counts:
    return entries if rules.each else dict.fromkeys(entries, 1)


def _endpoints_for(coverage: Coverage, facts: Facts, last: int) -> list[str]:
    """Those that have this block; the ones that failed lately last."""
    able = [name for name, height in facts.heights.items() if height >= last]
    return sorted(able, key=lambda name: coverage.endpoints.index(name) if name in coverage.endpoints else -1)


def _demote(coverage: Coverage, names: Collection[str]) -> Coverage:
    return replace(coverage, endpoints=(*(name for name in coverage.endpoints if name not in names), *names))
