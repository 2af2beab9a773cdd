"""Compares an indexer's list of transactions with its chain's logs, without I/O (S17 to S19).

What is known of a list is a value, its ``Coverage``. A look at the two sides is a generator: it yields an ``Ask``, is
sent the answer, and returns the new ``Coverage``. A failed request confirms no difference and ends none.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.model import Counts, Gaps, Listed, Log

_DIGEST_BYTES: Final = 16
_FIRST_BATCH: Final = 2_000
_MOST_BLOCKS: Final = 1 << 20
_MOST_NAMED: Final = 5
_MOST_FINDINGS: Final = 1_000
"""More differences than these are not followed one by one: the list is another one altogether."""
_ROUNDS: Final = 8
"""How often position and list are asked in turn before a finding is confirmed: a balancer may have a replica that is
behind, and each question may reach another one."""
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_NEWEST_EVERY_MS: Final = 90_000
_AGAIN_MS: Final = _MINUTE_MS
"""The pause of a list after a failure, the first wait of the blocks that failed, and how long after its first sight a
difference is looked at again."""
_FOLLOW_MS: Final = 2 * _MINUTE_MS
_FOLLOW_EACH_MS: Final = 4_000
"""How often the list is asked for a confirmed finding: with many less often, so that half of the time is left."""
RETRY_MS: Final = 10 * _MINUTE_MS
"""The longest wait of blocks that fail; after so long an unusable list is tried again, and batches may grow."""
_REPEAT_MS: Final = 20 * _HOUR_MS
"""How often the list is asked for everything at least: once a day, less the time to find out what differs."""

BlockRange = tuple[int, int]
"""The first and the last block of a range."""
Trouble = Literal["list_failed", "list_cut", "logs_failed", "logs_disagree", "too_many", "position", "untried"]
"""Why blocks could not be compared."""
TROUBLE_WORDS: Final[dict[Trouble, str]] = {
    "list_failed": "the indexer gave no usable list",
    "list_cut": "the list of a single block is as long as the limit, so it may have been cut",
    "logs_failed": "too few endpoints gave the chain's logs",
    "logs_disagree": "the endpoints give different logs",
    "too_many": "too many differences to follow: the list, the contracts or the events may be of something else",
    "position": "the indexer was not that far when it was asked again",
    "untried": "the list has not passed its trial against itself",
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


class Waiting(Struct, frozen=True, gc=False, array_like=True):
    """Blocks that could not be compared, and since when they wait."""

    first: int
    last: int
    since_at: int
    why: Trouble
    wait_ms: int = RETRY_MS


class Finding(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A transaction that counts differently on the two sides."""

    hash: str
    first: int
    last: int
    """The blocks in which the difference is: a single one, except for a listed transaction that was not located yet."""
    listed: int = 0
    logged: int = 0
    is_confirmed: bool = False
    looked_at: int
    """When the list was last asked for it."""

    @property
    def shortfall(self) -> int:
        """Logs less entries: negative if the list has too many."""
        return self.logged - self.listed


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
    newest_at: int = 0
    """When the newest blocks were last asked for."""
    batch: int = _FIRST_BATCH
    """How many blocks one request asks for."""
    refused_at: int = 0
    """When the batch was last reduced."""
    sample: BlockRange | None = None
    """Blocks in which both sides had something: there the list is tried against itself."""
    has_passed: bool = False
    """The list gave for single blocks what it gives for a range."""
    trial_at: int = 0
    """When the last trial began."""
    unusable: str = ""
    """Why the list is not judged; "" if it is."""


class Facts(Struct, frozen=True):
    """How a list is compared, and what is known when a look begins."""

    first_block: int
    limit: int
    endpoints_needed: int
    each: bool
    now: int
    end: int | None
    """The last block that is final and that the indexer has; None if that is unknown."""
    heights: Mapping[str, int]
    """By endpoint, of those that agree on the head."""


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


def gaps_of(coverage: Coverage) -> Gaps:
    """What the row is judged by (S18)."""
    missing, extra = split_confirmed(coverage)
    return Gaps(sum(finding.shortfall for finding in missing), -sum(finding.shortfall for finding in extra))


