"""A range of every list that has the table, compared with its chain now: what ``lookout coverage`` does (S17)."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
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
    Finding,
    checked_blocks,
    confirmed_of,
    find_unchecked,
    gaps_of,
)
from lookout.core.heads import Heads, Pace, find_final_block
from lookout.core.looks import Facts, Rules, choose_task, run_task
from lookout.core.model import Check, Failed
from lookout.core.plan import Limits
from lookout.monitor.comparer import Asker, Budget, Comparison, build_comparisons, rules_of
from lookout.monitor.heads import read_heads_once
from lookout.monitor.lists import Lists, Subjects
from lookout.protocols.client.failure import OwnFault
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.source import observe

_BETWEEN_REQUESTS_MS: Final = 200
_ROUNDS_IN_VAIN: Final = 5
_AFTER_ROUND_IN_VAIN_S: Final = 3
_AHEAD_MS: Final = 30 * 60_000  # after which the monitor would try again whatever failed
_DAY_MS: Final = 86_400_000

ReportProgress = Callable[[Check, int, int], None]
"""Called with how many blocks of a check's list were compared, and how many there are."""


class Ends(NamedTuple):
    """The ends of the range that is wanted. By default it is from the configured first block to the last that is
    final."""

    first: int | None = None
    last: int | None = None


class NotCompared(Struct, frozen=True):
    first: int
    last: int
    why: str


class CheckedRange(Struct, frozen=True):
    """What a comparison found. ``suspected`` differs, and could not be confirmed."""

    check: Check
    first: int
    last: int
    checked_blocks: int = 0
    missing: tuple[Finding, ...] = ()
    extra: tuple[Finding, ...] = ()
    suspected: tuple[Finding, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    causes: tuple[str, ...] = ()
    """Who failed, and why."""
    unusable: str = ""
    """Why nothing can be held against the list."""

    @property
    def differs(self) -> bool:
        return bool(self.missing or self.extra)

    @property
    def is_whole(self) -> bool:
        return not self.suspected and not self.not_compared and not self.unusable


class _Chain(NamedTuple):
    """Where it is now; ``head`` is None if its endpoints agree on none. ``allowance`` is by how many blocks an indexer
    may be behind and still be current (S3)."""

    head: int | None
    pace: Pace
    heights: dict[str, int]
    allowance: int


async def check_ranges(
    settings: Settings,
    clock: Clock,
    ends: Ends,
    report: ReportProgress,
    open_session: Callable[[float], AbstractAsyncContextManager[Session]] = open_session,
) -> list[CheckedRange]:
    """All of them at the same time."""
    plan, lists = settings.plan(), settings.transaction_lists()
    comparisons = build_comparisons(
        lists, plan, sources_of(settings), lambda _tables: Budget(clock, _BETWEEN_REQUESTS_MS)
    )
    async with open_session(settings.policy.probe_timeout_s) as session:
        endpoints = {each.chain_id: tuple(each.endpoints.values()) for each in comparisons}
        reading = (
            _read_chain(those, Heads(plan.chains[chain]), plan.limits, session, clock)
            for chain, those in endpoints.items()
        )
        chains = dict(zip(endpoints, await asyncio.gather(*reading), strict=True))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_RangeCheck(each, chains[each.chain_id], session, clock, report).run(ends))
                for each in comparisons
            ]
    return [task.result() for task in tasks]


