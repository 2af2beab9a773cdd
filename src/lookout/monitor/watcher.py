"""Asking every source and endpoint, each on its own, for as long as the monitor runs (M1, M2, M6, M11, M12, M17)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, NoReturn

import structlog

from lookout.core.agreement import Agreement
from lookout.core.cadence import wait_ms
from lookout.core.model import Blocks
from lookout.core.plan import Limits
from lookout.monitor.journal import Journal
from lookout.monitor.resources import Resources
from lookout.monitor.sources import Built
from lookout.protocols.client.exhaustion import own_fault
from lookout.protocols.client.failure import OwnFault, ProbeFailed, WrongChainFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint, Source, observe

EXHAUSTED_RECHECKS: Final = 2  # for so many of its waits after a fault of its own the monitor counts as exhausted

log = structlog.get_logger("monitor")


class Watcher:
    """A task for each source and endpoint: none waits for another."""

    def __init__(self, built: Built, journal: Journal, limits: Limits, resources: Resources) -> None:
        self._sources = built.sources
        self._endpoints = _by_chain(built.endpoints)
        self._journal = journal
        self._limits = limits
        self._open_session = resources.open_session
        self._clock = resources.clock
        self._chance = resources.chance
        self._instruments = resources.instruments
        self._chains: dict[int, _Chain] = {}
        self._woken = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None  # while it runs
        self._exhausted = False  # the monitor lacks something of its own (M17)
        self._tasks: dict[int, asyncio.Task[NoReturn]] = {}  # by the identity of the source or endpoint

    async def run(self) -> None:
        """Ask, until cancelled."""
        try:
            async with (
                self._open_session(self._limits.probe_timeout_ms / 1000) as self._session,
                asyncio.TaskGroup() as self._group,
            ):
                try:
                    self._begin(self._endpoints)
                    self._start_missing_tasks()
                    await asyncio.Event().wait()  # there may be nobody to ask yet
                finally:
                    self._group = None  # a task that is started while the others end would not be cancelled
        finally:
            self._tasks.clear()
            self._drop(*self._chains)

    def wake(self) -> None:
        """Ask everything again at once, spread over the jitter: the clock was set (M12)."""
        for chain in self._chains.values():
            chain.settled.set()  # a position that waits is of before: its indexer is asked again
        self._drop(*self._chains)
        self._begin(self._endpoints)
        self._woken.set()
        self._woken = asyncio.Event()

    def replan(self, built: Built, limits: Limits) -> None:
        """Continue with these. A source that was there before is not touched: it is asked when it would have been. So
        are a chain's endpoints, if all of them were there; a chain that has others starts from scratch, since they
        agree together."""
        followed = _by_chain(built.endpoints)
        same_age = limits.head_max_age_ms == self._limits.head_max_age_ms
        restarted = [
            chain_id for chain_id, each in followed.items() if not same_age or each != self._endpoints.get(chain_id)
        ]
        for chain_id in {*restarted, *self._endpoints.keys() - followed.keys()}:
            self._cancel_tasks(*self._endpoints.get(chain_id, ()))
        self._drop(*self._endpoints.keys() - followed.keys())
        before, self._sources = self._sources, built.sources
        now = {id(source) for source in self._sources}
        self._cancel_tasks(*(source for source in before if id(source) not in now))
        self._endpoints, self._limits = followed, limits
        if self._group is not None:
            self._session = Session(self._session.http, limits.probe_timeout_ms / 1000)
            self._begin(restarted)
            self._start_missing_tasks()

    def _start_missing_tasks(self) -> None:
        for source in self._sources:
            self._start_task(source, partial(self._watch, source), f"watch {source.name}")
        for endpoints in self._endpoints.values():
            for number, endpoint in enumerate(endpoints):
                self._start_task(endpoint, partial(self._follow, endpoint, number), f"follow {endpoint.name}")

    def _start_task(
        self, asked: Source | Endpoint, ask: Callable[[], Coroutine[None, None, NoReturn]], name: str
    ) -> None:
        if self._group is not None and id(asked) not in self._tasks:
            self._tasks[id(asked)] = self._group.create_task(ask(), name=name)

    def _cancel_tasks(self, *removed: Source | Endpoint) -> None:
        for asked in removed:
            if task := self._tasks.pop(id(asked), None):
                task.cancel()

    def _begin(self, chain_ids: Iterable[int]) -> None:
        """Let the endpoints of these chains agree from scratch. Positions wait for the first head of a chain alone: one
        whose endpoints are others now has its last head."""
        limits, loop = self._limits, asyncio.get_running_loop()
        for chain_id in chain_ids:
            before = self._chains.get(chain_id)
            settled = asyncio.Event() if before is None else before.settled
            self._drop(chain_id)
            chain = _Chain(Agreement(len(self._endpoints[chain_id]), limits.head_max_age_ms), settled)
            self._chains[chain_id] = chain
            loop.call_later(limits.probe_timeout_ms / 1000, self._end_wait, chain_id, chain)

    def _end_wait(self, chain_id: int, chain: "_Chain") -> None:
        if self._chains.get(chain_id) is chain:
            chain.agreement.end_wait()
            self._agree(chain_id)
        chain.settled.set()

    def _drop(self, *chain_ids: int) -> None:
        for chain_id in chain_ids:
            chain = self._chains.pop(chain_id, None)
            if chain is not None and chain.next_change is not None:
                chain.next_change.cancel()

    def _agree(self, chain_id: int) -> None:
        """See what a chain's endpoints agree on now, and again when one of their answers becomes too old (M8)."""
        chain, now = self._chains[chain_id], self._clock.now()
        answer = chain.agreement.agreed(now, self._journal.ledger.heads(chain_id))
        if answer is not None:
            self._journal.read_head(chain_id, answer)
            if not self._journal.timeline.stepped.is_set():  # or all are about to agree again
                chain.settled.set()
        if chain.next_change is not None:
            chain.next_change.cancel()
        next_at = chain.agreement.next_change_at(now)
        if next_at is not None:
            chain.next_change = asyncio.get_running_loop().call_later((next_at - now) / 1000, self._agree, chain_id)

    async def _watch(self, source: Source) -> NoReturn:
        while True:
            await asyncio.sleep(self._chance.random() * self._limits.jitter_ms / 1000)
            await self._keep_asking(source.name, partial(self._probe, _Watched(source)))

    async def _probe(self, watched: "_Watched") -> int:
        """Probe a source, and judge what was found; how long to wait until the next time, in milliseconds."""
        source, woken, began_ms = watched.source, self._woken, self._clock.elapsed_ms()
        found = await observe(source, self._session, self._clock.now)
        self._instruments.probed(source.checks[0].service, self._clock.elapsed_ms() - began_ms, found)
        for check, what in found.items():
            if isinstance(what, Blocks) and check.chain_id in self._chains:
                # After a start a position waits for a head, but no longer than a probe lasts (M12).
                if not woken.is_set():
                    await self._chains[check.chain_id].settled.wait()
                if woken.is_set():
                    return 0  # it is of before the clock was set
        rows = [self._journal.observe(check, what) for check, what in found.items()]
        watched.failures = watched.failures + 1 if all(row.reason == "unreachable" for row in rows) else 0
        return wait_ms(watched.failures, self._chance.random(), self._limits)

    async def _follow(self, endpoint: Endpoint, number: int) -> NoReturn:
        while True:
            await asyncio.sleep(self._chance.random() * self._limits.jitter_ms / 2000)
            await self._keep_asking(endpoint.name, partial(self._read, endpoint, number))

    async def _read(self, endpoint: Endpoint, number: int) -> int:
        """Read an endpoint's head; how long to wait until the next time, in milliseconds."""
        chain_id = endpoint.chain_id
        chain = self._chains[chain_id]
        try:
            answer = await endpoint.read(self._session, self._clock.now)
        except ProbeFailed as failure:
            log.debug("endpoint failed", endpoint=endpoint.name, reason=failure.reason)
            chain.agreement.failed(number, is_wrong_chain=isinstance(failure, WrongChainFailed))
            is_answer = False
        else:
            is_answer = chain.agreement.answered(number, answer)
            self._journal.ledger.hear(self._clock.now())  # whatever it says: the monitor is not blind (M13)
        self._instruments.head_read(chain_id, "answered" if is_answer else "failed")
        if chain is self._chains.get(chain_id):  # and the clock was not set meanwhile
            self._agree(chain_id)
        return int((self._limits.recheck_ms + self._chance.random() * self._limits.jitter_ms) / 2)

    async def _keep_asking(self, name: str, ask: Callable[[], Awaitable[int]]) -> None:
        """Ask again and again, after as long as ``ask`` returns, until the clock was set. A bug in one source is logged
        with its traceback and stops no other (M11). A fault of our own is no observation: nothing is judged by it, and
        nothing that was found before is lost (M17)."""
        woken = self._woken
        while not woken.is_set():
            try:
                next_ms = await ask()
                self._note_end_of_own_faults()
            except Exception as error:
                if fault := own_fault(error):
                    self._note_own_fault(fault)
                else:
                    self._instruments.count_crash()
                    log.exception("a probe died of a bug", source=name)
                next_ms = self._limits.recheck_ms
            due_ms = self._clock.elapsed_ms() + next_ms
            try:
                async with asyncio.timeout(next_ms / 1000):
                    await woken.wait()
            except TimeoutError:
                self._instruments.began_late(self._clock.elapsed_ms() - due_ms)

    def _note_own_fault(self, fault: OwnFault) -> None:
        """Logged once for all that cannot be asked, and counted for each."""
        if not self._exhausted:
            log.error("the monitor cannot ask; rows age until it can", error=str(fault), lacking=fault.lacking)
        self._exhausted = True
        self._instruments.own_fault(fault.lacking)

    def _note_end_of_own_faults(self) -> None:
        """Over once everybody was asked again without one: some may be asked on connections that are open already."""
        if self._exhausted and not self._instruments.is_exhausted(EXHAUSTED_RECHECKS * self._limits.recheck_ms / 1000):
            log.info("the monitor can ask again")
            self._exhausted = False


@dataclass(slots=True)
class _Watched:
    """A source, and how often it failed in a row."""

    source: Source
    failures: int = 0


@dataclass(slots=True)
class _Chain:
    """What is under way of a chain's heads."""

    agreement: Agreement
    settled: asyncio.Event  # there is a head to compare with, or none came in time
    next_change: asyncio.TimerHandle | None = None  # when an answer becomes too old


def _by_chain(endpoints: Iterable[Endpoint]) -> dict[int, list[Endpoint]]:
    by_chain: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_chain.setdefault(endpoint.chain_id, []).append(endpoint)
    return by_chain