def split_confirmed(coverage: Coverage) -> tuple[list[Finding], list[Finding]]:
    """What is confirmed to be missing, and to be extra, each by its blocks."""
    findings = sorted(coverage.findings.values(), key=lambda finding: (finding.first, finding.hash))
    confirmed = [finding for finding in findings if finding.is_confirmed]
    missing = [finding for finding in confirmed if finding.shortfall > 0]
    return missing, [finding for finding in confirmed if finding.shortfall < 0]


def suspected_of(coverage: Coverage) -> list[Finding]:
    return [finding for finding in coverage.findings.values() if not finding.is_confirmed]


def describe_gaps(coverage: Coverage) -> str:
    """Which transactions are confirmed to be missing or extra, and in which blocks: the first few of each."""
    parts = []
    for what, findings in zip(("missing", "extra"), split_confirmed(coverage), strict=True):
        if findings:
            count, others = abs(sum(finding.shortfall for finding in findings)), len(findings[_MOST_NAMED:])
            named = ", ".join(finding.hash for finding in findings[:_MOST_NAMED])
            where = f"in blocks {findings[0].first} to {findings[-1].last}"
            parts.append(f"{count} {what} {where}: {named}{f' and {others} more' if others else ''}")
    return "; ".join(parts)


def checked_blocks(coverage: Coverage) -> int:
    return sum(stretch.last - stretch.first + 1 for stretch in coverage.stretches)


def oldest_unchecked_at(coverage: Coverage, first_block: int) -> int:
    """When the least recently compared block was compared; if one never was, when the comparison began."""
    stretches = coverage.stretches
    is_whole = bool(stretches) and not any(find_unchecked(coverage, first_block, stretches[-1].last))
    # A stretch that is to be repeated at once has 0.
    return min(stretch.compared_at or coverage.began_at for stretch in stretches) if is_whole else coverage.began_at


def find_unchecked(coverage: Coverage, first: int, last: int, now: int | None = None) -> Iterator[BlockRange]:
    """The blocks of this range that are in no stretch and need not wait now, from the lowest on."""
    taken = [(stretch.first, stretch.last) for stretch in coverage.stretches]
    taken += [] if now is None else [(blocks.first, blocks.last) for blocks in _still_waiting(coverage, now)]
    for begin, end in sorted(taken):
        if begin > last:
            break
        if first < begin:
            yield first, begin - 1
        first = max(first, end + 1)
    if first <= last:
        yield first, last


def resume(coverage: Coverage, now: int) -> Coverage:
    """After a start or a set clock: what was suspected waits again."""
    findings = {key: replace(finding, looked_at=now) for key, finding in coverage.findings.items()}
    return replace(coverage, findings=findings, waiting=(), newest_at=0, refused_at=0)


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


def choose_look(coverage: Coverage, facts: Facts) -> Look | None:
    """What is due: a trial, the newest blocks, blocks compared long ago, a finding, then older blocks."""
    now, end = facts.now, facts.end
    if end is None or _failed_within(_AGAIN_MS, coverage, now):
        return None
    if sample := _find_sample(coverage, now, end):
        return _try(sample, coverage, facts)
    if newest := _find_newest(coverage, facts.first_block, now, end):
        return _compare(newest, replace(coverage, newest_at=now), facts)
    if stretch := _find_stretch(coverage, now, end):
        return _repeat(stretch, coverage, facts)
    if finding := _find_finding(coverage, now):
        return _follow(finding, coverage, facts)
    if older := _find_older(coverage, facts.first_block, now, end):
        return _compare(older, coverage, facts)
    return None


def _is_due(at: int, wait_ms: int, now: int) -> bool:
    """Whether the wait is over, or the clock was set back."""
    return not at <= now < at + wait_ms


