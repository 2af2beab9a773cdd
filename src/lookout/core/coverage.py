"""What is known of an indexer's list of transactions beside its chain's logs, as a value (S17 to S19)."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.model import NO_GAPS, Gaps

MOST_FINDINGS: Final = 1_000
"""More differences than these are not followed one by one: the list is another one altogether."""
DIGEST_BYTES: Final = 16
_FIRST_REACH: Final = 2_000
_MOST_BLOCKS: Final = 1 << 20
_PIECES_OF_STRETCH: Final = 64
_MOST_NAMED: Final = 5
_MOST_WAITING: Final = 200
_AFTER_REFUSAL_MS: Final = 10 * 60_000

Counts = Mapping[str, int]
"""How often transactions count on one side, by their hashes: once, or with ``each`` once for every entry or log."""
Trouble = Literal["list_failed", "list_cut", "logs_failed", "logs_disagree", "too_many", "position", "untried"]
"""Why blocks could not be compared."""
TROUBLE_WORDS: Final[dict[Trouble, str]] = {
    "list_failed": "the indexer gave no usable list",
    "list_cut": "the list of a single block is as long as the limit, so it may have been cut",
    "logs_failed": "too few endpoints gave the chain's logs",
    "logs_disagree": "the endpoints give different logs",
    "too_many": "too many differences to follow: the list, the contracts or the events may be of something else",
    "position": "the indexer was not that far when it was asked again",
    "untried": "the list was not tried against itself yet",
}


class Stretch(Struct, frozen=True, gc=False, array_like=True):
    """Compared blocks of which the chain's side is kept as a digest. Digests of neighbours add up, so that one request
    for the list compares many blocks again."""

    first: int
    last: int
    count: int
    digest: bytes
    compared_at: int
    entries: int = 0
    """Of the list when it was compared: what the limit of the list counts."""
    doubted_at: int | None = None
    """When the list was first seen to differ in another way than is known."""


class Finding(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A transaction that counts differently on the two sides."""

    hash: str
    first: int
    last: int
    """The blocks in which the difference is: a single one, except for a listed transaction that was not located yet."""
    listed: int
    logged: int
    is_confirmed: bool = False
    seen_at: int
    looked_at: int
    """When the list was last asked for it."""
    proved_at: int
    """When the chain was last asked for it."""


