"""What is known of an indexer's list of transactions beside the chain's own, as a value (S17 to S19)."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.model import Gaps

MOST_FINDINGS: Final = 1_000
"""More differences than these are not followed one by one: the list is another one altogether."""
DIGEST_BYTES: Final = 16
_MOST_CONTROLS: Final = 8
_OLD_CONTROLS: Final = 2
_MOST_NAMED: Final = 5
"""How many transactions a sentence names."""
_FIRST_REACH: Final = 2_000
_MOST_BLOCKS: Final = 1 << 20
_PIECES_OF_STRETCH: Final = 64
_LONGEST_LIST: Final = _MOST_BLOCKS * _PIECES_OF_STRETCH
_PUT_OFF_MS: Final = 60_000
_LIST_REST_MS: Final = 20_000
_MOST_DOUBLINGS: Final = 4
_LONGEST_PUT_OFF_MS: Final = 600_000

Stage = Literal["suspected", "confirmed", "elsewhere"]
"""``elsewhere``: both have the transaction, but not in the same blocks, so that it is neither missing nor extra."""
Trouble = Literal["list_failed", "list_cut", "logs_failed", "logs_disagree", "too_many", "position"]
"""Why a piece could not be compared."""
TROUBLE_WORDS: Final[dict[Trouble, str]] = {
    "list_failed": "the indexer gave no usable list",
    "list_cut": "the list of a single block is as long as the limit, so it may have been cut",
    "logs_failed": "too few endpoints gave the chain's logs",
    "logs_disagree": "the endpoints give different logs",
    "too_many": "too many differences to follow: the list, the contracts or the events may be of something else",
    "position": "the indexer was not that far when it was asked again",
}


class Transaction(NamedTuple):
    block: int
    hash: str


class Stretch(Struct, frozen=True, gc=False, array_like=True):
    """Blocks on whose transactions the chain's endpoints agreed. Only a count and a sum of their hashes are kept. The
    sums of neighbours can be added, so that one request for the list checks many blocks."""

    first: int
    last: int
    count: int
    digest: bytes
    compared_at: int
    entries: int = 0
    """Of the list, when it was compared: more than transactions, if these stand in it once for each event."""
    doubted_at: int | None = None
    """When the list was first seen to differ from it in another way than is known."""
    needs_repeat: bool = False
    """Whether the list has to be asked for it as soon as the indexer is that far again."""


class Finding(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A transaction that only one side has, which is followed until both agree on it."""

    hash: str
    first: int
    last: int
    """The blocks in which it was found."""
    block: int
    """Where the chain has it; of one that it does not have, the first."""
    stage: Stage = "suspected"
    seen_at: int
    looked_at: int
    proved_at: int
    """When the chain was last asked about it, whatever it answered."""