async def _read_chain(
    endpoints: Sequence[EvmEndpoint], heads: Heads, limits: Limits, session: Session, clock: Clock
) -> _Chain:
    pace = heads.pace()
    allowance = max(limits.allowance_blocks, limits.allowance_ms * pace.blocks // pace.ms)
    read = await read_heads_once(endpoints, heads, limits.head_max_age_ms, session, clock)
    return _Chain(None if read.head is None else read.head.height, pace, read.heights, allowance)


class _RangeCheck:
    """The looks of the monitor, on a clock that is set forward where the monitor would wait: what differs is looked at
    again at once, and what could not be compared is tried again a few seconds later."""

    def __init__(
        self, comparison: Comparison, chain: _Chain, session: Session, clock: Clock, report: ReportProgress
    ) -> None:
        self._comparison = comparison
        self._chain = chain
        self._session = session
        self._clock = clock
        self._report = report
        self._ahead_ms = 0
        self._causes: dict[str, str] = {}

    async def run(self, ends: Ends) -> CheckedRange:
        comparison, chain = self._comparison, self._chain
        table, check = comparison.list.table, comparison.check
        final = None if chain.head is None else find_final_block(chain.head, chain.pace, comparison.confirmations)
        if ends.last is not None and ends.last < table.first_block:
            return _compared_nothing(check, ends.first or 0, ends.last, f"first_block is {table.first_block}")
        first = max(table.first_block, ends.first or 0)
        if final is None or final < first:
            why = (
                f"the last final block is {final}"
                if final is not None
                else "the chain's RPC endpoints agree on no head"
            )
            return _compared_nothing(check, first, first if ends.last is None else ends.last, why)
        end = final if ends.last is None else ends.last
        rules = replace(rules_of(table), first_block=first, newest_every_ms=0, follow_ms=_DAY_MS)
        lists = Lists()
        lists.follow(Subjects({check: ""}), self._now())
        furthest, in_vain = 0, 0
        while True:
            await self._compare(lists, rules, min(end, final))
            coverage, position = lists.coverage(check), lists.position(check)
            is_done = position is not None and not any(find_unchecked(coverage, first, min(end, final, position)))
            if coverage.unusable or (is_done and not _suspected(coverage)):
                break
            progress = checked_blocks(coverage) + gaps_of(coverage).missing + gaps_of(coverage).extra
            in_vain = 0 if progress > furthest else in_vain + 1
            if in_vain == _ROUNDS_IN_VAIN:
                break
            if in_vain:
                await asyncio.sleep(_AFTER_ROUND_IN_VAIN_S)
            furthest = max(progress, furthest)
            self._ahead_ms += _AHEAD_MS
        position = lists.position(check)
        if ends.last is None and position is not None and final - position <= chain.allowance:
            end = min(final, position)  # it is as far as it should be
        return self._sum_up(lists, first, end, final)

    def _now(self) -> int:
        return self._clock.now() + self._ahead_ms

    async def _compare(self, lists: Lists, rules: Rules, end: int) -> None:
        """All that is due."""
        comparison, check = self._comparison, self._comparison.check
        asker = Asker(comparison, self._session, self._now, self._note, lambda found: lists.hear(check, found))
        try:
            found = (await observe(comparison.source, self._session, self._now))[check]
            lists.hear(check, found)
            if isinstance(found, Failed):
                self._causes["the indexer"] = found.error
            while True:
                coverage = lists.coverage(check)
                self._report(check, checked_blocks(coverage), end - rules.first_block + 1)
                facts = Facts(self._now(), end, lists.position(check), self._chain.heights)
                task = choose_task(coverage, rules, facts)
                if task is None:
                    return
                lists.begin_look(check)
                lists.end_look(check, await asker.drive(run_task(task, coverage, rules, facts)))
        except OwnFault as fault:
            self._causes["this machine"] = fault.cause

    def _note(self, endpoint: str | None, cause: str | None) -> None:
        if cause is not None:
            self._causes[endpoint or "the list"] = cause

    def _sum_up(self, lists: Lists, first: int, end: int, final: int) -> CheckedRange:
        check = self._comparison.check
        coverage, position = lists.coverage(check), lists.position(check)
        whole = CheckedRange(
            check,
            first,
            end,
            checked_blocks(coverage),
            tuple(finding for finding in confirmed_of(coverage) if finding.logged > finding.listed),
            tuple(finding for finding in confirmed_of(coverage) if finding.listed > finding.logged),
            _suspected(coverage),
            tuple(_not_compared(coverage, first, end, final, position)),
            unusable=coverage.unusable,
        )
        if whole.is_whole:
            return whole
        return replace(whole, causes=tuple(f"{who}: {describe_cause(cause)}" for who, cause in self._causes.items()))


def _compared_nothing(check: Check, first: int, last: int, why: str) -> CheckedRange:
    return CheckedRange(check, first, last, not_compared=(NotCompared(first, last, why),))


def _suspected(coverage: Coverage) -> tuple[Finding, ...]:
    return tuple(finding for finding in coverage.findings.values() if not finding.is_confirmed)


def _not_compared(coverage: Coverage, first: int, end: int, final: int, position: int | None) -> Iterator[NotCompared]:
    reached = final if position is None else min(final, position)
    for one, other in find_unchecked(coverage, first, min(end, reached)):
        why = next(
            (TROUBLE_WORDS[each.why] for each in coverage.waiting if each.first <= other and one <= each.last), ""
        )
        no_position = "the indexer does not say how far it is" if position is None else "too few endpoints have them"
        yield NotCompared(one, other, why or no_position)
    if end > max(first - 1, reached):
        why = "they are not final yet" if reached == final else f"the indexer is at block {position}"
        yield NotCompared(max(first, reached + 1), end, why)
