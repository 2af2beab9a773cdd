"""Comparing an indexer's list with its chain, one look after the other, without I/O (S17 to S19).

A look is a generator: it yields a question (``Ask``), is sent the answer, and returns what is known then. So it reads
from top to bottom although time passes between its lines. What could not be read changes nothing.
"""

from collections import Counter
from collections.abc import Generator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.coverage import (
    Counts,
    Coverage,
    Finding,
    Stretch,
    Trouble,
    Waiting,
    add_stretch,
    digest_of,
    drop_finding,
    find_unchecked,
    follow_position,
    forget,
    grow_piece,
    is_as_expected,
    keep_finding,
    shrink_piece,
)

_MOST_FINDINGS: Final = 1_000
"""More differences than these are not followed one by one: the list is another one altogether."""
_ROUNDS: Final = 8
"""How often position and list are asked in turn before a finding is confirmed: a balancer may have a replica that is
behind, and each question may reach another one."""
_FEW: Final = 100
"""Every list can give so many blocks: a refusal counts as a failure."""
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_NEWEST_EVERY_MS: Final = 90_000
_AGAIN_MS: Final = _MINUTE_MS
"""How long after its first sight a difference is looked at again."""
_FOLLOW_MS: Final = 2 * _MINUTE_MS
"""How often the list is asked for what is confirmed."""
_RETRY_MS: Final = 10 * _MINUTE_MS
_REPEAT_MS: Final = 20 * _HOUR_MS
"""How often the list is asked for everything at least: once a day, less the time to find out what differs."""


class Rules(Struct, frozen=True, kw_only=True):
    """How a list is compared."""

    first_block: int
    limit: int
    endpoints: int
    each: bool = False


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
Blocks = tuple[int, int]


def choose_look(coverage: Coverage, rules: Rules, facts: Facts) -> Look | None:
    """What is due: a trial, the newest blocks, blocks compared long ago, a finding, then older blocks."""
    if facts.final is None or facts.position is None or facts.now < coverage.paused_until_at:
        return None
    now, end = facts.now, min(facts.final, facts.position)
    known = coverage, rules, facts
    if sample := _find_sample(coverage, now, end):
        return _try(sample, *known)
    if newest := _find_newest(coverage, rules, now, end):
        return _compare(newest, *known)
    if stretch := _find_stretch(coverage, now, end):
        return _repeat(stretch, *known)
    if finding := _find_finding(coverage, now, end):
        return _follow(finding, *known)
    if older := _find_older(coverage, rules, now, end):
        return _compare(older, *known)
    return None


def _is_due(at: int, wait_ms: int, now: int) -> bool:
    """Also if the clock was set back meanwhile."""
    return not at <= now < at + wait_ms


def _find_sample(coverage: Coverage, now: int, end: int) -> Blocks | None:
    wait_ms = _RETRY_MS if coverage.unusable else _DAY_MS if coverage.has_passed else _AGAIN_MS
    is_due = _is_due(coverage.trial_at, wait_ms, now)
    return coverage.sample if coverage.sample is not None and coverage.sample[1] <= end and is_due else None


def _find_newest(coverage: Coverage, rules: Rules, now: int, end: int) -> Blocks | None:
    taken = [stretch.last for stretch in coverage.stretches[-1:]]
    taken += [blocks.last for blocks in coverage.waiting if now < blocks.until_at]
    first = max(rules.first_block, end - coverage.piece + 1, *(last + 1 for last in taken))
    return (first, end) if first <= end and _is_due(coverage.newest_at, _NEWEST_EVERY_MS, now) else None


def _find_stretch(coverage: Coverage, now: int, end: int) -> Stretch | None:
    """Where there are few stretches, the list is asked for them more often: each at most once an hour."""
    repeat_ms = min(_REPEAT_MS, max(_HOUR_MS, _MINUTE_MS * len(coverage.stretches)))
    waits = {blocks.first for blocks in coverage.waiting if now < blocks.until_at}
    due = (stretch for stretch in coverage.stretches if _is_due(stretch.compared_at, repeat_ms, now))
    return next((stretch for stretch in due if stretch.last <= end and stretch.first not in waits), None)


def _find_finding(coverage: Coverage, now: int, end: int) -> Finding | None:
    def is_due(finding: Finding) -> bool:
        wait_ms = _FOLLOW_MS if finding.is_confirmed else _AGAIN_MS
        return finding.last <= end and _is_due(finding.looked_at, wait_ms, now)

    due = filter(is_due, coverage.findings.values())
    return min(due, key=lambda finding: finding.looked_at, default=None)


