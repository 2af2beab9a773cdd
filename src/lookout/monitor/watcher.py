"""Asks all sources and endpoints, and whatever features ask, independently (M1, M2, M6, M11, M12, M17)."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
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
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Failed, Found, Members, Status
from lookout.core.own_clock import OwnClock
from lookout.core.plan import Limits
from lookout.features.feature import Job
from lookout.features.outcome import EntryKey, RowOutcome
from lookout.monitor.board import describe_rows
from lookout.monitor.heads import FollowedChain
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.protocols.client.failure import OwnFault, ProbeFailed, own_fault
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Source, observe

_READS_PER_RECHECK: Final = 2  # of an endpoint
_AGAIN_MS: Final = 10_000  # shortest time between probes that an operator asks for

# What is logged when a fault of an endpoint begins, and when it ends.
_FAULTS: Final[dict[Status, tuple[str, str]]] = {
    "unavailable": ("an endpoint fails", "the endpoint answers again"),
    "degraded": ("an endpoint is apart from the head", "the endpoint agrees with the others again"),
}

log = get_logger()


class Rechecked(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The result for one source. ``isAsked`` is false if it is being probed, or was a moment ago. ``notAsked`` says why
    the probe ended without asking: a fault of the monitor's own, or a bug."""

    name: str
    is_asked: bool
    rows: tuple[RowOutcome, ...]
    not_asked: str = ""


