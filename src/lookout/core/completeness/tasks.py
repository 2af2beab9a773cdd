"""Which blocks or findings are looked at next, and by which rules (S19)."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, assert_never

from msgspec import Struct

from lookout.core.completeness.coverage import Coverage, Finding, Reach, find_put_off, find_unchecked

_MINUTE_MS: Final = 60_000
_MOST_AT_ONCE: Final = 20
"""How many findings one look follows: newer blocks wait for it meanwhile."""
_HOUR_MS: Final = 60 * _MINUTE_MS
_FAR_LESS: Final = 8


class Rules(Struct, frozen=True, kw_only=True):
    """How a list is compared. The command that compares a range at once waits for nothing."""

    first_block: int
    lowest_block: int
    """No list is asked for blocks before this one, not even to find what it has under another block."""
    limit: int
    endpoints: int
    newest_every_ms: int = 90_000
    look_again_ms: int = 60_000
    """How soon a difference is looked at again."""
    confirm_ms: int = 240_000
    """How long the list has to lack something before that is reported: it may only be late."""
    follow_ms: int = 300_000
    """How often the list is asked for what it is known to lack, or to have too much."""
    prove_ms: int = 3_600_000
    """How often the chain is asked for that too."""
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
    """What is due: the newest blocks first; then, in turns, what was found and other blocks: those that were agreed on
    long ago, and those that were never compared."""
    if facts.final is None or facts.position is None or facts.now < coverage.list_until_at:
        return None
    end = min(facts.final, facts.position)
    asked = endpoints_for(coverage, facts, end)[: rules.endpoints]
    may_ask = len(asked) == rules.endpoints
    piece = min(coverage.list_reach.blocks, _least_reach(coverage, asked))
    newest = _newest(coverage, rules, facts.now, end, piece) if may_ask else None
    if newest:
        return newest
    findings = _due_findings(coverage, rules, facts.now, end, _least_reach(coverage, asked)) if may_ask else None
    if findings and not coverage.was_following:
        return findings
    unchecked = _unchecked_piece(coverage, rules, facts.now, end, piece) if may_ask else None
    return _due_stretch(coverage, rules, facts.now, end) or unchecked or findings


def _least_reach(coverage: Coverage, endpoints: Iterable[str]) -> int:
    """How many blocks all of these endpoints give at once."""
    return min((coverage.reaches.get(name, Reach()).blocks for name in endpoints), default=1)


def _newest(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    checked_to = coverage.stretches[-1].last if coverage.stretches else rules.first_block - 1
    first = max(checked_to + 1, end - piece + 1)
    if waiting := find_put_off(coverage, first, now):
        first = waiting.last + 1
    is_due = now - coverage.newest_at >= rules.newest_every_ms
    return Task("compare", first, end) if first <= end and is_due else None


def _due_findings(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    """The one that waited longest, and those near it, which cost the endpoints no more."""
    missing = [each for each in coverage.missing.values() if each.block <= end and _is_due(each, rules, now)]
    extra = [each for each in coverage.extra.values() if each.last <= end and _is_due(each, rules, now)]
    extra = [each for each in extra if each.stage != "elsewhere"]  # the chain has it: nothing to prove again
    if not missing and not extra:
        return None
    one = min((*missing, *extra), key=lambda each: each.looked_at)
    if one in extra:
        same = (each.hash for each in extra if (each.first, each.last) == (one.first, one.last))
        return Task("follow extra", one.first, one.last, tuple(same))
    first, last = max(rules.first_block, one.block - piece // 2), min(end, one.block + (piece - 1) // 2)
    near = [each for each in coverage.missing.values() if each.stage != "elsewhere" or each in missing]
    near = sorted((each for each in near if first <= each.block <= last), key=lambda each: each.looked_at)
    return Task("follow missing", first, last, tuple(each.hash for each in near[:_MOST_AT_ONCE]))


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
            return waited_ms >= rules.prove_ms
        case _:
            assert_never(finding.stage)


def _due_stretch(coverage: Coverage, rules: Rules, now: int, end: int) -> Task | None:
    """Where there are few, the list is asked for them more often: about once a minute for one of them, once an hour for
    each."""
    repeat_ms = min(rules.repeat_ms, max(_HOUR_MS, _MINUTE_MS * len(coverage.stretches)))
    for each in coverage.stretches:
        if each.doubted_at is None:
            is_due = each.needs_repeat or now - each.compared_at >= repeat_ms
        else:
            is_due = now - each.doubted_at >= rules.look_again_ms
        if is_due and each.last <= end and not find_put_off(coverage, each.first, now):
            return Task("repeat", each.first, each.last)
    return None


def _unchecked_piece(coverage: Coverage, rules: Rules, now: int, end: int, piece: int) -> Task | None:
    """Of the highest gap below the newest blocks, which have their own time, from its first block on."""
    highest = coverage.stretches[-1].last if coverage.stretches else end
    gaps = [*find_unchecked(coverage, rules.first_block, highest, now)]
    if not gaps:
        return None
    first, last = gaps[-1]
    return Task("compare", first, min(last, first + piece - 1))


def endpoints_for(coverage: Coverage, facts: Facts, last: int) -> list[str]:
    """Those that have this block: the ones that did best lately first, and last those of which little can be asked."""
    known = [name for name in coverage.endpoints if name in facts.heights]
    new = [name for name in facts.heights if name not in known]
    able = {name: coverage.reaches.get(name, Reach()).blocks for name in (*new, *known) if facts.heights[name] >= last}
    most = max(able.values(), default=0)
    return sorted(able, key=lambda name: able[name] * _FAR_LESS < most)