def _find_sample(coverage: Coverage, now: int, end: int) -> BlockRange | None:
    wait_ms = RETRY_MS if coverage.unusable else _DAY_MS if coverage.has_passed else _AGAIN_MS
    is_due = _is_due(coverage.trial_at, wait_ms, now)
    return coverage.sample if coverage.sample is not None and coverage.sample[1] <= end and is_due else None


def _find_newest(coverage: Coverage, first_block: int, now: int, end: int) -> BlockRange | None:
    taken = [stretch.last for stretch in coverage.stretches[-1:]]
    taken += [blocks.last for blocks in _still_waiting(coverage, now)]
    first = max(first_block, end - coverage.batch + 1, *(last + 1 for last in taken))
    return (first, end) if first <= end and _is_due(coverage.newest_at, _NEWEST_EVERY_MS, now) else None


def _find_stretch(coverage: Coverage, now: int, end: int) -> Stretch | None:
    """Where there are few stretches, the list is asked for them more often: each at most once an hour."""
    repeat_ms = min(_REPEAT_MS, max(_HOUR_MS, _MINUTE_MS * len(coverage.stretches)))
    waits = {blocks.first for blocks in _still_waiting(coverage, now)}
    due = (stretch for stretch in coverage.stretches if _is_due(stretch.compared_at, repeat_ms, now))
    return next((stretch for stretch in due if stretch.last <= end and stretch.first not in waits), None)


def _find_finding(coverage: Coverage, now: int) -> Finding | None:
    follow_ms = max(_FOLLOW_MS, _FOLLOW_EACH_MS * len(coverage.findings))
    due = (
        finding
        for finding in coverage.findings.values()
        if _is_due(finding.looked_at, follow_ms if finding.is_confirmed else _AGAIN_MS, now)
    )
    return min(due, key=lambda finding: finding.looked_at, default=None)


def _find_older(coverage: Coverage, first_block: int, now: int, end: int) -> BlockRange | None:
    """The beginning of the highest uncompared range below the newest blocks, or of those themselves if they failed."""
    tried: list[Stretch | Waiting] = [*coverage.stretches[-1:], *coverage.waiting]
    highest = max((known.last for known in tried), default=end)
    ranges = [*find_unchecked(coverage, first_block, min(end, highest), now)]
    return (ranges[-1][0], min(ranges[-1][1], ranges[-1][0] + coverage.batch - 1)) if ranges else None


class _Sides(NamedTuple):
    """What both sides have in some blocks."""

    listed: Counts
    length: int
    logged: Counts
    blocks: Mapping[str, int]
    """Where the chain has its transactions."""

    def shared(self) -> set[str]:
        return self.listed.keys() & self.logged.keys()


def _compare(blocks: BlockRange, coverage: Coverage, facts: Facts) -> Look:
    """Both sides of blocks that were not compared yet."""
    now = facts.now
    coverage, sides = yield from _read_both(blocks, coverage, facts)
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
        if position is None or position < blocks[1]:
            return _put_off(blocks, coverage, now, "position")
    findings = {known.hash: known for known in _outside(blocks, coverage.findings.values())}
    for key in differing:
        first, last = (sides.blocks[key],) * 2 if key in sides.blocks else blocks
        known = coverage.findings.get(key, Finding(hash=key, first=first, last=last, looked_at=now))
        findings[key] = replace(known, listed=listed.get(key, 0), logged=logged.get(key, 0))
    stretch = Stretch(*blocks, sides.length, _digest(_sum(logged)), now)
    return _add_stretch(replace(coverage, findings=findings), stretch, facts.limit)


def _repeat(stretch: Stretch, coverage: Coverage, facts: Facts) -> Look:
    """The list alone, of blocks of which the chain's side is known. Both sides are compared again if it differs in more
    than what is known, or refused for a day."""
    blocks, now = (stretch.first, stretch.last), facts.now
    answer = yield AskList(*blocks)
    if isinstance(answer, Refused):
        if not answer.asks_for_less or now - stretch.compared_at < _DAY_MS:
            return _put_off(blocks, coverage, now, "list_failed")
    else:
        known = (finding for finding in coverage.findings.values() if blocks[0] <= finding.first <= blocks[1])
        shortfalls = {finding.hash: finding.shortfall for finding in known}
        digest = _digest(_sum(_count(answer.entries, facts)) + _sum(shortfalls))
        if digest == stretch.digest and answer.length < facts.limit:
            return _add_stretch(coverage, replace(stretch, compared_at=now, count=answer.length), facts.limit)
    return replace(coverage, stretches=_outside(blocks, coverage.stretches))


