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
from lookout.core.looks import Facts, Rules, choose_look
from lookout.core.model import Blocks, Check, Failed
from lookout.core.plan import Plan
from lookout.monitor.comparer import Asker, Budget, Comparison, build_comparisons
from lookout.monitor.heads import read_heads_once
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.source import observe

_BETWEEN_REQUESTS_MS: Final = 200
_ROUNDS_IN_VAIN: Final = 5
_AFTER_ROUND_IN_VAIN_S: Final = 3
_AHEAD_MS: Final = 30 * 60_000  # after which the monitor would try again whatever failed

ReportProgress = Callable[[Check, int, int], None]
"""Called with how many blocks of a check's list were compared, and how many there are."""


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
    first: int | None,
    last: int | None,
    report: ReportProgress,
    open_session: Callable[[float], AbstractAsyncContextManager[Session]] = open_session,
) -> list[CheckedRange]:
    """All of them at the same time, by default from the configured first block to the last final one that the indexer
    has."""
    plan = settings.plan()
    async with open_session(settings.policy.probe_timeout_s) as session:
        comparisons = build_comparisons(settings.transaction_lists(), sources_of(settings))
        checks = (_RangeCheck(comparison, session, clock, report) for comparison in comparisons)
        return await asyncio.gather(*(check.run(plan, first, last) for check in checks))


class _RangeCheck:
    """The looks of the monitor, on a clock that is set forward where the monitor would wait: what differs is looked at
    again at once, and what could not be compared is tried again a few seconds later."""

    def __init__(self, comparison: Comparison, session: Session, clock: Clock, report: ReportProgress) -> None:
        self._comparison = comparison
        self._session = session
        self._clock = clock
        self._report = report
        self._causes: dict[str, str] = {}
        self._asker = Asker(comparison, Budget(clock, _BETWEEN_REQUESTS_MS), clock, self._note)

    async def run(self, plan: Plan, first: int | None, end: int | None) -> CheckedRange:
        check, rules = self._comparison.check, self._comparison.rules()
        first, clock = max(rules.first_block, first or 0), self._clock
        coverage, position = Coverage(subject="", began_at=clock.now()), None
        if end is not None and end < first:
            below = NotCompared(end, end, f"first_block is {rules.first_block}")
            return CheckedRange(check, end, end, coverage, (below,))
        heads = Heads(plan.chains[check.chain_id or 0])
        nodes, max_age_ms = tuple(self._comparison.endpoints.values()), plan.limits.head_max_age_ms
        read = await read_heads_once(nodes, heads, max_age_ms, self._session, clock)
        if read.head is None:
            where = "the chain's RPC endpoints agree on no head"
            final = first - 1
        else:
            final = find_final_block(read.head.height, heads.pace(), plan.confirmations[check])
            where = f"the last final block is {final}"
            last = final if end is None else min(final, end)
            coverage, position = await self._compare(replace(rules, first_block=first), coverage, last, read.heights)
            if position is None:
                where = "the indexer does not say how far it is"
            elif position < final:
                final, where = position, f"the indexer is at block {position}"
        end = max(first, final) if end is None else end
        not_compared = tuple(_not_compared(coverage, first, end, final, where))
        return CheckedRange(check, first, end, coverage, not_compared, tuple(self._causes.values()))

    async def _compare(
        self, rules: Rules, coverage: Coverage, last: int, heights: dict[str, int]
    ) -> tuple[Coverage, int | None]:
        """Round by round all that is due; with the indexer's position."""
        comparison, session, clock = self._comparison, self._session, self._clock
        check, first = comparison.check, rules.first_block
        ahead_ms = in_vain = 0
        while True:
            found = (await observe(comparison.source, session, clock.now))[check]
            if isinstance(found, Failed):
                self._note("the indexer", found.error)
            position, before = found.position if isinstance(found, Blocks) else None, coverage
            while look := choose_look(coverage, rules, Facts(clock.now() + ahead_ms, last, position, heights)):
                coverage = await self._asker.drive(look, session)
                self._report(check, checked_blocks(coverage), last - first + 1)
            is_read = position is not None and not any(find_unchecked(coverage, first, min(last, position)))
            has_ended = coverage.unusable or (is_read and not suspected_of(coverage))
            in_vain = 0 if _progress(coverage) > _progress(before) else in_vain + 1
            if has_ended or in_vain == _ROUNDS_IN_VAIN:
                return coverage, position
            await asyncio.sleep(_AFTER_ROUND_IN_VAIN_S if in_vain else 0)
            ahead_ms += _AHEAD_MS

    def _note(self, who: str | None, cause: str | None) -> None:
        if cause is not None:
            self._causes[who or ""] = f"{who or 'the list'}: {describe_cause(cause)}"


def _progress(coverage: Coverage) -> int:
    return checked_blocks(coverage) + sum(map(len, split_confirmed(coverage)))


def _not_compared(coverage: Coverage, first: int, end: int, reached: int, where: str) -> Iterator[NotCompared]:
    for one, other in find_unchecked(coverage, first, min(end, reached)):
        waiting = (blocks for blocks in coverage.waiting if blocks.first <= other and one <= blocks.last)
        yield NotCompared(one, other, next((TROUBLE_WORDS[blocks.why] for blocks in waiting), where))
    if end > reached:
        yield NotCompared(max(first, reached + 1), end, where)