class Reach(Struct, frozen=True, gc=False, array_like=True):
    """How many blocks one request to somebody may ask for."""

    blocks: int = _FIRST_REACH
    refused: int | None = None
    """The fewest blocks that were too many, raised a little with every answer."""

    def shrink(self, asked: int) -> "Reach":
        return Reach(max(1, min(self.blocks, asked // 2)), max(2, asked))

    def grow(self, asked: int, patience: int) -> "Reach":
        """After an answer. What was refused is raised by one part in ``patience`` until it is tried again: other blocks
        may hold less."""
        refused = None if self.refused is None else self.refused + max(1, self.refused // patience)
        if refused is not None and refused > 2 * _MOST_BLOCKS:
            refused = None
        doubled = min(2 * self.blocks, _MOST_BLOCKS)
        if asked < self.blocks or (refused is not None and refused < 2 * doubled):
            doubled = self.blocks
        return Reach(doubled, refused)


class PutOff(Struct, frozen=True, gc=False, array_like=True):
    """Blocks that could not be compared, and when they are tried again."""

    first: int
    last: int
    until_at: int
    times: int
    why: Trouble


class Coverage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that has to survive a restart (S19)."""

    subject: str
    """What is compared with what: of another subject nothing of this is true."""
    began_at: int
    stretches: tuple[Stretch, ...] = ()
    """By their blocks; none touches or overlaps another that it could be joined with."""
    missing: Mapping[str, Finding] = {}
    """By their hashes: what the list lacks."""
    extra: Mapping[str, Finding] = {}
    """What it has and the chain has not."""
    oldest: Transaction | None = None
    """The first transaction of the chain that was ever agreed on: an endpoint that has it is not pruned after it."""
    controls: tuple[Transaction, ...] = ()
    """Some transactions that both had, the oldest and the newest: what the list gives for their blocks shows whether it
    may be believed. Without one it may be a list of anything."""
    had_some_at: int = 0
    """When the list last had anything."""
    most_entries: int = 0
    """Of the longest list that was given at once: one as long may have been cut without a word."""
    endpoints: tuple[str, ...] = ()
    """Those that were asked, the ones that did best lately first."""
    reaches: Mapping[str, Reach] = {}
    """Of the endpoints, by their names."""
    list_reach: Reach = Reach()
    longest_list: int = _LONGEST_LIST
    """For how many blocks the list may be asked at all."""
    list_until_at: int = 0
    """When the list may be asked again after it failed."""
    list_failures: int = 0
    """How often the list failed, one after the other."""
    newest_at: int = 0
    """When the newest blocks were last looked at."""
    checked_at: int = 0
    """When they were last compared."""
    put_off: tuple[PutOff, ...] = ()
    was_following: bool = False
    """Whether the last look followed a finding: then it is the turn of blocks that were not compared yet."""


def gaps_of(coverage: Coverage) -> Gaps:
    """What the row is judged by (S18)."""
    return Gaps(len(confirmed_of(coverage.missing)), len(confirmed_of(coverage.extra)))


def describe_gaps(coverage: Coverage) -> str:
    """Which transactions are confirmed to be missing or too many, and in which blocks: the first few of each."""
    both = {"missing": coverage.missing, "extra": coverage.extra}
    confirmed = {what: confirmed_of(some) for what, some in both.items()}
    return "; ".join(f"{len(found)} {what} {_name_some(found)}" for what, found in confirmed.items() if found)


def confirmed_of(findings: Mapping[str, Finding]) -> list[Finding]:
    """By their blocks."""
    found = (each for each in findings.values() if each.stage == "confirmed")
    return sorted(found, key=lambda each: (each.block, each.hash))


def _name_some(findings: list[Finding]) -> str:
    first, last = min(each.first for each in findings), max(each.last for each in findings)
    named = ", ".join(each.hash for each in findings[:_MOST_NAMED])
    others = len(findings[_MOST_NAMED:])
    return f"in blocks {first} to {last}: {named}{f' and {others} more' if others else ''}"


def resume(coverage: Coverage, now: int) -> Coverage:
    """After a start, or when the clock was set: what was waiting begins to wait again, since nobody knows how long it
    did; and nothing has happened in the future."""

    def resume_finding(each: Finding) -> Finding:
        seen_at = now if each.stage == "suspected" else min(now, each.seen_at)
        return replace(each, seen_at=seen_at, looked_at=min(now, each.looked_at), proved_at=min(now, each.proved_at))

    stretches = (replace(each, compared_at=min(now, each.compared_at), doubted_at=None) for each in coverage.stretches)
    return replace(
        coverage,
        missing={each.hash: resume_finding(each) for each in coverage.missing.values()},
        extra={each.hash: resume_finding(each) for each in coverage.extra.values()},
        stretches=tuple(stretches),
        began_at=min(now, coverage.began_at),
        newest_at=min(now, coverage.newest_at),
        checked_at=min(now, coverage.checked_at),
        had_some_at=now,
        list_until_at=0,
        longest_list=_LONGEST_LIST,
        put_off=(),
    )


def follow_position(coverage: Coverage, position: int) -> Coverage:
    """The indexer said how far it is. What lies above that it does not claim to have: it may be rebuilt. So nothing
    is held against it there, and all of that is compared again."""
    above = [
        each.hash for some in (coverage.missing, coverage.extra) for each in some.values() if each.block > position
    ]
    if above:
        coverage = drop_findings(coverage, above)
    if any(each.last > position and not each.needs_repeat for each in coverage.stretches):
        stretches = (replace(each, needs_repeat=True) if each.last > position else each for each in coverage.stretches)
        coverage = replace(coverage, stretches=tuple(stretches))
    return coverage


def add_agreed(
    coverage: Coverage, first: int, last: int, chain: Collection[Transaction], now: int, limit: int, entries: int = 0
) -> Coverage:
    """The chain's side of these blocks, none of which is part of a stretch, is known now. Few enough are joined for the
    list to give them at once, by its ``entries`` too. It takes all that a stretch is made of, since hashes are
    summed here alone."""
    new = Stretch(first, last, len(chain), _encode(_sum(each.hash for each in chain)), now, entries)
    place = _place(coverage.stretches, first)
    stretches = (*coverage.stretches[:place], new, *coverage.stretches[place:])
    known = () if coverage.oldest is None else (coverage.oldest,)
    coverage = replace(coverage, stretches=stretches, oldest=min((*chain, *known), default=None))
    return _join_around(coverage, place, limit)


def _join_around(coverage: Coverage, place: int, limit: int) -> Coverage:
    """The stretch in this place with its neighbours, as far as the list gives them at once."""
    stretches = list(coverage.stretches)
    reach = max((reach.blocks for reach in coverage.reaches.values()), default=1)
    most_blocks = min(_PIECES_OF_STRETCH * reach, coverage.longest_list)
    for left in (place, place - 1):
        joined = _join(stretches[left], stretches[left + 1]) if 0 <= left < len(stretches) - 1 else None
        if joined and max(joined.count, joined.entries) <= limit // 2 and joined.last - joined.first < most_blocks:
            stretches[left : left + 2] = [joined]
    return replace(coverage, stretches=tuple(stretches))


def forget(coverage: Coverage, first: int, last: int) -> Coverage:
    """These blocks have to be compared again. What both have in different blocks is found again then; what only one has
    is followed all the while."""
    gone = [each for each in coverage.stretches if each.first <= last and first <= each.last]
    elsewhere = [
        each.hash
        for some in (coverage.missing, coverage.extra)
        for each in some.values()
        if each.stage == "elsewhere" and any(one.first <= each.block <= one.last for one in gone)
    ]
    left = tuple(each for each in coverage.stretches if each not in gone)
    return drop_findings(replace(coverage, stretches=left), elsewhere)


def keep_stretch(coverage: Coverage, new: Stretch, limit: int) -> Coverage:
    """In the place of the one with the same blocks."""
    stretches = tuple(new if each.first == new.first else each for each in coverage.stretches)
    return _join_around(replace(coverage, stretches=stretches), _place(stretches, new.first), limit)


def keep_missing(coverage: Coverage, *findings: Finding) -> Coverage:
    return replace(coverage, missing={**coverage.missing, **{each.hash: each for each in findings}})


def keep_extra(coverage: Coverage, *findings: Finding) -> Coverage:
    return replace(coverage, extra={**coverage.extra, **{each.hash: each for each in findings}})


def drop_findings(coverage: Coverage, hashes: Collection[str]) -> Coverage:
    if not hashes:
        return coverage
    missing = {key: each for key, each in coverage.missing.items() if key not in hashes}
    extra = {key: each for key, each in coverage.extra.items() if key not in hashes}
    return replace(coverage, missing=missing, extra=extra)


def drop_healed(coverage: Coverage, first: int, last: int, listed: Collection[str]) -> Coverage:
    """The list of these blocks was read: it may have what it lacked, or lack what it had too much."""
    found = [each for each in coverage.missing.values() if first <= each.block <= last and each.hash in listed]
    gone = [
        each
        for each in coverage.extra.values()
        if first <= each.first and each.last <= last and each.hash not in listed
    ]
    return drop_findings(coverage, [each.hash for each in (*found, *gone)])


def keep_controls(coverage: Coverage, common: Iterable[Transaction]) -> Coverage:
    """The list has these where the chain has them. One of a block is enough."""
    by_block = {each.block: each for each in (*coverage.controls, *common)}
    known = tuple(by_block[block] for block in sorted(by_block))
    few = known if len(known) <= _MOST_CONTROLS else (*known[:_OLD_CONTROLS], *known[_OLD_CONTROLS - _MOST_CONTROLS :])
    return replace(coverage, controls=few)


def is_as_expected(coverage: Coverage, stretch: Stretch, listed: Collection[str]) -> bool:
    """Whether the list of these blocks is the chain's, but for what is known to differ."""
    lacking = [each.hash for each in coverage.missing.values() if stretch.first <= each.block <= stretch.last]
    too_much = [
        each.hash for each in coverage.extra.values() if stretch.first <= each.first and each.last <= stretch.last
    ]
    expected = int.from_bytes(stretch.digest) - _sum(lacking) + _sum(too_much)
    return (
        len(listed) == stretch.count - len(lacking) + len(too_much)
        and (expected - _sum(listed)) % (1 << 8 * DIGEST_BYTES) == 0
    )


def find_unchecked(coverage: Coverage, first: int, last: int, now: int | None = None) -> Iterator[tuple[int, int]]:
    """The blocks of this range that are part of no stretch, and need not wait now, from the lowest on."""
    taken = [(each.first, each.last) for each in coverage.stretches]
    if now is not None and coverage.put_off:
        taken = sorted((*taken, *((each.first, each.last) for each in coverage.put_off if now < each.until_at)))
    for begin, end in taken:
        if begin > last:
            break
        if first < begin:
            yield first, begin - 1
        first = max(first, end + 1)
    if first <= last:
        yield first, last


def checked_blocks(coverage: Coverage) -> int:
    return sum(each.last - each.first + 1 for each in coverage.stretches)


def oldest_unchecked_at(coverage: Coverage, first_block: int) -> int:
    """When the least recently compared block was compared, or the comparison began if some never were."""
    if not coverage.stretches:
        return coverage.began_at
    compared_at = [coverage.checked_at, *(each.compared_at for each in coverage.stretches)]
    highest = coverage.stretches[-1].last
    if any(find_unchecked(coverage, first_block, highest)):
        compared_at.append(coverage.began_at)
    return min(compared_at)


def put_off(coverage: Coverage, first: int, last: int, now: int, why: Trouble) -> Coverage:
    """Try these blocks again later, and ever later the more often they failed."""
    times = 1 + max((each.times for each in coverage.put_off if first <= each.last and each.first <= last), default=0)
    until_at = now + min(_PUT_OFF_MS << min(times - 1, 20), _LONGEST_PUT_OFF_MS)
    others = end_put_off(coverage, first, last).put_off
    return replace(coverage, put_off=(*others, PutOff(first, last, until_at, times, why))[-MOST_FINDINGS:])


def pause_list(coverage: Coverage, now: int) -> Coverage:
    """Ask for no list for a while, longer after every failure."""
    failures = coverage.list_failures + 1
    until_at = now + (_LIST_REST_MS << min(failures - 1, _MOST_DOUBLINGS))
    return replace(coverage, list_until_at=until_at, list_failures=failures)


def end_put_off(coverage: Coverage, first: int, last: int) -> Coverage:
    left = tuple(each for each in coverage.put_off if each.last < first or last < each.first)
    return coverage if len(left) == len(coverage.put_off) else replace(coverage, put_off=left)


def find_put_off(coverage: Coverage, block: int, now: int) -> PutOff | None:
    """The blocks around this one that have to wait."""
    waiting = (each for each in coverage.put_off if each.first <= block <= each.last and now < each.until_at)
    return next(waiting, None)


def _join(one: Stretch, other: Stretch) -> Stretch | None:
    if one.last + 1 != other.first or any(each.doubted_at is not None or each.needs_repeat for each in (one, other)):
        return None
    total = int.from_bytes(one.digest) + int.from_bytes(other.digest)
    compared_at = min(one.compared_at, other.compared_at)
    count, entries = one.count + other.count, one.entries + other.entries
    return Stretch(one.first, other.last, count, _encode(total), compared_at, entries)


def _place(stretches: tuple[Stretch, ...], first: int) -> int:
    return bisect_left(stretches, first, key=lambda each: each.first)


def _sum(hashes: Iterable[str]) -> int:
    return sum(map(_number, hashes))


def _number(transaction: str) -> int:
    """A transaction's hash is as good a number as any: nobody chooses it."""
    return int(transaction[2 : 2 + 2 * DIGEST_BYTES], 16)


def _encode(total: int) -> bytes:
    return (total % (1 << 8 * DIGEST_BYTES)).to_bytes(DIGEST_BYTES)