class Reach(Struct, frozen=True, gc=False, array_like=True):
    """How many blocks one request asks for: half as many after a refusal, and more again ten minutes later."""

    blocks: int = _FIRST_REACH
    refused_at: int | None = None

    def shrink(self, asked: int, now: int) -> "Reach":
        return Reach(max(1, min(self.blocks, asked // 2)), now)

    def grow(self, asked: int, now: int) -> "Reach":
        may_grow = self.refused_at is None or now - self.refused_at >= _AFTER_REFUSAL_MS
        return Reach(min(2 * self.blocks, _MOST_BLOCKS), self.refused_at) if may_grow and asked >= self.blocks else self


class Waiting(Struct, frozen=True, gc=False, array_like=True):
    """Blocks that could not be compared, and when they are tried again."""

    first: int
    last: int
    until_at: int
    why: Trouble


class Coverage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that has to survive a restart (S19)."""

    subject: str
    """What is compared with what: nothing of this is true of another subject."""
    began_at: int
    stretches: tuple[Stretch, ...] = ()
    """By their blocks, without overlap."""
    findings: Mapping[str, Finding] = {}
    """By their hashes."""
    waiting: tuple[Waiting, ...] = ()
    paused_until_at: int = 0
    """When the list may be asked again after it failed."""
    newest_at: int = 0
    """When the newest blocks were last asked for."""
    logs_reach: Reach = Reach()
    lists_reach: Reach = Reach()
    endpoints: tuple[str, ...] = ()
    """Those that failed or disagreed, the latest last: others are asked before them."""
    sample: tuple[int, int] | None = None
    """Blocks in which both sides had something: there the list is tried against itself."""
    tried_at: int | None = None
    """When the list last gave for single blocks what it gives for more of them."""
    trial_at: int = 0
    """When that was last looked at, with whatever result."""
    trial_failures: int = 0
    unusable: str = ""
    """Why nothing is held against this list; "" if it may be."""


def gaps_of(coverage: Coverage) -> Gaps:
    """What the row is judged by (S18)."""
    if coverage.unusable:
        return NO_GAPS
    confirmed = confirmed_of(coverage)
    return Gaps(
        sum(max(0, finding.logged - finding.listed) for finding in confirmed),
        sum(max(0, finding.listed - finding.logged) for finding in confirmed),
    )


def confirmed_of(coverage: Coverage) -> list[Finding]:
    """By their blocks."""
    confirmed = (finding for finding in coverage.findings.values() if finding.is_confirmed)
    return sorted(confirmed, key=lambda finding: (finding.first, finding.hash))


def describe_gaps(coverage: Coverage) -> str:
    """Which transactions are confirmed to be missing or extra, and in which blocks: the first few of each."""
    gaps, confirmed = gaps_of(coverage), confirmed_of(coverage)
    missing = [finding for finding in confirmed if finding.logged > finding.listed]
    extra = [finding for finding in confirmed if finding.listed > finding.logged]
    parts = ((gaps.missing, "missing", missing), (gaps.extra, "extra", extra))
    return "; ".join(f"{count} {what} {_name_some(found)}" for count, what, found in parts if count)


def _name_some(findings: list[Finding]) -> str:
    first, last = min(finding.first for finding in findings), max(finding.last for finding in findings)
    named = ", ".join(finding.hash for finding in findings[:_MOST_NAMED])
    others = len(findings[_MOST_NAMED:])
    return f"in blocks {first} to {last}: {named}{f' and {others} more' if others else ''}"


def resume(coverage: Coverage, now: int) -> Coverage:
    """After a start or a set clock: what was suspected waits again, and nothing has happened in the future."""

    def resume_finding(finding: Finding) -> Finding:
        seen_at = min(now, finding.seen_at) if finding.is_confirmed else now
        looked_at, proved_at = min(now, finding.looked_at), min(now, finding.proved_at)
        return replace(finding, seen_at=seen_at, looked_at=looked_at, proved_at=proved_at)

    return replace(
        coverage,
        began_at=min(now, coverage.began_at),
        stretches=tuple(
            replace(stretch, compared_at=min(now, stretch.compared_at), doubted_at=None)
            for stretch in coverage.stretches
        ),
        findings={key: resume_finding(finding) for key, finding in coverage.findings.items()},
        waiting=(),
        paused_until_at=0,
        newest_at=0,
        tried_at=None if coverage.tried_at is None else min(now, coverage.tried_at),
        trial_at=min(now, coverage.trial_at),
        logs_reach=Reach(coverage.logs_reach.blocks),
        lists_reach=Reach(coverage.lists_reach.blocks),
    )


def follow_position(coverage: Coverage, position: int) -> Coverage:
    """The indexer said how far it is. Nothing is held against it above that, where it may be rebuilding, and those
    blocks are compared again."""
    findings = {key: finding for key, finding in coverage.findings.items() if finding.last <= position}
    is_above = any(stretch.last > position and stretch.compared_at for stretch in coverage.stretches)
    if len(findings) == len(coverage.findings) and not is_above:
        return coverage
    stretches = tuple(
        replace(stretch, compared_at=0) if stretch.last > position else stretch for stretch in coverage.stretches
    )
    return replace(coverage, findings=findings, stretches=stretches)


def add_stretch(
    coverage: Coverage, first: int, last: int, logged: Counts, entries: int, now: int, limit: int
) -> Coverage:
    """The chain's side of these blocks, none of which is in a stretch, was agreed on, and the list compared with it."""
    new = Stretch(first, last, sum(logged.values()), _digest(logged), now, entries)
    place = bisect_left(coverage.stretches, first, key=lambda stretch: stretch.first)
    stretches = [*coverage.stretches[:place], new, *coverage.stretches[place:]]
    waiting = tuple(blocks for blocks in coverage.waiting if blocks.last < first or last < blocks.first)
    return _join(replace(coverage, stretches=tuple(stretches), waiting=waiting), place, limit)


def renew_stretch(coverage: Coverage, new: Stretch, limit: int) -> Coverage:
    """In the place of the one with the same first block."""
    stretches = tuple(new if stretch.first == new.first else stretch for stretch in coverage.stretches)
    place = bisect_left(stretches, new.first, key=lambda stretch: stretch.first)
    return _join(replace(coverage, stretches=stretches), place, limit)


def _join(coverage: Coverage, place: int, limit: int) -> Coverage:
    """The stretch in this place with its neighbours, as far as the list gives them at once."""
    stretches = list(coverage.stretches)
    most_blocks = min(_PIECES_OF_STRETCH * coverage.logs_reach.blocks, _MOST_BLOCKS)
    for left in (place, place - 1):
        if not 0 <= left < len(stretches) - 1:
            continue
        one, other = stretches[left : left + 2]
        if one.last + 1 != other.first or one.doubted_at is not None or other.doubted_at is not None:
            continue
        count, entries = one.count + other.count, one.entries + other.entries
        if max(count, entries) <= limit // 2 and other.last - one.first < most_blocks:
            digest = _add(int.from_bytes(one.digest), int.from_bytes(other.digest))
            compared_at = min(one.compared_at, other.compared_at)
            stretches[left : left + 2] = [Stretch(one.first, other.last, count, digest, compared_at, entries)]
    return replace(coverage, stretches=tuple(stretches))


def forget(coverage: Coverage, first: int, last: int) -> Coverage:
    """These blocks have to be compared again, both sides. What was found in them is followed meanwhile."""
    left = tuple(stretch for stretch in coverage.stretches if stretch.last < first or last < stretch.first)
    return replace(coverage, stretches=left)


def is_as_expected(coverage: Coverage, stretch: Stretch, listed: Counts) -> bool:
    """Whether the list of these blocks is the chain's, but for what is known to differ."""
    known = [finding for finding in coverage.findings.values() if stretch.first <= finding.first <= stretch.last]
    difference = {finding.hash: finding.listed - finding.logged for finding in known}
    expected = _add(int.from_bytes(stretch.digest), _sum(difference))
    return sum(listed.values()) == stretch.count + sum(difference.values()) and expected == _digest(listed)


def keep_findings(coverage: Coverage, findings: Iterable[Finding]) -> Coverage:
    return replace(coverage, findings={**coverage.findings, **{finding.hash: finding for finding in findings}})


def drop_findings(coverage: Coverage, hashes: Iterable[str]) -> Coverage:
    dropped = set(hashes)
    left = {key: finding for key, finding in coverage.findings.items() if key not in dropped}
    return coverage if len(left) == len(coverage.findings) else replace(coverage, findings=left)


def put_off(coverage: Coverage, first: int, last: int, until_at: int, why: Trouble) -> Coverage:
    others = [blocks for blocks in coverage.waiting if blocks.last < first or last < blocks.first]
    return replace(coverage, waiting=(*others[1 - _MOST_WAITING :], Waiting(first, last, until_at, why)))


def find_unchecked(coverage: Coverage, first: int, last: int, now: int | None = None) -> Iterator[tuple[int, int]]:
    """The blocks of this range that are in no stretch and need not wait now, from the lowest on."""
    taken = [(stretch.first, stretch.last) for stretch in coverage.stretches]
    if now is not None:
        taken += [(blocks.first, blocks.last) for blocks in coverage.waiting if now < blocks.until_at]
    for begin, end in sorted(taken):
        if begin > last:
            break
        if first < begin:
            yield first, begin - 1
        first = max(first, end + 1)
    if first <= last:
        yield first, last


def checked_blocks(coverage: Coverage) -> int:
    return sum(stretch.last - stretch.first + 1 for stretch in coverage.stretches)


def oldest_unchecked_at(coverage: Coverage, first_block: int) -> int:
    """When the least recently compared block was compared; if one never was, when the comparison began."""
    stretches = coverage.stretches
    is_whole = bool(stretches) and not any(find_unchecked(coverage, first_block, stretches[-1].last))
    # A stretch that is to be repeated at once has 0.
    return min(stretch.compared_at or coverage.began_at for stretch in stretches) if is_whole else coverage.began_at


def _digest(counts: Counts) -> bytes:
    return _add(0, _sum(counts))


def _sum(counts: Counts) -> int:
    """A transaction's hash is as good a number as any: nobody chooses it."""
    return sum(times * int(key[2 : 2 + 2 * DIGEST_BYTES], 16) for key, times in counts.items())


def _add(one: int, other: int) -> bytes:
    return ((one + other) % (1 << 8 * DIGEST_BYTES)).to_bytes(DIGEST_BYTES)
