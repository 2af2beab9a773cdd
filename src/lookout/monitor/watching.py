"""Asking every source and endpoint, each on its own, for as long as the monitor runs (M1, M2, M6, M11, M12)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from random import Random
from typing import Final, NoReturn

import structlog
from prometheus_client import CollectorRegistry

from lookout.clock import Clock
from lookout.core.cadence import wait_ms
from lookout.core.heads import Reading
from lookout.core.plan import Limits
from lookout.monitor.agreement import Agreement
from lookout.monitor.instruments import Instruments
from lookout.monitor.publishing import Publisher
from lookout.sources.failure import ProbeFailed
from lookout.sources.fetching import Session
from lookout.sources.source import Endpoint, Source, observe

# How long the first head waits for each endpoint to be heard, if there is hardly any jitter.
_LEAST_WAIT_MS: Final = 500

log = structlog.get_logger("monitor")


class Watcher:
    """A task for each source and endpoint: none waits for another."""

    def __init__(
        self,
        sources: Iterable[Source],
        endpoints: Iterable[Endpoint],
        publisher: Publisher,
        session: Session,
        clock: Clock,
        limits: Limits,
        chance: Random,
        instruments: Instruments | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._publisher = publisher
        self._session = session
        self._clock = clock
        self._limits = limits
        self._chance = chance
        self._instruments = instruments or Instruments(CollectorRegistry(), clock)
        self._endpoints = _by_chain(endpoints)
        self._agreements: dict[int, Agreement] = {}
        self._settled: dict[int, asyncio.Event] = {}
        self._timers: list[asyncio.TimerHandle] = []
        self._woken = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None  # while it runs
        self._tasks: dict[int, asyncio.Task[NoReturn]] = {}  # by the identity of whom they ask

    async def run(self) -> None:
        """Ask, until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                self._begin(self._endpoints)
                self._ask_those_unasked()
                await asyncio.Event().wait()  # there may be nobody to ask yet
        finally:
            self._group = None
            self._tasks.clear()
            self._cancel_timers()

    def wake(self) -> None:
        """Ask everything again at once, spread over the jitter: the clock was set (M12)."""
        self._cancel_timers()
        self._begin(self._endpoints)
        self._woken.set()
        self._woken = asyncio.Event()

    def replan(
        self, sources: Iterable[Source], endpoints: Iterable[Endpoint], session: Session, limits: Limits
    ) -> None:
        """Go on with these. A source that was there before is not touched: it is asked when it would have been. So are
        a chain's endpoints, if all of them were; a chain that has others begins anew, since they agree together."""
        followed = _by_chain(endpoints)
        same_age = limits.head_max_age_ms == self._limits.head_max_age_ms
        anew = [
            chain_id for chain_id, each in followed.items() if not same_age or each != self._endpoints.get(chain_id)
        ]
        for chain_id in {*anew, *self._endpoints.keys() - followed.keys()}:
            self._leave(*self._endpoints.get(chain_id, ()))
            self._agreements.pop(chain_id, None)
        before, self._sources = self._sources, tuple(sources)
        now = {id(source) for source in self._sources}
        self._leave(*(source for source in before if id(source) not in now))
        self._endpoints, self._session, self._limits = followed, session, limits
        if self._group is not None:
            self._begin(anew)
            self._ask_those_unasked()

    def _ask_those_unasked(self) -> None:
        for source in self._sources:
            self._ask(source, partial(self._watch, source), f"watch {source.name}")
        for endpoints in self._endpoints.values():
            for number, endpoint in enumerate(endpoints):
                self._ask(endpoint, partial(self._follow, endpoint, number), f"follow {endpoint.name}")

    def _ask(self, whom: Source | Endpoint, ask: Callable[[], Coroutine[None, None, NoReturn]], name: str) -> None:
        if self._group is not None and id(whom) not in self._tasks:
            self._tasks[id(whom)] = self._group.create_task(ask(), name=name)

    def _leave(self, *left: Source | Endpoint) -> None:
        for whom in left:
            if task := self._tasks.pop(id(whom), None):
                task.cancel()

    def _begin(self, chain_ids: Iterable[int]) -> None:
        """Wait for each endpoint of these chains to be heard, but not for long."""
        limits, loop = self._limits, asyncio.get_running_loop()
        begun = {chain_id: Agreement(len(self._endpoints[chain_id]), limits.head_max_age_ms) for chain_id in chain_ids}
        self._agreements |= begun
        for chain_id in begun:
            self._settled.setdefault(chain_id, asyncio.Event()).clear()  # the same one: indexers may wait for it
        self._timers = [timer for timer in self._timers if timer.when() > loop.time()]
        self._timers += (
            loop.call_later(max(limits.jitter_ms, _LEAST_WAIT_MS) / 1000, self._give_up_waiting, begun),
            loop.call_later(limits.probe_timeout_ms / 1000, self._settle, begun),
        )

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _give_up_waiting(self, begun: Mapping[int, Agreement]) -> None:
        for chain_id, agreement in self._still(begun):
            self._agreed(chain_id, agreement.give_up_waiting())

    def _settle(self, begun: Mapping[int, Agreement]) -> None:
        for chain_id, _ in self._still(begun):
            self._settled[chain_id].set()

    def _still(self, begun: Mapping[int, Agreement]) -> list[tuple[int, Agreement]]:
        """Those that nobody has left or begun anew since."""
        return [each for each in begun.items() if self._agreements.get(each[0]) is each[1]]

    async def _watch(self, source: Source) -> NoReturn:
        failures = 0

        async def probe() -> int:
            nonlocal failures
            began_ms = self._clock.elapsed_ms()
            found = await observe(source, self._session, self._clock.now)
            self._instruments.probed(source.checks[0].service, self._clock.elapsed_ms() - began_ms, found)
            rows = [self._publisher.observe(check, what) for check, what in found.items()]
            failures = failures + 1 if all(row.reason == "unreachable" for row in rows) else 0
            return wait_ms(failures, self._chance.random(), self._limits)

        while True:
            await self._wait_to_begin(source)
            await self._keep_asking(source.name, probe)
            failures = 0

    async def _wait_to_begin(self, source: Source) -> None:
        """Spread over the jitter; an indexer waits for a head to be compared with, but no longer than a probe lasts."""
        check = source.checks[0]
        if check.service in ("indexer", "hosted-indexer") and check.chain_id is not None:
            while not self._settled[check.chain_id].is_set():  # the clock may be set again just then
                await self._settled[check.chain_id].wait()
        else:
            await asyncio.sleep(self._chance.random() * self._limits.jitter_ms / 1000)

    async def _follow(self, endpoint: Endpoint, number: int) -> NoReturn:
        chain_id = endpoint.chain_id

        async def read() -> int:
            agreement = self._agreements[chain_id]
            try:
                answer = await endpoint.read(self._session, self._clock.now)
            except ProbeFailed as failure:
                log.debug("endpoint failed", endpoint=endpoint.name, reason=failure.reason)
                self._instruments.head_read(chain_id, "failed")
                head = agreement.failed(number)
            else:
                self._instruments.head_read(chain_id, "answered")
                head = agreement.answered(number, answer)
            if agreement is self._agreements[chain_id]:  # and the clock was not set meanwhile
                self._agreed(chain_id, head)
            return int((self._limits.recheck_ms + self._chance.random() * self._limits.jitter_ms) / 2)

        while True:
            await asyncio.sleep(self._chance.random() * self._limits.jitter_ms / 2000)
            await self._keep_asking(endpoint.name, read)

    def _agreed(self, chain_id: int, head: Reading | None) -> None:
        if head is not None:
            self._publisher.read_head(chain_id, head)
            self._settled[chain_id].set()

    async def _keep_asking(self, name: str, ask: Callable[[], Awaitable[int]]) -> None:
        """Ask again and again, after as long as each answer says, until everything is to be asked anew. A bug in one
        source is told with its traceback and takes nobody else with it (M11)."""
        woken = self._woken
        while not woken.is_set():
            try:
                next_ms = await ask()
            except Exception:
                self._instruments.died_of_a_bug()
                log.exception("a probe died of a bug", source=name)
                next_ms = self._limits.recheck_ms
            due_ms = self._clock.elapsed_ms() + next_ms
            try:
                async with asyncio.timeout(next_ms / 1000):
                    await woken.wait()
            except TimeoutError:
                self._instruments.began_late(self._clock.elapsed_ms() - due_ms)


def _by_chain(endpoints: Iterable[Endpoint]) -> dict[int, list[Endpoint]]:
    by_chain: dict[int, list[Endpoint]] = {}
    for endpoint in endpoints:
        by_chain.setdefault(endpoint.chain_id, []).append(endpoint)
    return by_chain