def _follow(finding: Finding, coverage: Coverage, facts: Facts) -> Look:
    """A finding by its block alone: confirmed if it still differs, and dropped if it does not."""
    others = {key: other for key, other in coverage.findings.items() if key != finding.hash}
    dropped = replace(coverage, findings=others)
    finding = replace(finding, looked_at=facts.now)
    coverage = replace(coverage, findings={**others, finding.hash: finding})
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
            return coverage
        for _ in range(1 + number % 2):  # so that replicas that take turns do not always get the same question
            answer = yield AskList(first, first)
            if isinstance(answer, Refused) or answer.length >= facts.limit:
                return coverage
            finding = replace(finding, listed=_count(answer.entries, facts).get(finding.hash, 0))
            if not finding.shortfall:
                return dropped
    if not finding.is_confirmed:
        logs = yield from _read_logs((first, first), facts)
        if not isinstance(logs, frozenset):
            return coverage
        logged = _count(Counter(log.transaction for log in logs), facts).get(finding.hash, 0)
        finding = replace(finding, logged=logged, is_confirmed=True)
        if not finding.shortfall:
            return dropped
    return replace(coverage, findings={**others, finding.hash: finding})


def _try(sample: BlockRange, coverage: Coverage, facts: Facts) -> Look:
    """Two blocks that the list's answer names, each asked for alone, have to give what the range gave (S17)."""
    coverage, sides = yield from _read_both(sample, replace(coverage, trial_at=facts.now), facts)
    if sides is None or not sides.shared():  # an unusable list may have no other sample
        return replace(coverage, sample=sample if coverage.unusable else None)
    blocks = sorted(sides.blocks[key] for key in sides.shared())
    for block in {blocks[0], blocks[-1]}:
        answer = yield AskList(block, block)
        if isinstance(answer, Refused) or answer.length >= facts.limit:
            return coverage
        alone = _count(answer.entries, facts)
        expected = {key: times for key, times in sides.listed.items() if sides.blocks.get(key) == block}
        if not expected.items() <= alone.items() <= sides.listed.items():
            why = f"for block {block} alone it gives something else than for blocks around it"
            return replace(coverage, has_passed=False, unusable=why, findings={})
    # Blocks that waited for the trial are compared now.
    return replace(coverage, has_passed=True, unusable="", waiting=())


