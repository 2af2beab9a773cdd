"""Asks all sources and endpoints, and whatever features ask, independently (M1, M2, M6, M11, M12, M17)."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, NoReturn

from msgspec import Struct

from lookout.base.clock import Clock
from lookout.base.instants import parse_http_date
from lookout.base.logger import get_logger
from lookout.config.settings import Upstreams
from lookout.core.causes import code_of, describe_cause, find_doubts
from lookout.core.model import Blocks, Failed, Found, Members
from lookout.core.own_clock import OwnClock
from lookout.core.plan import Limits
from lookout.features.feature import Job
from lookout.features.outcome import EntryKey, RowOutcome, chain_label
from lookout.monitor.board import describe_rows
from lookout.monitor.heads import FollowedChains
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import OwnFault, own_fault
from lookout.protocols.client.session import Session
from lookout.protocols.source import Source, observe

_AGAIN_MS: Final = 10_000  # shortest time between probes that an operator asks for

log = get_logger()


class Rechecked(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result for one source. ``isAsked`` is false if it is being probed, or was a moment ago. ``notAsked`` says why
    the probe ended without asking: a fault of the monitor's own, or a bug."""

    name: str
    is_asked: bool
    rows: tuple[RowOutcome, ...]
    not_asked: str = ""


class _Turn:
    """The wait between two probes of a source; a recheck ends it."""

    def __init__(self) -> None:
        self.began_ms = 0  # of the last probe
        self.done = asyncio.Event()
        self._ended = asyncio.Event()

    async def rest(self, wait_s: float) -> None:
        self.done.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._ended.wait()
        self._ended.clear()

    def end_rest(self) -> None:
        self.done.clear()
        self._ended.set()


