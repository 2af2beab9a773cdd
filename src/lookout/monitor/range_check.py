"""A range of every list that has the table, compared with its chain now: what ``lookout coverage`` does (S17)."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lookout.base.clock import Clock
from lookout.config.settings import Settings, sources_of
from lookout.core.causes import describe_cause
from lookout.core.coverage import (
    TROUBLE_WORDS,
    Coverage,
    checked_blocks,
    find_unchecked,
    split_confirmed,
    suspected_of,
)
from lookout.core.heads import Heads, find_final_block
from lookout.core.looks import Facts, choose_look
from lookout.core.model import Blocks, Check, Failed
from lookout.core.plan import Plan
from lookout.monitor.comparer import Asker, Comparison, build_comparisons, rules_of
from lookout.monitor.heads import read_heads_once
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.source import observe

_BETWEEN_REQUESTS_MS: Final = 200
_ROUNDS_IN_VAIN: Final = 5
_AFTER_ROUND_IN_VAIN_S: Final = 3
_AHEAD_MS: Final = 30 * 60_000  # after which the monitor would try again whatever failed
_DAY_MS: Final = 86_400_000

ReportProgress = Callable[[Check, int, int], None]
"""Called with how many blocks of a check's list were compared, and how many there are."""


class Ends(NamedTuple):
    """The wanted range: by default from the configured first block to the last final one that the indexer has."""

    first: int | None = None
    last: int | None = None


class NotCompared(NamedTuple):
    first: int
    last: int
    why: str


class CheckedRange(Struct, frozen=True):
    """What a comparison found."""

    check: Check
    first: int
    last: int
    coverage: Coverage
    not_compared: tuple[NotCompared, ...]
    causes: tuple[str, ...] = ()
    """Who failed, and why."""

    @property
    def differs(self) -> bool:
        return any(split_confirmed(self.coverage))

    @property
    def is_whole(self) -> bool:
        return not suspected_of(self.coverage) and not self.not_compared and not self.coverage.unusable


async def check_ranges(
    settings: Settings,
    clock: Clock,
    ends: Ends,
    report: ReportProgress,
    open_session: Callable[[float], AbstractAsyncContextManager[Session]] = open_session,
) -> list[CheckedRange]:
    """All of them at the same time."""
    plan = settings.plan()
    comparisons = build_comparisons(settings.transaction_lists(), plan, sources_of(settings))
    async with open_session(settings.policy.probe_timeout_s) as session:
        checks = (_RangeCheck(comparison, session, clock, report) for comparison in comparisons)
        return await asyncio.gather(*(check.run(plan, ends) for check in checks))


class _RangeCheck:
    """The looks of the monitor, on a clock that is set forward where the monitor would wait: what differs is looked at
    again at once, and what could not be compared is tried again a few seconds later."""

    def __init__(self, comparison: Comparison, session: Session, clock: Clock, report: ReportProgress) -> None:
        self._comparison = comparison
        self._session = session
        self._clock = clock
        self._report = report
        self._causes: dict[str, str] = {}
        self._asker = Asker(comparison, clock, _BETWEEN_REQUESTS_MS, self._note)

    async def run(self, plan: Plan, ends: Ends) -> CheckedRange:
        check, table = self._comparison.check, self._comparison.list.table
        coverage = Coverage(subject="", began_at=self._clock.now())
        if ends.last is not None and ends.last < table.first_block:
            below = NotCompared(ends.first or 0, ends.last, f"first_block is {table.first_block}")
            return CheckedRange(check, below.first, below.last, coverage, (below,))
        first = max(table.first_block, ends.first or 0)
        heads = Heads(plan.chains[check.chain_id or 0])
        nodes, max_age_ms = tuple(self._comparison.endpoints.values()), plan.limits.head_max_age_ms
        read = await read_heads_once(nodes, heads, max_age_ms, self._session, self._clock)
        if read.head is None:
            no_head = NotCompared(first, ends.last or first, "the chain's RPC endpoints agree on no head")
            return CheckedRange(check, first, no_head.last, coverage, (no_head,))
        final = find_final_block(read.head.height, heads.pace(), self._comparison.confirmations)
        last = final if ends.last is None else min(final, ends.last)
        coverage, position = await self._compare(coverage, first, last, read.heights)
        end = ends.last
        if end is None:
            end = max(first, final if position is None else min(final, position))
        not_compared = tuple(_not_compared(coverage, first, end, final, position))
        checked = CheckedRange(check, first, end, coverage, not_compared)
        causes = (f"{who}: {describe_cause(cause)}" for who, cause in self._causes.items())
        return checked if checked.is_whole else replace(checked, causes=tuple(causes))

    async def _compare(
        self, coverage: Coverage, first: int, last: int, heights: dict[str, int]
    ) -> tuple[Coverage, int | None]:
        """All that is due, round by round; with the indexer's position."""
        check, position = self._comparison.check, None
        rules = rules_of(self._comparison.list.table)
        rules = replace(rules, first_block=first, newest_every_ms=0, follow_ms=_DAY_MS)
        ahead_ms, in_vain = 0, 0
        while True:
            found = (await observe(self._comparison.source, self._session, self._clock.now))[check]
            position = found.position if isinstance(found, Blocks) else None
            if isinstance(found, Failed):
                self._causes["the indexer"] = found.error
            before = coverage
            while True:
                self._report(check, checked_blocks(coverage), last - first + 1)
                facts = Facts(self._clock.now() + ahead_ms, last, position, heights)
                look = choose_look(coverage, rules, facts)
                if look is None:
                    break
                coverage = await self._asker.drive(look, self._session)
            is_done = position is not None and not any(find_unchecked(coverage, first, min(last, position)))
            if coverage.unusable or (is_done and not suspected_of(coverage)):
                return coverage, position
            has_advanced = checked_blocks(coverage) > checked_blocks(before) or split_confirmed(
                coverage
            ) != split_confirmed(before)
            in_vain = 0 if has_advanced else in_vain + 1
            if in_vain == _ROUNDS_IN_VAIN:
                return coverage, position
            if in_vain:
                await asyncio.sleep(_AFTER_ROUND_IN_VAIN_S)
            ahead_ms += _AHEAD_MS

    def _note(self, endpoint: str | None, cause: str | None) -> None:
        if cause is not None:
            self._causes[endpoint or "the list"] = cause


def _not_compared(coverage: Coverage, first: int, end: int, final: int, position: int | None) -> Iterator[NotCompared]:
    reached = first - 1 if position is None else min(final, position)
    for one, other in find_unchecked(coverage, first, min(end, reached)):
        waiting = (blocks for blocks in coverage.waiting if blocks.first <= other and one <= blocks.last)
        yield NotCompared(one, other, next((TROUBLE_WORDS[blocks.why] for blocks in waiting), "not reached"))
    if end > reached:
        why = f"the last final block is {final}" if reached == final else f"the indexer is at block {position}"
        if position is None:
            why = "the indexer does not say how far it is"
        yield NotCompared(max(first, reached + 1), end, why)