def _find_older(coverage: Coverage, rules: Rules, now: int, end: int) -> Blocks | None:
    """Of the highest gap below the newest blocks, which have their own time."""
    highest = coverage.stretches[-1].last if coverage.stretches else end
    gaps = [*find_unchecked(coverage, rules.first_block, min(end, highest), now)]
    return (gaps[-1][0], min(gaps[-1][1], gaps[-1][0] + coverage.piece - 1)) if gaps else None


class _Sides(NamedTuple):
    """What both sides have in some blocks."""

    listed: Counts
    length: int
    logged: Counts
    blocks: Mapping[str, int]
    """Where the chain has its transactions."""

    def shared(self) -> set[str]:
        return self.listed.keys() & self.logged.keys()


def _compare(blocks: Blocks, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Both sides of blocks that were not compared yet."""
    (first, last), now = blocks, facts.now
    if not coverage.stretches or first > coverage.stretches[-1].last:
        coverage = replace(coverage, newest_at=now)
    coverage, sides = yield from _read_both(blocks, coverage, rules, facts)
    if sides is None:
        return coverage
    listed, logged = sides.listed, sides.logged
    if sides.shared() and coverage.sample is None:
        coverage = replace(coverage, sample=blocks)
    differing = sorted(key for key in {*listed, *logged} if listed.get(key, 0) != logged.get(key, 0))
    if differing and not coverage.has_passed:
        return _put_off(blocks, coverage, now, "untried")
    if len({*coverage.findings, *differing}) > _MOST_FINDINGS:
        return _put_off(blocks, coverage, now, "too_many")
    if differing:
        position = yield AskPosition()
        if position is None or position < last:
            return _put_off(blocks, coverage, now, "position")
    found = {key: _make_finding(key, coverage.findings.get(key), blocks, sides, now) for key in differing}
    others = {key: known for key, known in coverage.findings.items() if known.last < first or last < known.first}
    stretch = Stretch(first, last, sides.length, digest_of(logged), now)
    return add_stretch(replace(coverage, findings={**others, **found}), stretch, rules.limit)


def _make_finding(key: str, known: Finding | None, blocks: Blocks, sides: _Sides, now: int) -> Finding:
    listed, logged = sides.listed.get(key, 0), sides.logged.get(key, 0)
    if known is not None:
        return replace(known, listed=listed, logged=logged)
    block = sides.blocks.get(key)
    first, last = blocks if block is None else (block, block)
    return Finding(hash=key, first=first, last=last, listed=listed, logged=logged, looked_at=now)


def _repeat(stretch: Stretch, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """The list alone, of blocks of which the chain's side is known. Blocks that differ twice are compared again."""
    blocks, now = (stretch.first, stretch.last), facts.now
    for _ in range(2):
        answer = yield AskList(*blocks)
        if isinstance(answer, Refused):
            if answer.asks_for_less and now - stretch.compared_at >= _DAY_MS:
                return forget(coverage, *blocks)
            return _put_off(blocks, coverage, now, "list_failed")
        if answer.length < rules.limit and is_as_expected(coverage, stretch, _count(answer.entries, rules)):
            return add_stretch(coverage, replace(stretch, compared_at=now, count=answer.length), rules.limit)
    return forget(coverage, *blocks)


def _follow(finding: Finding, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """A finding by its block alone: confirmed if it still differs, and dropped if it does not."""
    finding = replace(finding, looked_at=facts.now)
    coverage = keep_finding(coverage, finding)
    first, last = finding.first, finding.last
    while first < last:  # the block under which the list has it, by halving
        middle = (first + last) // 2
        answer = yield AskList(first, middle)
        if isinstance(answer, Refused):
            return coverage
        first, last = (first, middle) if finding.hash in answer.entries else (middle + 1, last)
    finding = replace(finding, first=first, last=first)
    for number in range(1 if finding.is_confirmed else _ROUNDS):
        position = yield AskPosition()
        if position is None or position < first:
            return coverage if position is None else follow_position(coverage, position)
        for _ in range(1 + number % 2):  # so that replicas that take turns do not always get the same question
            answer = yield AskList(first, first)
            if isinstance(answer, Refused) or answer.length >= rules.limit:
                return coverage
            finding = replace(finding, listed=_count(answer.entries, rules).get(finding.hash, 0))
            if finding.listed == finding.logged:
                return drop_finding(coverage, finding.hash)
    if not finding.is_confirmed:
        logs = yield from _read_logs((first, first), rules, facts)
        if not isinstance(logs, frozenset):
            return coverage
        finding = replace(finding, logged=_count_logs(logs, rules).get(finding.hash, 0))
        if finding.listed == finding.logged:
            return drop_finding(coverage, finding.hash)
    return keep_finding(coverage, replace(finding, is_confirmed=True))


def _try(sample: Blocks, coverage: Coverage, rules: Rules, facts: Facts) -> Look:
    """Two blocks that the list's answer names, each asked for alone, have to give what the range gave (S17)."""
    coverage, sides = yield from _read_both(sample, replace(coverage, trial_at=facts.now), rules, facts)
    if sides is None or not sides.shared():  # an unusable list may have no other sample
        return replace(coverage, sample=sample if coverage.unusable else None)
    blocks = sorted(sides.blocks[key] for key in sides.shared())
    for block in {blocks[0], blocks[-1]}:
        answer = yield AskList(block, block)
        if isinstance(answer, Refused) or answer.length >= rules.limit:
            return coverage
        alone = _count(answer.entries, rules)
        expected = {key: times for key, times in sides.listed.items() if sides.blocks.get(key) == block}
        if not expected.items() <= alone.items() <= sides.listed.items():
            why = f"for block {block} alone it gives something else than for blocks around it"
            return replace(coverage, has_passed=False, unusable=why, findings={})
    # Blocks that waited for the trial are compared now.
    return replace(coverage, has_passed=True, unusable="", waiting=())


def _read_both(
    blocks: Blocks, coverage: Coverage, rules: Rules, facts: Facts
) -> Generator[Ask, Any, tuple[Coverage, _Sides | None]]:
    """Both sides of these blocks; None if they wait, or fewer are asked for next time."""
    asked, now = blocks[1] - blocks[0] + 1, facts.now
    answer = yield AskList(*blocks)
    is_cut = isinstance(answer, Listed) and answer.length >= rules.limit
    if (is_cut and asked > 1) or (isinstance(answer, Refused) and answer.asks_for_less and asked > _FEW):
        return shrink_piece(coverage, asked, now), None
    if is_cut or isinstance(answer, Refused):
        return _put_off(blocks, coverage, now, "list_cut" if is_cut else "list_failed"), None
    logs = yield from _read_logs(blocks, rules, facts)
    if logs is None and asked > 1:
        return shrink_piece(coverage, asked, now), None
    if not isinstance(logs, frozenset):
        return _put_off(blocks, coverage, now, logs or "logs_failed"), None
    of_blocks = {log.transaction: log.block for log in logs}
    sides = _Sides(_count(answer.entries, rules), answer.length, _count_logs(logs, rules), of_blocks)
    return grow_piece(coverage, asked, now), sides


def _read_logs(blocks: Blocks, rules: Rules, facts: Facts) -> Generator[Ask, Any, frozenset[Log] | Trouble | None]:
    """The logs that enough endpoints gave alike, or why there are none; None if fewer blocks are to be asked for."""
    has_refused, givers = False, Counter[frozenset[Log]]()
    for name in (name for name, height in facts.heights.items() if height >= blocks[1]):
        answer: frozenset[Log] | Refused = yield AskLogs(name, *blocks)
        if isinstance(answer, Refused):
            has_refused = has_refused or answer.asks_for_less
            continue
        givers[answer] += 1
        if givers[answer] == rules.endpoints:
            return answer
    if has_refused:
        return None
    return "logs_disagree" if len(givers) > 1 else "logs_failed"


def _put_off(blocks: Blocks, coverage: Coverage, now: int, why: Trouble) -> Coverage:
    """Nothing is asked for a minute, and nothing about these blocks for longer."""
    first, last = blocks
    others = (other for other in coverage.waiting if other.last < first or last < other.first)
    kept = (other for other in others if now < other.until_at)
    waiting = (*kept, Waiting(first, last, now + _RETRY_MS, why))
    return replace(coverage, waiting=waiting, paused_until_at=now + _AGAIN_MS)


def _count(entries: Counts, rules: Rules) -> Counts:
    return entries if rules.each else dict.fromkeys(entries, 1)


def _count_logs(logs: frozenset[Log], rules: Rules) -> Counts:
    return _count(Counter(log.transaction for log in logs), rules)