class _Pause:
    """The pause between two probes of a source; a recheck ends it."""

    def __init__(self) -> None:
        self.began_ms = 0  # of the last probe
        self.resting = asyncio.Event()
        self._ended = asyncio.Event()

    async def rest(self, wait_s: float) -> None:
        self.resting.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._ended.wait()
        self._ended.clear()

    def end_rest(self) -> None:
        self.resting.clear()
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
        self._endpoints: dict[int, list[Endpoint]] = defaultdict(list)
        for endpoint in upstreams.endpoints:
            self._endpoints[endpoint.chain_id].append(endpoint)
        self._chains: dict[int | None, FollowedChain] = {}
        self._bad: dict[EntryKey, Status] = {}  # endpoints
        self._journal = journal
        self._limits = limits
        self._clock = clock
        self._instruments = instruments
        self._chance = chance
        self._is_exhausted = False  # a local resource ran out
        self._woken = asyncio.Event()
        self._pauses: dict[str, _Pause] = {}  # by source name

    async def run(self, session: Session) -> None:
        session = replace(session, hear_date=self._hear_date)
        while True:
            self._woken.clear()
            await self._ask_until_woken(session)

    @asynccontextmanager
    async def asked_once(self, session: Session) -> AsyncIterator[None]:
        """Ask everything once, as after a start; what endpoints agree on holds inside the block."""
        with self._following_chains():
            async with asyncio.TaskGroup() as group:
                for job in self._jobs():
                    group.create_task(self._ask(job, session))
            yield

    def heights(self, chain_id: int) -> dict[str, int]:
        """The heights of the endpoints that agree on the chain's head, by name."""
        return self._chains[chain_id].heights()

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
        asked: list[_Pause] = []
        for source in meant:
            pause = self._pauses.get(source.name)
            if pause is not None and pause.resting.is_set() and self._clock.elapsed_ms() - pause.began_ms >= _AGAIN_MS:
                pause.end_rest()
                asked.append(pause)
        for pause in asked:
            await pause.resting.wait()
        return [self._describe_recheck(source, is_asked=self._pauses.get(source.name) in asked) for source in meant]

    def _describe_recheck(self, source: Source, *, is_asked: bool) -> Rechecked:
        rows = map(self._journal.ledger.newest_row, source.checks)
        outcomes = describe_rows(rows, self._journal.causes, self._clock.now())
        return Rechecked(source.name, is_asked, outcomes, self._instruments.board.describe_own_failure(source.name))

    async def _ask_until_woken(self, session: Session) -> None:
        """Run all tasks, with the chains as if after a start, until the clock was set."""
        try:
            with self._following_chains():
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._keep_asking(job, session)) for job in self._jobs()]
                    await self._woken.wait()
                    for task in tasks:
                        task.cancel()
        finally:
            for pause in self._pauses.values():
                pause.resting.set()  # wakes a recheck if a reload or a set clock cancels the task

    @contextmanager
    def _following_chains(self) -> Iterator[None]:
        """Forget all answers of endpoints, as after a start, and let them agree inside the block."""
        board = self._instruments.board
        for chain_id, endpoints in self._endpoints.items():
            self._chains[chain_id] = FollowedChain(endpoints, self._limits, self._journal, self._clock, board)
        try:
            yield
        finally:
            for chain in self._chains.values():
                chain.end()

    def _jobs(self) -> Iterator[Job]:
        for source in self._sources:
            pause = self._pauses[source.name] = _Pause()
            first_wait_s = self._chance.random() * self._limits.jitter_ms / 1000
            yield Job(EntryKey("source", source.name), partial(self._probe, source, pause), pause.rest, first_wait_s)
        for chain_id, endpoints in self._endpoints.items():
            for number, endpoint in enumerate(endpoints):
                key = EntryKey("endpoint", endpoint.name, chain_id)
                first_wait_s = self._chance.random() * self._limits.jitter_ms / _READS_PER_RECHECK / 1000
                yield Job(key, partial(self._read, endpoint, number, key), first_wait_s=first_wait_s)
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

    async def _probe(self, source: Source, pause: _Pause, session: Session) -> int:
        """Probe a source, and judge its answers; return the wait until the next probe in milliseconds."""
        began_ms = pause.began_ms = self._clock.elapsed_ms()
        ends: list[int] = []
        found = await observe(source, replace(session, hear_certificate=ends.append), self._clock.now)
        self._require_observation(began_ms, found.values())
        self._note_doubts(source.name, found.values(), ends)
        took_ms = self._clock.elapsed_ms() - began_ms
        self._instruments.count_probe(source.checks, took_ms, found)
        for check, outcome in found.items():
            if isinstance(outcome, Blocks) and check.chain_id in self._chains:
                # After a start a position waits for a head, but no longer than a probe lasts (M12).
                await self._chains[check.chain_id].has_head.wait()
        rows = [self._journal.record_probe(check, outcome) for check, outcome in found.items()]
        self._instruments.board.note_source(source.name, self._clock.now(), took_ms, rows, self._journal.causes)
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

    async def _read(self, endpoint: Endpoint, number: int, key: EntryKey, session: Session) -> int:
        """Read an endpoint's head; return the wait until the next reading in milliseconds."""
        chain_id, began_ms = endpoint.chain_id, self._clock.elapsed_ms()
        try:
            answer: Reading | ProbeFailed = await endpoint.read(session, self._clock.now)
        except ProbeFailed as failure:
            answer = failure
        took_ms = self._clock.elapsed_ms() - began_ms
        self._journal.timeline.check_for_stall(began_ms)
        found = self._chains[chain_id].enter(number, answer)
        if (head := self._journal.ledger.heads(chain_id).newest_of_run) is not None:
            # The agreed head, since a single endpoint's block may be a lie.
            self._own_clock.hear(f"chain {chain_id}", head.at - head.block_at, self._clock.elapsed_ms())
        self._note_reading(key, chain_id, found, took_ms)
        return int((self._limits.recheck_ms + self._chance.random() * self._limits.jitter_ms) / _READS_PER_RECHECK)

    def _note_reading(self, key: EntryKey, chain_id: int, found: Reading | str, took_ms: int) -> None:
        """Show a reading to the operator, and log where an endpoint's fault begins and ends; faults that go on at
        debug."""
        at, about = self._clock.now(), {"endpoint": key.name, "chain": chain_id}
        cause = found if isinstance(found, str) else None
        self._instruments.count_reading(chain_id, key.name, took_ms, None if cause is None else code_of(cause))
        head = self._journal.ledger.progress_of(chain_id, at).head
        self._instruments.board.note_reading(key, at, took_ms, found, head)
        verdict, was = self._instruments.board.judge(key), self._bad.get(key)
        if verdict.cause is not None:
            self._bad[key] = verdict.status
            report = log.debug if was == verdict.status else log.warning
            report(_FAULTS[verdict.status][0], **about, cause=verdict.cause, why=describe_cause(verdict.cause))
        elif was == "unavailable" or (was and verdict.status == "current"):  # without a head it may still be apart
            log.info(_FAULTS[self._bad.pop(key)][1], **about)

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
        instruments.board.note_own_failure(key, self._clock.now(), took_ms, None if fault is None else fault.reason)

    def _hear_date(self, host: str, date: str) -> None:
        """Compare our clock with the `Date` header of an answer."""
        with suppress(ValueError):  # the header is missing, or no date
            self._own_clock.hear(host, self._clock.now() - parse_http_date(date), self._clock.elapsed_ms())
