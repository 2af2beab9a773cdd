"""Asking every source and endpoint, each on its own, for as long as the monitor runs (M1, M2, M6, M11, M12)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random
from typing import Final, NoReturn

import structlog
from prometheus_client import CollectorRegistry

from lookout.clock import Clock
from lookout.core.cadence import wait_ms
from lookout.core.heads import Reading
from lookout.core.model import Observation
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
        self._endpoints: dict[int, list[Endpoint]] = {}
        for endpoint in endpoints:
            self._endpoints.setdefault(endpoint.chain_id, []).append(endpoint)
        self._agreements: Mapping[int, Agreement] = {}
        self._settled: Mapping[int, asyncio.Event] = {}
        self._timers: tuple[asyncio.TimerHandle, ...] = ()
        self._woken = asyncio.Event()

    async def run(self) -> None:
        self._begin()
        try:
            async with asyncio.TaskGroup() as tasks:
                for source in self._sources:
                    tasks.create_task(self._watch(source), name=f"watch {source.name}")
                for endpoints in self._endpoints.values():
                    for number, endpoint in enumerate(endpoints):
                        tasks.create_task(self._follow(endpoint, number), name=f"follow {endpoint.name}")
        finally:
            self._cancel_timers()

    def wake(self) -> None:
        """Ask everything again at once, spread over the jitter: the clock was set (M12)."""
        self._cancel_timers()
        self._begin()
        self._woken.set()
        self._woken = asyncio.Event()

    def _begin(self) -> None:
        limits, loop = self._limits, asyncio.get_running_loop()
        self._agreements = {
            chain_id: Agreement(len(endpoints), limits.head_max_age_ms)
            for chain_id, endpoints in self._endpoints.items()
        }
        self._settled = {chain_id: asyncio.Event() for chain_id in self._endpoints}
        self._timers = (
            loop.call_later(max(limits.jitter_ms, _LEAST_WAIT_MS) / 1000, self._give_up_waiting),
            loop.call_later(limits.probe_timeout_ms / 1000, self._settle_all),
        )

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _give_up_waiting(self) -> None:
        for chain_id, agreement in self._agreements.items():
            self._agreed(chain_id, agreement.give_up_waiting())

    def _settle_all(self) -> None:
        for settled in self._settled.values():
            settled.set()

    async def _watch(self, source: Source) -> NoReturn:
        failures = 0

        async def probe() -> int:
            nonlocal failures
            began_ms = self._clock.elapsed_ms()
            found = await observe(source, self._session, self._clock.now)
            self._instruments.probed(source.checks[0].service, self._clock.elapsed_ms() - began_ms, found)
            rows = [self._publisher.observe(Observation(check, 0, what)) for check, what in found.items()]
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
