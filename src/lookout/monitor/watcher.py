"""Asks all sources and endpoints, and compares all lists, independently (M1, M2, M6, M11, M12, M17)."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
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
from lookout.monitor.board import EntryKey, RowOutcome, describe_rows
from lookout.monitor.comparer import Comparer
from lookout.monitor.heads import FollowedChain, HeadAnswer, read_endpoint
from lookout.monitor.journal import Journal
from lookout.monitor.list_readers import EntryCounter, LinkReader, ListReader
from lookout.monitor.lists import Subjects
from lookout.monitor.metrics import Instruments, chain_label
from lookout.protocols.client.failure import OwnFault, own_fault
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Source, observe

EXHAUSTED_RECHECKS: Final = 2  # a local fault counts as over after this many waits without one
_READS_PER_RECHECK: Final = 2  # of an endpoint
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
    """Runs one task per source, endpoint and compared list."""

    def __init__(
        self,
        upstreams: Upstreams,
        journal: Journal,
        limits: Limits,
        clock: Clock,
        instruments: Instruments,
        comparers: tuple[Comparer, ...],
        list_readers: tuple[ListReader, ...],
        chance: Random,
    ) -> None:
        self.own_clock = OwnClock()
        self._upstreams = upstreams
        self._journal = journal
        self._limits = limits
        self._clock = clock
        self._instruments = instruments
        self._comparers = comparers
        self._list_readers = list_readers
        self._chance = chance
        self._woken = asyncio.Event()
        self._chains: dict[int, FollowedChain] = {}
        self._turns: dict[str, _Turn] = {}  # by source name
        self._failing: set[EntryKey] = set()  # endpoints
        self._exhausted = False  # a local resource ran out (M17)

    async def run(self, session: Session) -> None:
        self._session = replace(session, hear_date=self._hear_date)
        while True:
            self._woken.clear()
            await self._ask_until_woken()

    def set_read_lists(self) -> None:
        """Make the journal drop findings about lists that are no longer compared."""
        subjects = Subjects(
            {comparer.check: comparer.subject for comparer in self._comparers},
            {reader.check: reader.subject for reader in self._list_readers if isinstance(reader, LinkReader)},
            {reader.node: reader.subject for reader in self._list_readers if isinstance(reader, EntryCounter)},
        )
        self._journal.set_read_lists(subjects)

    def judge_own_clock(self) -> int | None:
        """The error of this machine's clock, 0 if it is right; None while unknown (M17)."""
        return self.own_clock.verdict_ms(self._clock.elapsed_ms())

    def wake(self) -> None:
        """The clock was set: drop answers under way, and ask every source again, spread over the jitter (M12)."""
        self.own_clock.forget()
        self._woken.set()

    async def recheck(self, services: Collection[str], chains: Collection[int]) -> list[Rechecked]:
        """Probe the sources of these services and chains now, ignoring back-off, but none twice in 10 s."""
        sources = self._upstreams.sources
        meant = [source for source in sources if any(check.is_among(services, chains) for check in source.checks)]
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

    async def _ask_until_woken(self) -> None:
        """Run all tasks, with the chains as if after a start, until the clock was set."""
        by_chain: dict[int, list[Endpoint]] = defaultdict(list)
        for endpoint in self._upstreams.endpoints:
            by_chain[endpoint.chain_id].append(endpoint)
        board = self._instruments.board
        for chain_id, endpoints in by_chain.items():
            chain = FollowedChain(endpoints, self._limits.head_max_age_ms, self._journal, self._clock, board)
            chain.wait_for_all(self._limits.probe_timeout_ms)
            self._chains[chain_id] = chain
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    *(group.create_task(self._watch(source)) for source in self._upstreams.sources),
                    *(
                        group.create_task(self._follow(endpoint, number))
                        for endpoints in by_chain.values()
                        for number, endpoint in enumerate(endpoints)
                    ),
                    *(group.create_task(self._compare(comparer)) for comparer in self._comparers),
                    *(group.create_task(self._read_list(reader)) for reader in self._list_readers),
                ]
                await self._woken.wait()
                for task in tasks:
                    task.cancel()
        finally:
            for chain in self._chains.values():
                chain.end()

    async def _watch(self, source: Source) -> NoReturn:
        turn = self._turns[source.name] = _Turn()
        await asyncio.sleep(self._chance.random() * self._limits.jitter_ms / 1000)
        try:
            await self._keep_asking(EntryKey("source", source.name), partial(self._probe, source, turn), turn.rest)
        finally:
            turn.done.set()  # wakes a recheck if a reload or a set clock cancels this task

    async def _follow(self, endpoint: Endpoint, number: int) -> NoReturn:
        await asyncio.sleep(self._chance.random() * self._limits.jitter_ms / _READS_PER_RECHECK / 1000)
        key = EntryKey("endpoint", endpoint.name, endpoint.chain_id)
        await self._keep_asking(key, partial(self._read, endpoint, number, key))

    async def _compare(self, comparer: Comparer) -> NoReturn:
        async def look() -> int:
            heights = self._chains[comparer.check.chain_id or 0].heights()
            return await comparer.look(self._journal, self._instruments.board, self._session, heights)

        await self._keep_asking(EntryKey("coverage", comparer.check.name), look)

    async def _read_list(self, reader: ListReader) -> NoReturn:
        await self._keep_asking(reader.key, partial(reader.look, self._session))

    async def _probe(self, source: Source, turn: _Turn) -> int:
        """Probe a source, and judge its answers; return the wait until the next probe in milliseconds."""
        began_ms = turn.began_ms = self._clock.elapsed_ms()
        ends: list[int] = []
        session = replace(self._session, hear_certificate=ends.append)
        found = await observe(source, session, self._clock.now)
        self._check_for_own_fault(began_ms, found.values())
        self._note_doubts(source.name, found.values(), ends)
        took_ms = self._clock.elapsed_ms() - began_ms
        self._instruments.count_probe(source.checks, took_ms, found)
        for check, outcome in found.items():
            if isinstance(outcome, Blocks) and check.chain_id in self._chains:
                # After a start a position waits for a head, but no longer than a probe lasts (M12).
                await self._chains[check.chain_id].has_head.wait()
        rows = [self._journal.observe(check, outcome) for check, outcome in found.items()]
        causes = self._journal.causes
        for row in rows:
            if row.has_failed and (cause := causes.get(row.check)):
                labels = row.check.service, chain_label(row.check), code_of(cause)
                self._instruments.count("lookout_probe_failures_total", *labels)
        self._instruments.board.note_source(source.name, self._clock.now(), took_ms, rows, causes)
        failures = min(self._journal.ledger.failures(check) for check in source.checks)
        return self._limits.wait_ms(failures, self._chance.random())

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

    async def _read(self, endpoint: Endpoint, number: int, key: EntryKey) -> int:
        """Read an endpoint's head; return the wait until the next reading in milliseconds."""
        chain_id, began_ms = endpoint.chain_id, self._clock.elapsed_ms()
        answer = await read_endpoint(endpoint, self._session, self._clock)
        self._check_for_own_fault(began_ms)
        said = self._chains[chain_id].enter(number, answer)
        if (head := self._journal.ledger.heads(chain_id).newest_of_run) is not None:
            # The agreed head, since a single endpoint's block may be a lie.
            self.own_clock.hear(f"chain {chain_id}", head.at - head.block_at, self._clock.elapsed_ms())
        self._note_reading(key, chain_id, answer._replace(said=said))
        return int((self._limits.recheck_ms + self._chance.random() * self._limits.jitter_ms) / _READS_PER_RECHECK)

    def _check_for_own_fault(self, began_ms: int, found: Iterable[Found] = ()) -> None:
        """OwnFault if the probe is no observation: the event loop stood still meanwhile, or announcements were compared
        with a wrong clock (M17)."""
        if self._journal.timeline.has_stalled_since(began_ms):
            raise OwnFault("time")
        if self.own_clock.is_suspected and any(isinstance(outcome, Members) for outcome in found):
            raise OwnFault("clock")

    def _hear_date(self, host: str, date: str) -> None:
        """Compare our clock with the `Date` header of an answer."""
        with suppress(ValueError):  # the header is missing, or no date
            self.own_clock.hear(host, self._clock.now() - parse_http_date(date), self._clock.elapsed_ms())

    def _note_reading(self, key: EntryKey, chain_id: int, answer: HeadAnswer) -> None:
        """Show a reading to the operator, and log where an endpoint begins to fail and where it answers again; other
        failures at debug."""
        at, about = self._clock.now(), {"endpoint": key.name, "chain": chain_id}
        cause = answer.said if isinstance(answer.said, str) else None
        self._instruments.count_reading(chain_id, key.name, answer.took_ms, None if cause is None else code_of(cause))
        head = self._journal.ledger.heads(chain_id).progress(at - self._limits.head_max_age_ms).head
        self._instruments.board.note_reading(key, at, answer.took_ms, answer.said, head)
        was_failing = key in self._failing
        if cause is not None:
            self._failing.add(key)
            report = log.debug if was_failing else log.warning
            report("an endpoint fails", **about, cause=cause, why=describe_cause(cause))
        elif was_failing:
            self._failing.discard(key)
            log.info("the endpoint answers again", **about)

    async def _keep_asking(
        self, key: EntryKey, ask: Callable[[], Awaitable[int]], rest: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> NoReturn:
        """Call ``ask`` repeatedly, after the waits that it returns. A bug in one source is logged with its traceback
        and stops no other source (M11). A fault of the monitor's own is no observation, and changes no result (M17)."""
        clock, instruments = self._clock, self._instruments
        while True:
            began_ms = clock.elapsed_ms()
            try:
                next_ms = await ask()
                self._note_end_of_own_faults()
            except Exception as error:
                if fault := own_fault(error):
                    self._note_own_fault(fault)
                else:
                    instruments.count("lookout_probe_bugs_total")
                    log.exception("a probe crashed", source=key.name)
                cause = None if fault is None else fault.cause
                instruments.board.note_own_failure(key, clock.now(), clock.elapsed_ms() - began_ms, cause)
                next_ms = self._limits.recheck_ms
            due_ms = clock.elapsed_ms() + next_ms
            await rest(next_ms / 1000)
            instruments.measure("lookout_scheduler_delay_seconds", clock.elapsed_ms() - due_ms)

    def _note_own_fault(self, fault: OwnFault) -> None:
        """Count the fault, and log it once for all sources. A stall of the process is already over."""
        if fault.lacking == "time":
            log.warning("a probe was left out: the monitor stood still meanwhile")
        elif not self._exhausted:
            log.error("a fault of the monitor's own; rows age until it ends", error=str(fault), lacking=fault.lacking)
            self._exhausted = True
        self._instruments.count_own_fault(fault.lacking)

    def _note_end_of_own_faults(self) -> None:
        """The fault is over after two rechecks' time without one."""
        within_s = EXHAUSTED_RECHECKS * self._limits.recheck_ms / 1000
        if self._exhausted and not self._instruments.is_exhausted(within_s):
            log.info("the monitor's own fault is over")
            self._exhausted = False
