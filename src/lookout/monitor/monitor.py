"""The whole monitor, and how it is restarted in place with other settings."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.base.pieces import StateError
from lookout.config.settings import Settings
from lookout.core.cadence import GATHER_MS
from lookout.core.ledger import Ledger, State
from lookout.core.own_clock import describe_clock_error
from lookout.core.plan import Plan
from lookout.monitor.alerts import Alerts
from lookout.monitor.comparer import build_comparers
from lookout.monitor.journal import Journal, Timeline
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.resources import Resources
from lookout.monitor.watcher import Watcher
from lookout.state.codec import decode_coverages, decode_sightings, decode_state, encode_sightings
from lookout.state.differ import all_pieces
from lookout.store.protocol import LostStoreError

_LOOK_EVERY_S: Final = 0.5

log = get_logger("monitor")


class Parts(NamedTuple):
    """What a monitor is built of; a simulated world gives parts that report what happens, or have a bug planted."""

    ledger: Callable[[Plan, State | None], Ledger] = Ledger
    timeline: Callable[[Clock], Timeline] = Timeline
    journal: type[Journal] = Journal
    publisher: type[Publisher] = Publisher
    watcher: type[Watcher] = Watcher
    alerts: type[Alerts] = Alerts


REAL_PARTS: Final = Parts()


class Monitor:
    """Probes, judges, publishes and stores. It continues from what is stored, and runs once."""

    def __init__(
        self,
        settings: Settings,
        stored: Mapping[str, bytes],
        resources: Resources,
        recorder: Recorder | None = None,
        parts: Parts = REAL_PARTS,
    ) -> None:
        """StateError if what is stored cannot be read."""
        plan = settings.plan()
        self._settings = settings
        self._resources = resources
        ledger = _resume_ledger(plan, stored, parts.ledger)
        self._built = resources.build_sources(settings, decode_sightings(stored))
        alerts = parts.alerts(settings.alert_policy(resources.config), stored, resources)
        timeline, coverages = parts.timeline(resources.clock), decode_coverages(stored)
        self._journal = parts.journal(ledger, timeline, alerts, recorder, coverages)
        self.notices = NoticeKeeper(settings, stored, self._journal)
        self._publisher = parts.publisher(settings, self._journal, self.notices, self._encode_learned, resources)
        self._comparers = build_comparers(settings, self._built, self._journal, resources)
        self._watcher = parts.watcher(self._built, self._journal, plan.limits, resources, self._comparers)
        self._pinger = Pinger(settings, resources)

    async def run(self) -> None:
        """Run until cancelled. LostStoreError if the store is another monitor's now."""
        plan, published_at = self._settings.plan(), self._journal.ledger.published_at
        log.info("started", checks=len(plan.checks()), monitored=len(plan.monitored), resumed=published_at is not None)
        chains = self._settings.description().chains
        self._resources.instruments.describe_watched(chains, plan.own_services, self._built)
        self._resources.instruments.count_tasks_of(asyncio.get_running_loop())
        self._journal.start()
        self._set_compared_lists()
        try:
            async with asyncio.TaskGroup() as tasks:
                others = (
                    tasks.create_task(self._watcher.run(), name="watch"),
                    tasks.create_task(self._watch_clock(), name="clock"),
                    tasks.create_task(self._pinger.run(), name="ping"),
                )
                publishing = tasks.create_task(self._publish(others), name="publish")
        finally:
            self.notices.stop()
            self._journal.stop()
            log.info("stopped")
        if lost := publishing.result():
            raise lost

    def pieces(self) -> Mapping[str, bytes]:
        """What a monitor that goes on from here has to be given, whether or not it could be stored."""
        kept = self._publisher.keep()
        return {} if kept.state.history is None else all_pieces(*kept).put

    async def _publish(self, others: Sequence[asyncio.Task[None]]) -> LostStoreError | None:
        """Publish until the store is lost, which ends the others. That is no failure of the group: one that fails
        forgets whether it was cancelled meanwhile."""
        try:
            await self._publisher.run()
        except LostStoreError as lost:
            for other in others:
                other.cancel()
            return lost
        return None

    async def _watch_clock(self) -> None:
        """After the clock was set, ask everything again (M12). While it is wrong, the operator is to know (M17)."""
        stepped, clock, reported_ms = self._journal.timeline.stepped, self._resources.clock, 0
        while True:
            verdict_ms = self._watcher.own_clock.verdict_ms(clock.elapsed_ms())
            if verdict_ms is not None and verdict_ms * reported_ms <= 0 and verdict_ms != reported_ms:
                reported_ms = verdict_ms
                self._report_clock(verdict_ms)
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await stepped.wait()
            except TimeoutError:
                self._journal.detect_clock_step()
            if stepped.is_set():
                stepped.clear()
                self._watcher.wake()

    def _report_clock(self, error_ms: int) -> None:
        if error_ms:
            log.error("a fault of the monitor's own", error=describe_clock_error(error_ms), lacking="clock")
            self._resources.instruments.count_own_fault("clock")
        else:
            log.info("this machine's clock is right again")
        self._journal.alerts.report_clock(self._journal.now(), error_ms)

    def _set_compared_lists(self) -> None:
        self._journal.set_compared_lists({each.comparison.check: each.comparison.subject() for each in self._comparers})

    def _encode_learned(self) -> dict[str, bytes]:
        """What the sources and the comparisons have to remember (M7, S19)."""
        sightings = encode_sightings(self._resources.seen_by(self._built.sources))
        return {**sightings, **self._journal.coverages.pieces()}


Build = Callable[[Settings, Mapping[str, bytes], Recorder | None], Monitor]


class Succession:
    """Runs a monitor and, after each reload, the next one, which goes on from what the last one knew. Probes under way
    are dropped, and count as nothing."""

    def __init__(
        self, build: Build, settings: Settings, stored: Mapping[str, bytes], recorder: Recorder | None
    ) -> None:
        """StateError if what is stored cannot be read."""
        self.monitor = build(settings, stored, recorder)
        self._build = build
        self._next: asyncio.Future[Callable[[], Monitor]]  # while it runs
        self._has_begun = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled. LostStoreError if the store is another monitor's now."""
        try:
            while True:
                self._next = asyncio.get_running_loop().create_future()
                running = asyncio.create_task(self.monitor.run(), name="monitor")
                self._has_begun.set()
                try:
                    await asyncio.wait((running, self._next), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                if not running.cancelled():
                    running.result()
                await asyncio.sleep(GATHER_MS / 1000)  # after the last publication (M5)
                self.monitor = self._next.result()()
        finally:
            self._has_begun.set()  # a reload that waits uses its settings when there is a monitor again

    async def replace(self, settings: Settings, recorder: Recorder | None) -> None:
        """Let a monitor of these settings go on. If it cannot be built, nothing changes, and the error says why."""
        self._build(settings, self.monitor.pieces(), recorder)
        self._has_begun.clear()
        self._next.set_result(lambda: self._build(settings, self.monitor.pieces(), recorder))
        await self._has_begun.wait()


def _resume_ledger(plan: Plan, stored: Mapping[str, bytes], ledger: Callable[[Plan, State | None], Ledger]) -> Ledger:
    try:
        return ledger(plan, decode_state(stored))
    except StateError as error:
        raise StateError(f"the store is damaged: {error}; restore a backup, or begin a new store") from None
    except ValueError as error:
        raise StateError(f"{error}; set history.bucket_s back, or choose another file in store.url") from None
