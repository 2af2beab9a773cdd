"""Asking every source and endpoint, and comparing every list, each on its own (M1, M2, M6, M11, M12, M17)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

from lookout.base.instants import parse_http_date
from lookout.base.logger import get_logger
from lookout.core.agreement import Agreement
from lookout.core.cadence import wait_ms
from lookout.core.causes import code_of, describe_cause
from lookout.core.heads import Reading
from lookout.core.model import Blocks, Found, Members
from lookout.core.own_clock import OwnClock
from lookout.core.plan import Limits
from lookout.monitor.board import EntryKey
from lookout.monitor.comparer import Comparer
from lookout.monitor.followed_chain import FollowedChain
from lookout.monitor.journal import Journal
from lookout.monitor.resources import Resources
from lookout.monitor.sources import Built
from lookout.protocols.client.exhaustion import own_fault
from lookout.protocols.client.failure import OwnFault, ProbeFailed, WrongChainFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Source, observe

EXHAUSTED_RECHECKS: Final = 2  # for so many of its waits after a fault of its own the monitor counts as exhausted

log = get_logger("monitor")


class Watcher:
    """A task for each source, endpoint and list that is compared: none waits for another."""

    def __init__(
        self,
        built: Built,
        journal: Journal,
        limits: Limits,
        resources: Resources,
        comparers: tuple[Comparer, ...] = (),
    ) -> None:
        self._built = built
        self._comparers = comparers
        self._journal = journal
        self._limits = limits
        self._resources = resources
        self.own_clock = OwnClock()
        # While it runs.
        self._session: Session
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[int, asyncio.Task[NoReturn]] = {}  # by the identity of what is asked
        self._chains: dict[int, FollowedChain] = {}
        self._failing: set[tuple[int, str]] = set()  # endpoints, by chain and name
        self._exhausted = False  # the monitor lacks something of its own (M17)

    async def run(self) -> None:
        """Ask, until cancelled."""
        session = self._resources.open_session(self._limits.probe_timeout_ms / 1000)
        try:
            async with session as opened, asyncio.TaskGroup() as self._group:
                self._session = replace(opened, hear_date=self._hear_date)
                try:
                    self._begin(_by_chain(self._built))
                    self._start_missing_tasks()
                    await asyncio.Event().wait()  # there may be nobody to ask yet
                finally:
                    self._group = None  # a task that is started while the others end would not be cancelled
        finally:
            self._tasks.clear()
            self._end(*self._chains)

    def wake(self) -> None:
        """Ask everything again at once, spread over the jitter: the clock was set (M12). An answer that is awaited, or
        waits for a head, is of before."""
        self.own_clock.forget()
        self._cancel_tasks(*self._built.sources, *self._built.endpoints, *self._comparers)
        self._end(*self._chains)
        self._begin(_by_chain(self._built))
        self._start_missing_tasks()

    def replan(self, built: Built, limits: Limits, comparers: tuple[Comparer, ...] = ()) -> None:
        """Continue with these. A source that was there before is not touched: it is asked when it would have been. So
        are a chain's endpoints, if all of them were there; a chain that has others starts from scratch, since they
        agree together."""
        before, followed = _by_chain(self._built), _by_chain(built)
        same_age = limits.head_max_age_ms == self._limits.head_max_age_ms
        untouched = {each for each in before if same_age and before[each] == followed.get(each)}
        kept = {id(each) for each in built.sources} | {id(each) for chain in untouched for each in before[chain]}
        kept |= {id(each) for each in comparers}
        asked: tuple[Source | Endpoint | Comparer, ...] = (
            *self._built.sources,
            *self._built.endpoints,
            *self._comparers,
        )
        self._cancel_tasks(*(each for each in asked if id(each) not in kept))
        self._end(*before.keys() - followed.keys())
        self._built, self._limits, self._comparers = built, limits, comparers
        sources, endpoints = map(_source_key, built.sources), map(_endpoint_key, built.endpoints)
        self._resources.instruments.board.keep_only({*sources, *endpoints, *map(_coverage_key, comparers)})
        self._failing &= {(each.chain_id, each.name) for each in built.endpoints}
        if self._group is not None:
            self._session = replace(self._session, timeout_s=limits.probe_timeout_ms / 1000)
            self._begin({each: endpoints for each, endpoints in followed.items() if each not in untouched})
            self._start_missing_tasks()

    def _start_missing_tasks(self) -> None:
        for source in self._built.sources:
            self._start_task(source, partial(self._watch, source), f"watch {source.name}")
        for endpoints in _by_chain(self._built).values():
            for number, endpoint in enumerate(endpoints):
                self._start_task(endpoint, partial(self._follow, endpoint, number), f"follow {endpoint.name}")
        for comparer in self._comparers:
            self._start_task(comparer, partial(self._compare, comparer), f"compare {comparer.name}")

    def _start_task(
        self, asked: Source | Endpoint | Comparer, ask: Callable[[], Coroutine[None, None, NoReturn]], name: str
    ) -> None:
        if self._group is not None and id(asked) not in self._tasks:
            self._tasks[id(asked)] = self._group.create_task(ask(), name=name)

    def _cancel_tasks(self, *removed: Source | Endpoint | Comparer) -> None:
        for asked in removed:
            if task := self._tasks.pop(id(asked), None):
                task.cancel()

    def _begin(self, chains: Mapping[int, list[Endpoint]]) -> None:
        """Let the endpoints of these chains agree from scratch. Positions wait for the first head of a chain alone: one
        whose endpoints are others now has its last head."""
        for chain_id, endpoints in chains.items():
            before = self._chains.get(chain_id)
            has_head = asyncio.Event() if before is None else before.has_head
            self._end(chain_id)
            agreement = Agreement(len(endpoints), self._limits.head_max_age_ms)
            chain = FollowedChain(endpoints, agreement, has_head, self._journal, self._resources)
            chain.wait_for_all(self._limits.probe_timeout_ms)
            self._chains[chain_id] = chain

    def _end(self, *chain_ids: int) -> None:
        for chain_id in chain_ids:
            if chain := self._chains.pop(chain_id, None):
                chain.end()

    async def _watch(self, source: Source) -> NoReturn:
        await asyncio.sleep(self._resources.chance.random() * self._limits.jitter_ms / 1000)
        await self._keep_asking(_source_key(source), partial(self._probe, source))

    async def _probe(self, source: Source) -> int:
        """Probe a source, and judge what was found; how long to wait until the next time, in milliseconds."""
        clock = self._resources.clock
        began_ms = clock.elapsed_ms()
        found = await observe(source, self._session, clock.now)
        self._check_for_own_fault(began_ms, found.values())
        took_ms = clock.elapsed_ms() - began_ms
        self._resources.instruments.count_probe(source.checks, took_ms, found)
        for check, what in found.items():
            if isinstance(what, Blocks) and check.chain_id in self._chains:
                # After a start a position waits for a head, but no longer than a probe lasts (M12).
                await self._chains[check.chain_id].has_head.wait()
        rows = [self._journal.observe(check, what) for check, what in found.items()]
        for row in rows:
            if row.has_failed and (cause := self._journal.causes.get(row.check)):
                self._resources.instruments.count_probe_failure(row.check, code_of(cause))
        self._resources.instruments.board.note_source(source.name, clock.now(), took_ms, rows, self._journal.causes)
        failures = min(self._journal.ledger.failures(check) for check in source.checks)
        return wait_ms(failures, self._resources.chance.random(), self._limits)

    def _check_for_own_fault(self, began_ms: int, found: Iterable[Found] = ()) -> None:
        """OwnFault if nothing was observed: the event loop stood still meanwhile, or announcements were compared with a
        clock that is wrong (M17)."""
        if self._journal.timeline.has_stalled_since(began_ms):
            raise OwnFault("time")
        if self.own_clock.is_suspected and any(isinstance(what, Members) for what in found):
            raise OwnFault("clock")

    def _hear_date(self, host: str, date: str) -> None:
        """An answer came, with this `Date` header."""
        with suppress(ValueError):  # it has none, or one that says nothing
            self._hear_time(host, parse_http_date(date))

    def _hear_time(self, witness: str, at: int) -> None:
        clock = self._resources.clock
        self.own_clock.hear(witness, clock.now() - at, clock.elapsed_ms())

    async def _follow(self, endpoint: Endpoint, number: int) -> NoReturn:
        await asyncio.sleep(self._resources.chance.random() * self._limits.jitter_ms / 2000)
        await self._keep_asking(_endpoint_key(endpoint), partial(self._read, endpoint, number))

    async def _read(self, endpoint: Endpoint, number: int) -> int:
        """Read an endpoint's head; how long to wait until the next time, in milliseconds."""
        chain, clock = self._chains[endpoint.chain_id], self._resources.clock
        began_ms = clock.elapsed_ms()
        read: Reading | ProbeFailed
        try:
            read = await endpoint.read(self._session, clock.now)
        except ProbeFailed as failure:
            read = failure
        self._check_for_own_fault(began_ms)
        outcome: Reading | str  # the answer, or the cause of a failure
        if isinstance(read, ProbeFailed):
            outcome = read.reason
            chain.failed(number, is_wrong_chain=isinstance(read, WrongChainFailed))
        else:
            self._hear_time(f"chain {endpoint.chain_id}", read.block_at)
            outcome = read if chain.answered(number, read) else "future_block"
        chain.agree()
        self._note_reading(endpoint, outcome, clock.elapsed_ms() - began_ms)
        return int((self._limits.recheck_ms + self._resources.chance.random() * self._limits.jitter_ms) / 2)

    async def _compare(self, comparer: Comparer) -> NoReturn:
        async def look() -> int:
            return await comparer.look(self._session, self._chains[comparer.comparison.chain_id].heights())

        comparer.note_progress()
        await self._keep_asking(_coverage_key(comparer), look)

    def _note_reading(self, endpoint: Endpoint, outcome: Reading | str, took_ms: int) -> None:
        """Show a reading to the operator. It is logged where an endpoint begins to fail and where it answers again; in
        between at debug."""
        name, chain_id, at = endpoint.name, endpoint.chain_id, self._resources.clock.now()
        instruments = self._resources.instruments
        cause = outcome if isinstance(outcome, str) else None
        instruments.count_reading(chain_id, name, took_ms, None if cause is None else code_of(cause))
        head = self._journal.ledger.heads(chain_id).progress(at - self._limits.head_max_age_ms).head
        instruments.board.note_reading(_endpoint_key(endpoint), at, took_ms, outcome, head)
        was_failing = (chain_id, name) in self._failing
        if cause is not None:
            self._failing.add((chain_id, name))
            report = log.debug if was_failing else log.warning
            report("an endpoint fails", endpoint=name, chain=chain_id, cause=cause, why=describe_cause(cause))
        elif was_failing:
            self._failing.discard((chain_id, name))
            log.info("the endpoint answers again", endpoint=name, chain=chain_id)

    async def _keep_asking(self, key: EntryKey, ask: Callable[[], Awaitable[int]]) -> NoReturn:
        """Ask again and again, after as long as ``ask`` returns. A bug in one source is logged with its traceback and
        stops no other (M11). A fault of our own is no observation: nothing is judged by it, and nothing that was found
        before is lost (M17)."""
        clock, instruments = self._resources.clock, self._resources.instruments
        while True:
            began_ms = clock.elapsed_ms()
            try:
                next_ms = await ask()
                self._note_end_of_own_faults()
            except Exception as error:
                if fault := own_fault(error):
                    self._note_own_fault(fault)
                else:
                    instruments.count_crash()
                    log.exception("a probe died of a bug", source=key.name)
                cause = None if fault is None else fault.cause
                instruments.board.note_own_failure(key, clock.now(), clock.elapsed_ms() - began_ms, cause)
                next_ms = self._limits.recheck_ms
            due_ms = clock.elapsed_ms() + next_ms
            await asyncio.sleep(next_ms / 1000)
            instruments.measure_delay(clock.elapsed_ms() - due_ms)

    def _note_own_fault(self, fault: OwnFault) -> None:
        """Logged once for all that cannot be asked, and counted for each. A moment without time is no lack."""
        if fault.lacking == "time":
            log.warning("a probe was left out: the monitor stood still meanwhile")
        elif not self._exhausted:
            log.error("a fault of the monitor's own; rows age until it ends", error=str(fault), lacking=fault.lacking)
            self._exhausted = True
        self._resources.instruments.count_own_fault(fault.lacking)

    def _note_end_of_own_faults(self) -> None:
        """Over once everybody was asked again without one: some may be asked on connections that are open already."""
        within_s = EXHAUSTED_RECHECKS * self._limits.recheck_ms / 1000
        if self._exhausted and not self._resources.instruments.is_exhausted(within_s):
            log.info("the monitor's own fault is over")
            self._exhausted = False


def _source_key(source: Source) -> EntryKey:
    return EntryKey("source", source.name)


def _endpoint_key(endpoint: Endpoint) -> EntryKey:
    return EntryKey("endpoint", endpoint.name, endpoint.chain_id)


def _coverage_key(comparer: Comparer) -> EntryKey:
    return EntryKey("coverage", comparer.name)


def _by_chain(built: Built) -> dict[int, list[Endpoint]]:
    by_chain: dict[int, list[Endpoint]] = {}
    for endpoint in built.endpoints:
        by_chain.setdefault(endpoint.chain_id, []).append(endpoint)
    return by_chain
