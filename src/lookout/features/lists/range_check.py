"""A range of every list that has the table, compared with its chain now: what ``lookout coverage`` does (S17)."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lookout.core.causes import describe_cause
from lookout.core.model import Blocks, Check, Failed
from lookout.features.feature import Probing
from lookout.features.lists.readers import Comparer, build_comparers
from lookout.features.lists.rules.coverage import (
    TROUBLE_WORDS,
    Coverage,
    checked_blocks,
    choose_look,
    find_unchecked,
    split_confirmed,
    suspected_of,
)
from lookout.protocols.client.session import Session
from lookout.protocols.source import observe

_BETWEEN_REQUESTS_MS: Final = 200
_ROUNDS_IN_VAIN: Final = 5
_AFTER_ROUND_IN_VAIN_S: Final = 3
_NO_BLOCK: Final = -1
_AHEAD_MS: Final = 30 * 60_000  # after which the monitor would try again whatever failed


class CheckedRange(Struct, frozen=True):
    """What a comparison found."""

    check: Check
    first: int
    last: int
    coverage: Coverage
    not_compared: tuple[str, ...]
    """Which blocks, and why."""
    causes: tuple[str, ...] = ()
    """Who failed, and why."""

    @property
    def differs(self) -> bool:
        return any(split_confirmed(self.coverage))

    @property
    def is_whole(self) -> bool:
        return not suspected_of(self.coverage) and not self.not_compared and not self.coverage.unusable


async def check_ranges(probing: Probing, first: int | None, last: int | None) -> list[CheckedRange]:
    """All of them at the same time, by default from the configured first block to the last final one that the indexer
    has. OwnFault if a local resource ran out."""
    comparers = build_comparers(probing.around, probing.clock, every_ms=_BETWEEN_REQUESTS_MS)
    return await asyncio.gather(*(_check_range(comparer, probing, first, last) for comparer in comparers))


async def _check_range(comparer: Comparer, probing: Probing, first: int | None, last: int | None) -> CheckedRange:
    first_block = comparer.list.table.first_block
    first = max(first_block, first or 0)
    end, why = await _find_end(comparer, probing)
    if last is not None and last < first:
        first, end, why = last, last - 1, f"first_block is {first_block}"
    last = max(first, end) if last is None else last
    heights = probing.heights(comparer.check.chain_id or 0)
    coverage = await _compare(comparer, first, min(last, end), heights, probing.session)
    not_compared = tuple(_list_unchecked(coverage, first, last, end, why))
    causes = ((name or "the list", side.cause) for name, side in comparer.outcomes.items())
    said = tuple(f"{who}: {describe_cause(cause)}" for who, cause in causes if cause)
    return CheckedRange(comparer.check, first, last, coverage, not_compared, said)


async def _find_end(comparer: Comparer, probing: Probing) -> tuple[int, str]:
    """The last block that can be compared, and why no later one."""
    check, clock = comparer.check, comparer.clock
    final = probing.ledger.final_block(check, clock.now())
    if final is None:
        return _NO_BLOCK, "the chain's RPC endpoints agree on no head"
    found = (await observe(comparer.source, probing.session, clock.now))[check]
    if not isinstance(found, Blocks):
        cause = f" ({describe_cause(found.error)})" if isinstance(found, Failed) else ""
        return _NO_BLOCK, f"the indexer does not say how far it is{cause}"
    end = min(final, found.position)
    return end, f"the last final block that the indexer has is {end}"


async def _compare(comparer: Comparer, first: int, end: int, heights: Mapping[str, int], session: Session) -> Coverage:
    """The looks of the monitor, on a clock that is set forward where the monitor would wait: what differs is looked at
    again at once, and what could not be compared is tried again a few seconds later."""
    facts = replace(comparer.facts(comparer.clock.now(), end, heights), first_block=first)
    coverage = Coverage(subject="", began_at=facts.now)
    ahead_ms = in_vain = 0
    while in_vain < _ROUNDS_IN_VAIN and not coverage.unusable:
        if not suspected_of(coverage) and not any(find_unchecked(coverage, first, end)):
            break
        await asyncio.sleep(_AFTER_ROUND_IN_VAIN_S if in_vain else 0)
        before = checked_blocks(coverage)
        while look := choose_look(coverage, replace(facts, now=facts.now + ahead_ms)):
            coverage = await comparer.drive(look, session)
        in_vain = 0 if checked_blocks(coverage) > before else in_vain + 1
        ahead_ms += _AHEAD_MS
    return coverage


def _list_unchecked(coverage: Coverage, first: int, last: int, end: int, why: str) -> Iterator[str]:
    for begin, until in find_unchecked(coverage, first, min(last, end)):
        waiting = (blocks for blocks in coverage.waiting if blocks.first <= until and begin <= blocks.last)
        yield f"blocks {begin} to {until}: {next((TROUBLE_WORDS[blocks.why] for blocks in waiting), why)}"
    if last > end:
        yield f"blocks {max(first, end + 1)} to {last}: {why}"
