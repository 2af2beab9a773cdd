"""Asks all sources and endpoints, and whatever features ask, independently (M1, M2, M6, M11, M12, M17)."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, NoReturn

from msgspec import Struct

from lookout.base.clock import Clock
from lookout.base.instants import parse_http_date
from lookout.config.settings import Upstreams
from lookout.core.own_clock import OwnClock
from lookout.core.plan import Limits
from lookout.features.feature import Job
from lookout.features.outcome import EntryKey, RowOutcome
from lookout.monitor.board import describe_rows
from lookout.monitor.heads import Asking, FollowedChains
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.monitor.own_faults import OwnFaults
from lookout.monitor.prober import Prober
from lookout.protocols.client.session import Session
from lookout.protocols.source import Source

_AGAIN_MS: Final = 10_000  # shortest time between probes that an operator asks for


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
        asking = Asking(journal, self._own_clock, limits, clock, instruments, chance)
        self._chains = FollowedChains(upstreams.endpoints, asking)
        self._prober = Prober(self._chains, asking)
        self._own_faults = OwnFaults(limits, clock, instruments)
        self._woken = asyncio.Event()
        self._turns: dict[str, _Turn] = {}  # by source name
        self.heights = self._chains.heights

    async def run(self, session: Session) -> None:
        session = replace(session, hear_date=self._hear_date)
        while True:
            self._woken.clear()
            await self._ask_until_woken(session)

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

    async def _probe(self, source: Source, turn: _Turn, session: Session) -> int:
        turn.began_ms = self._clock.elapsed_ms()
        return await self._prober.probe(source, session)

    async def _keep_asking(self, job: Job, session: Session) -> NoReturn:
        """Ask repeatedly, after the waits that asking returns. A bug in one job stops no other (M11)."""
        await asyncio.sleep(job.first_wait_s)
        clock = self._clock
        while True:
            began_ms = clock.elapsed_ms()
            try:
                next_ms = await job.ask(session)
            except Exception as error:  # noqa: BLE001  it is noted with its traceback
                self._own_faults.note(job.key, began_ms, error)
                next_ms = self._limits.recheck_ms
            else:
                self._own_faults.note_success()
            due_ms = clock.elapsed_ms() + next_ms
            await job.rest(next_ms / 1000)
            self._instruments.measure("lookout_scheduler_delay_seconds", clock.elapsed_ms() - due_ms)

    def _hear_date(self, host: str, date: str) -> None:
        """Compare our clock with the `Date` header of an answer."""
        with suppress(ValueError):  # the header is missing, or no date
            self._own_clock.hear(host, self._clock.now() - parse_http_date(date), self._clock.elapsed_ms())