class Watcher:
    """Runs one task per source, per endpoint and per job of a feature."""

    def __init__(
        self,
        upstreams: Upstreams,
        journal: Journal,
        limits: Limits,
        clock: Clock,
        instruments: Instruments,
        chance: Random,
    ) -> None:
        self._own_clock = OwnClock()
        self._sources = upstreams.sources
        self._journal = journal
        self._limits = limits
        self._clock = clock
        self._instruments = instruments
        self._chance = chance
        self._chains = FollowedChains(upstreams.endpoints, journal, self._own_clock, limits, clock, instruments, chance)
        self._is_exhausted = False  # a local resource ran out
        self._woken = asyncio.Event()
        self._turns: dict[str, _Turn] = {}  # by source name
        self.heights = self._chains.heights

    async def run(self, session: Session) -> None:
        session = replace(session, hear_date=self._hear_date)
        while True:
            self._woken.clear()
            await self._ask_until_woken(session)

    @asynccontextmanager
    async def asked_once(self, session: Session) -> AsyncIterator[None]:
        """Ask everything once, as after a start; what endpoints agree on holds inside the block."""
        self._chains.begin()
        try:
            async with asyncio.TaskGroup() as group:
                for job in self._jobs():
                    group.create_task(self._ask(job, session))
            yield
        finally:
            self._chains.end()

    def judge_own_clock(self) -> int | None:
        """The error of this machine's clock, 0 if it is right; None while unknown (M17)."""
        return self._own_clock.verdict_ms(self._clock.elapsed_ms())

    def wake(self) -> None:
        """The clock was set: drop answers under way, and ask every source again, spread over the jitter (M12)."""
        self._own_clock.forget()
        self._woken.set()

    async def recheck(self, services: Collection[str], chains: Collection[int]) -> list[Rechecked]:
        """Probe the sources of these services and chains now, ignoring back-off, but none twice in 10 s."""
        meant = [source for source in self._sources if any(check.is_among(services, chains) for check in source.checks)]
        asked: list[_Turn] = []
        for source in meant:
            turn = self._turns.get(source.name)
            if turn is not None and turn.done.is_set() and self._clock.elapsed_ms() - turn.began_ms >= _AGAIN_MS:
                turn.end_rest()
                asked.append(turn)
        for turn in asked:
            await turn.done.wait()
        return [self._describe_recheck(source, is_asked=self._turns.get(source.name) in asked) for source in meant]

    def _describe_recheck(self, source: Source, *, is_asked: bool) -> Rechecked:
        rows = map(self._journal.ledger.newest_row, source.checks)
        outcomes = describe_rows(rows, self._journal.causes, self._clock.now())
        return Rechecked(source.name, is_asked, outcomes, self._instruments.board.describe_own_failure(source.name))

    async def _ask_until_woken(self, session: Session) -> None:
        """Run all tasks, with the chains as if after a start, until the clock was set."""
        self._chains.begin()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._keep_asking(job, session)) for job in self._jobs()]
                await self._woken.wait()
                for task in tasks:
                    task.cancel()
        finally:
            self._chains.end()
            for turn in self._turns.values():
                turn.done.set()  # wakes a recheck if a reload or a set clock cancels the task

    def _jobs(self) -> Iterator[Job]:
        for source in self._sources:
            turn = self._turns[source.name] = _Turn()
            first_wait_s = self._chance.random() * self._limits.jitter_ms / 1000
            yield Job(EntryKey("source", source.name), partial(self._probe, source, turn), turn.rest, first_wait_s)
        yield from self._chains.jobs()
        for feature in self._journal.features:
            yield from feature.jobs()

    async def _keep_asking(self, job: Job, session: Session) -> NoReturn:
        """Ask repeatedly, after the waits that asking returns. A bug in one job stops no other (M11)."""
        await asyncio.sleep(job.first_wait_s)
        clock = self._clock
        while True:
            next_ms = await self._ask(job, session)
            due_ms = clock.elapsed_ms() + next_ms
            await job.rest(next_ms / 1000)
            self._instruments.measure("lookout_scheduler_delay_seconds", clock.elapsed_ms() - due_ms)

    async def _ask(self, job: Job, session: Session) -> int:
        """Ask once; return the wait until the next time in milliseconds."""
        began_ms = self._clock.elapsed_ms()
        try:
            next_ms = await job.ask(session)
        except Exception as error:  # noqa: BLE001  it is noted with its traceback
            self._note_own_failure(job.key, began_ms, error)
            return self._limits.recheck_ms
        if self._is_exhausted and not self._instruments.is_exhausted(self._limits.recheck_ms):
            log.info("the monitor's own fault is over")
            self._is_exhausted = False
        return next_ms

    async def _probe(self, source: Source, turn: _Turn, session: Session) -> int:
        """Probe a source, and judge its answers; return the wait until the next probe in milliseconds."""
        began_ms = turn.began_ms = self._clock.elapsed_ms()
        ends: list[int] = []
        found = await observe(source, replace(session, hear_certificate=ends.append), self._clock.now)
        self._require_observation(began_ms, found.values())
        self._note_doubts(source.name, found.values(), ends)
        took_ms = self._clock.elapsed_ms() - began_ms
        self._instruments.count_probe(source.checks, took_ms, found)
        for check, outcome in found.items():
            if isinstance(outcome, Blocks):
                # After a start a position waits for a head, but no longer than a probe lasts (M12).
                await self._chains.wait_for_head(check.chain_id)
        rows = [self._journal.observe(check, outcome) for check, outcome in found.items()]
        causes = self._journal.causes
        for row in rows:
            if row.has_failed and (cause := causes.get(row.check)):
                labels = row.check.service, chain_label(row.check), code_of(cause)
                self._instruments.count("lookout_probe_failures_total", *labels)
        self._instruments.board.note_source(source.name, self._clock.now(), took_ms, rows, causes)
        failures = min(self._journal.ledger.failures(check) for check in source.checks)
        return self._limits.wait_ms(failures, self._chance.random())

    def _require_observation(self, began_ms: int, found: Iterable[Found]) -> None:
        """OwnFault if the probe is no observation: the event loop stood still meanwhile, or announcements were compared
        with a wrong clock (M17)."""
        self._journal.timeline.check_for_stall(began_ms)
        if self._own_clock.is_suspected and any(isinstance(outcome, Members) for outcome in found):
            raise OwnFault("clock")

    def _note_doubts(self, source: str, found: Iterable[Found], ends: list[int]) -> None:
        """Show and log faults of a source that no row shows. A failed probe changes none."""
        board = self._instruments.board
        if ends:
            board.certificates_end_at[source] = min(ends)
        if all(isinstance(outcome, Failed) for outcome in found):
            return
        doubts = find_doubts(found, board.certificates_end_at.get(source), self._clock.now())
        for doubt in board.note_doubts(source, doubts):
            log.warning("something is wrong with a source", source=source, cause=doubt, why=describe_cause(doubt))

    def _note_own_failure(self, key: EntryKey, began_ms: int, error: Exception) -> None:
        """Something could not be asked, because of a fault of the monitor's own or a bug: no observation, and no change
        of a result (M11, M17). The error is being handled."""
        fault, instruments = own_fault(error), self._instruments
        if fault is None:
            instruments.count("lookout_probe_bugs_total")
            log.exception("a probe crashed", source=key.name)
        else:
            instruments.count_own_fault(fault.lacking)
            if fault.lacking == "time":  # already over
                log.warning("a probe was left out: the monitor stood still meanwhile")
            elif not self._is_exhausted:  # logged once for all that is asked
                why = {"error": str(fault), "lacking": fault.lacking}
                log.error("a fault of the monitor's own; rows age until it ends", **why)
                self._is_exhausted = True
        took_ms = self._clock.elapsed_ms() - began_ms
        instruments.board.note_own_failure(key, self._clock.now(), took_ms, None if fault is None else fault.cause)

    def _hear_date(self, host: str, date: str) -> None:
        """Compare our clock with the `Date` header of an answer."""
        with suppress(ValueError):  # the header is missing, or no date
            self._own_clock.hear(host, self._clock.now() - parse_http_date(date), self._clock.elapsed_ms())