def _read_both(
    blocks: BlockRange, coverage: Coverage, facts: Facts
) -> Generator[Ask, Any, tuple[Coverage, _Sides | None]]:
    """Both sides of these blocks; None if they wait, or fewer are asked for next time."""
    asked, now = blocks[1] - blocks[0] + 1, facts.now
    batch = max(1, min(coverage.batch, asked // 2))
    for_fewer = replace(coverage, batch=batch, refused_at=now, newest_at=0)
    answer = yield AskList(*blocks)
    is_cut = isinstance(answer, Listed) and answer.length >= facts.limit
    if asked > 1 and (is_cut or (isinstance(answer, Refused) and answer.asks_for_less)):
        return for_fewer, None
    if is_cut or isinstance(answer, Refused):
        return _put_off(blocks, coverage, now, "list_cut" if is_cut else "list_failed"), None
    logs = yield from _read_logs(blocks, facts)
    if logs is None and asked > 1:
        return for_fewer, None
    if not isinstance(logs, frozenset):
        return _put_off(blocks, coverage, now, logs or "logs_failed"), None
    if asked >= coverage.batch and now - coverage.refused_at >= RETRY_MS:
        coverage = replace(coverage, batch=min(2 * coverage.batch, _MOST_BLOCKS))
    of_blocks = {log.transaction: log.block for log in logs}
    logged = _count(Counter(log.transaction for log in logs), facts)
    return coverage, _Sides(_count(answer.entries, facts), answer.length, logged, of_blocks)


def _read_logs(blocks: BlockRange, facts: Facts) -> Generator[Ask, Any, frozenset[Log] | Trouble | None]:
    """The logs on which enough endpoints agree, or why they do not; None if fewer blocks are to be asked for."""
    asks_for_less, answers = False, Counter[frozenset[Log]]()
    for name in (name for name, height in facts.heights.items() if height >= blocks[1]):
        answer: frozenset[Log] | Refused = yield AskLogs(name, *blocks)
        if isinstance(answer, Refused):
            asks_for_less = asks_for_less or answer.asks_for_less
            continue
        answers[answer] += 1
        if answers[answer] == facts.endpoints_needed:
            return answer
    if asks_for_less:
        return None
    return "logs_disagree" if len(answers) > 1 else "logs_failed"


def _put_off(blocks: BlockRange, coverage: Coverage, now: int, why: Trouble) -> Coverage:
    """Pause the list for a minute, and these blocks as well; if they fail again, each time for twice as long."""
    known = _failed_within(2 * RETRY_MS, coverage, now)
    others = _outside(blocks, known)
    waited_ms = max((waiting.wait_ms for waiting in known if waiting not in others), default=_AGAIN_MS // 2)
    waiting = Waiting(*blocks, now, why, min(2 * waited_ms, RETRY_MS))
    return replace(coverage, waiting=(*others, waiting))


def _failed_within(wait_ms: int, coverage: Coverage, now: int) -> list[Waiting]:
    return [blocks for blocks in coverage.waiting if not _is_due(blocks.since_at, wait_ms, now)]


def _still_waiting(coverage: Coverage, now: int) -> list[Waiting]:
    return [blocks for blocks in coverage.waiting if not _is_due(blocks.since_at, blocks.wait_ms, now)]


_Range = TypeVar("_Range", Stretch, Waiting, Finding)


def _outside(blocks: BlockRange, ranges: Iterable[_Range]) -> tuple[_Range, ...]:
    """The ranges that share none of these blocks."""
    return tuple(other for other in ranges if other.last < blocks[0] or blocks[1] < other.first)


def _add_stretch(coverage: Coverage, new: Stretch, limit: int) -> Coverage:
    """These blocks were compared. Neighbours become one stretch as far as the list gives them at once."""
    blocks, stretches = (new.first, new.last), list[Stretch]()
    for stretch in sorted((*_outside(blocks, coverage.stretches), new), key=lambda stretch: stretch.first):
        if joined := stretches and _join(stretches[-1], stretch, limit):
            stretches[-1] = joined
        else:
            stretches.append(stretch)
    return replace(coverage, stretches=tuple(stretches), waiting=_outside(blocks, coverage.waiting))


def _join(one: Stretch, other: Stretch, limit: int) -> Stretch | None:
    """None unless they are neighbours, and the list gives both at once."""
    blocks, count = other.last - one.first + 1, one.count + other.count
    if one.last + 1 != other.first or count > limit // 2 or blocks > _MOST_BLOCKS:
        return None
    digest = _digest(int.from_bytes(one.digest) + int.from_bytes(other.digest))
    return Stretch(one.first, other.last, count, digest, min(one.compared_at, other.compared_at))


def _count(entries: Counts, facts: Facts) -> Counts:
    return entries if facts.each else dict.fromkeys(entries, 1)


def _sum(counts: Counts) -> int:
    """The sum of the hashes' first 16 bytes, each as often as it counts. By mistake no list has the sum of another; who
    may invent an indexer's entries can make one that has."""
    return sum(times * int(key[2 : 2 + 2 * _DIGEST_BYTES], 16) for key, times in counts.items())


def _digest(total: int) -> bytes:
    return (total % (1 << 8 * _DIGEST_BYTES)).to_bytes(_DIGEST_BYTES)
