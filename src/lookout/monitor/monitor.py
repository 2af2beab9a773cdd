"""The whole monitor, while it runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from lookout.base.logger import get_logger
from lookout.config.settings import Upstreams
from lookout.core.own_clock import describe_clock_error
from lookout.core.plan import Plan
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import Publisher
from lookout.monitor.watcher import Watcher
from lookout.protocols.client.session import Session
from lookout.public.about import Description
from lookout.store.protocol import LostStoreError

_CLOCK_EVERY_S: Final = 0.5

OpenSession = Callable[[float], AbstractAsyncContextManager[Session]]

log = get_logger()


@dataclass(frozen=True)
class Monitor:
    """Probes, judges, publishes and stores. It runs once."""

    plan: Plan
    description: Description
    upstreams: Upstreams
    journal: Journal
    notices: NoticeKeeper
    publisher: Publisher
    watcher: Watcher
    pinger: Pinger
    instruments: Instruments
    open_session: OpenSession

    async def run(self) -> None:
        """Run until cancelled. LostStoreError if the store is another monitor's now."""
        plan, published_at = self.plan, self.journal.ledger.published_at
        log.info("started", checks=len(plan.checks()), monitored=len(plan.monitored), resumed=published_at is not None)
        self.instruments.describe_watched(self.description.chains, plan.own_services, self.upstreams)
        self.instruments.count_tasks_of(asyncio.get_running_loop())
        self.journal.start()
        try:
            async with self.open_session(plan.limits.probe_timeout_ms / 1000) as session, asyncio.TaskGroup() as tasks:
                others = (
                    tasks.create_task(self.watcher.run(session), name="watch"),
                    tasks.create_task(self._watch_clock(), name="clock"),
                    tasks.create_task(self.pinger.run(session), name="ping"),
                )
                publishing = tasks.create_task(self._publish(others), name="publish")
        finally:
            self.notices.stop()
            self.journal.stop()
            log.info("stopped")
        if lost := publishing.result():
            raise lost

    @asynccontextmanager
    async def asking_once(self) -> AsyncIterator[Session]:
        """Ask every source and endpoint once, and publish nothing. The session is for more questions inside the
        block."""
        self.journal.start()
        async with self.open_session(self.plan.limits.probe_timeout_ms / 1000) as session:
            clock = asyncio.create_task(self._watch_clock(), name="clock")
            try:
                async with self.watcher.asked_once(session):
                    yield session
            finally:
                clock.cancel()

    async def _publish(self, others: Sequence[asyncio.Task[None]]) -> LostStoreError | None:
        """Publish until the store is lost, then cancel the other tasks. It returns the error: a task group that fails
        forgets whether it was cancelled meanwhile."""
        try:
            await self.publisher.run()
        except LostStoreError as lost:
            for other in others:
                other.cancel()
            return lost
        return None

    async def _watch_clock(self) -> None:
        """Ask every source again after the clock was set (M12), and report a wrong clock to the operator (M17)."""
        stepped, reported_ms = self.journal.timeline.stepped, 0
        while True:
            verdict_ms = self.watcher.judge_own_clock()
            if verdict_ms is not None and verdict_ms * reported_ms <= 0 and verdict_ms != reported_ms:
                reported_ms = verdict_ms
                self._report_clock(verdict_ms)
            try:
                async with asyncio.timeout(_CLOCK_EVERY_S):
                    await stepped.wait()
            except TimeoutError:
                self.journal.detect_clock_step()
            if stepped.is_set():
                stepped.clear()
                self.watcher.wake()

    def _report_clock(self, error_ms: int) -> None:
        if error_ms:
            log.error("a fault of the monitor's own", error=describe_clock_error(error_ms), lacking="clock")
            self.instruments.count_own_fault("clock")
        else:
            log.info("this machine's clock is right again")
        at = self.journal.now()
        for feature in self.journal.features:
            feature.report_clock(at, error_ms)
