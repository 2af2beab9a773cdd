"""What is known of an indexer's list of transactions beside its chain's logs, as a value (S17 to S19)."""

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.model import NO_GAPS, Gaps

_DIGEST_BYTES: Final = 16
_FIRST_PIECE: Final = 2_000
_MOST_BLOCKS: Final = 1 << 20
_PIECES_OF_STRETCH: Final = 64
_MOST_NAMED: Final = 5
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
    """How long the list of these blocks was: what the list's limit counts."""
    digest: bytes
    compared_at: int


class Finding(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A transaction that counts differently on the two sides."""

    hash: str
    first: int
    last: int
    """The blocks in which the difference is: a single one, except for a listed transaction that was not located yet."""
    listed: int
    logged: int
    is_confirmed: bool = False
    looked_at: int
    """When the list was last asked for it."""


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
    """When upstreams may be asked again after a failure."""
    newest_at: int = 0
    """When the newest blocks were last asked for."""
    piece: int = _FIRST_PIECE
    """How many blocks one request asks for."""
    refused_at: int = 0
    """When fewer blocks were last asked for than before."""
    sample: tuple[int, int] | None = None
    """Blocks in which both sides had something: there the list is tried against itself."""
    has_passed: bool = False
    """The list gave for single blocks what it gives for a range."""
    trial_at: int = 0
    """When it was last tried with a result."""
    unusable: str = ""
    """Why nothing is held against this list; "" if it may be."""


def gaps_of(coverage: Coverage) -> Gaps:
    """What the row is judged by (S18)."""
    missing, extra = split_confirmed(coverage)
    if coverage.unusable or not (missing or extra):
        return NO_GAPS
    return Gaps(
        sum(finding.logged - finding.listed for finding in missing),
        sum(finding.listed - finding.logged for finding in extra),
    )


def split_confirmed(coverage: Coverage) -> tuple[list[Finding], list[Finding]]:
    """What is confirmed to be missing, and to be extra, each by its blocks."""
    findings = sorted(coverage.findings.values(), key=lambda finding: (finding.first, finding.hash))
    confirmed = [finding for finding in findings if finding.is_confirmed]
    missing = [finding for finding in confirmed if finding.logged > finding.listed]
    return missing, [finding for finding in confirmed if finding.listed > finding.logged]


def suspected_of(coverage: Coverage) -> list[Finding]:
    return [finding for finding in coverage.findings.values() if not finding.is_confirmed]


def describe_gaps(coverage: Coverage) -> str:
    """Which transactions are confirmed to be missing or extra, and in which blocks: the first few of each."""
    gaps, (missing, extra) = gaps_of(coverage), split_confirmed(coverage)
    parts = ((gaps.missing, "missing", missing), (gaps.extra, "extra", extra))
    return "; ".join(f"{count} {what} {_name_some(found)}" for count, what, found in parts if count)


def _name_some(findings: list[Finding]) -> str:
    named = ", ".join(finding.hash for finding in findings[:_MOST_NAMED])
    others = len(findings[_MOST_NAMED:])
    return f"in blocks {findings[0].first} to {findings[-1].last}: {named}{f' and {others} more' if others else ''}"


def resume(coverage: Coverage, now: int) -> Coverage:
    """After a start or a set clock: what was suspected waits again."""
    findings = {key: replace(finding, looked_at=now) for key, finding in coverage.findings.items()}
    return replace(coverage, findings=findings, waiting=(), paused_until_at=0, newest_at=0, refused_at=0)


def follow_position(coverage: Coverage, position: int) -> Coverage:
    """The indexer said how far it is. Nothing is held against it above that, where it may be rebuilding; what was
    found there is looked for again at once when the indexer has those blocks."""
    findings = {key: finding for key, finding in coverage.findings.items() if finding.last <= position}
    if len(findings) == len(coverage.findings):
        return coverage
    stretches = tuple(
        replace(stretch, compared_at=0) if stretch.last > position else stretch for stretch in coverage.stretches
    )
    return replace(coverage, findings=findings, stretches=stretches)


def shrink_piece(coverage: Coverage, asked: int, now: int) -> Coverage:
    """So many blocks were refused: fewer are asked for, at once."""
    return replace(coverage, piece=max(1, min(coverage.piece, asked // 2)), refused_at=now, newest_at=0)


def grow_piece(coverage: Coverage, asked: int, now: int) -> Coverage:
    """So many blocks were given."""
    if asked < coverage.piece or now - coverage.refused_at < _AFTER_REFUSAL_MS:
        return coverage
    return replace(coverage, piece=min(2 * coverage.piece, _MOST_BLOCKS))


def add_stretch(coverage: Coverage, new: Stretch, limit: int) -> Coverage:
    """These blocks were compared. Neighbours become one stretch as far as the list gives them at once."""
    waiting = tuple(blocks for blocks in coverage.waiting if blocks.last < new.first or new.last < blocks.first)
    stretches: list[Stretch] = []
    for stretch in sorted((*forget(coverage, new.first, new.last).stretches, new), key=lambda stretch: stretch.first):
        if stretches and _fit(stretches[-1], stretch, coverage.piece, limit):
            stretch = _join(stretches.pop(), stretch)
        stretches.append(stretch)
    return replace(coverage, stretches=tuple(stretches), waiting=waiting)


def _fit(one: Stretch, other: Stretch, piece: int, limit: int) -> bool:
    most_blocks = min(_PIECES_OF_STRETCH * piece, _MOST_BLOCKS)
    is_next = one.last + 1 == other.first and other.last - one.first < most_blocks
    return is_next and one.count + other.count <= limit // 2


def _join(one: Stretch, other: Stretch) -> Stretch:
    digest = _digest(int.from_bytes(one.digest) + int.from_bytes(other.digest))
    return Stretch(one.first, other.last, one.count + other.count, digest, min(one.compared_at, other.compared_at))


def forget(coverage: Coverage, first: int, last: int) -> Coverage:
    """These blocks have to be compared again, both sides. What was found in them is followed meanwhile."""
    left = tuple(stretch for stretch in coverage.stretches if stretch.last < first or last < stretch.first)
    return replace(coverage, stretches=left)


def is_as_expected(coverage: Coverage, stretch: Stretch, listed: Counts) -> bool:
    """Whether the list of these blocks is the chain's, but for what is known to differ."""
    known = [finding for finding in coverage.findings.values() if stretch.first <= finding.first <= stretch.last]
    difference = {finding.hash: finding.listed - finding.logged for finding in known}
    return digest_of(listed) == _digest(int.from_bytes(stretch.digest) + _sum(difference))


def keep_finding(coverage: Coverage, finding: Finding) -> Coverage:
    return replace(coverage, findings={**coverage.findings, finding.hash: finding})


def drop_finding(coverage: Coverage, key: str) -> Coverage:
    return replace(coverage, findings={other: found for other, found in coverage.findings.items() if other != key})


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


def digest_of(counts: Counts) -> bytes:
    return _digest(_sum(counts))


def _sum(counts: Counts) -> int:
    """A transaction's hash is as good a number as any: nobody chooses it."""
    return sum(times * int(key[2 : 2 + 2 * _DIGEST_BYTES], 16) for key, times in counts.items())


def _digest(total: int) -> bytes:
    return (total % (1 << 8 * _DIGEST_BYTES)).to_bytes(_DIGEST_BYTES)
