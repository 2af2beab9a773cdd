"""The whole monitor, and how it is restarted in place with other settings."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

from lookout.base.clock import Clock
from lookout.base.concurrency import Caller
from lookout.base.logger import get_logger
from lookout.config.settings import Settings, Upstreams, seen_by, upstreams_of
from lookout.config.tables import PingTable
from lookout.core.ledger import Ledger, State
from lookout.core.own_clock import describe_clock_error
from lookout.core.plan import Plan
from lookout.documents.document import StateError
from lookout.monitor.alerts import Alerts
from lookout.monitor.comparer import build_comparers
from lookout.monitor.journal import Journal, Timeline
from lookout.monitor.list_readers import build_list_readers
from lookout.monitor.lists import Lists
from lookout.monitor.metrics import Instruments
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import GATHER_MS, Publisher
from lookout.monitor.recorder import Record, Recorder
from lookout.monitor.watcher import Watcher
from lookout.protocols.client.session import Session, open_session
from lookout.public.about import Description
from lookout.state.codec import decode_coverages, decode_links, decode_node_gaps, decode_sightings, decode_state
from lookout.store.protocol import LostStoreError, Writer

_CLOCK_EVERY_S: Final = 0.5

log = get_logger()


def build_monitor(
    settings: Settings,
    stored: Mapping[str, bytes],
    writer: Writer,
    store: Caller,
    clock: Clock,
    instruments: Instruments,
    recorder: Recorder | None = None,
    config: str = "",
) -> "Monitor":
    """A monitor of these settings that resumes the stored state; StateError if that cannot be read. ``config`` is the
    path of the configuration file, for messages. ``store`` makes the writer's calls."""
    plan, description, policy = settings.plan(), settings.description(), settings.alert_policy(config)
    lists, counted = settings.transaction_lists(), settings.counted_lists()
    upstreams = upstreams_of(settings, decode_sightings(stored))
    ledger, alerts = resume_ledger(plan, stored), Alerts(policy, stored, clock, instruments)
    known = Lists(decode_coverages(stored), decode_links(stored), decode_node_gaps(stored))
    beside = {node: indexer for node, (indexer, _) in counted.items()}
    journal = Journal(ledger, Timeline(clock), alerts, recorder, known, beside)
    notices = NoticeKeeper(description, plan, stored, journal)
    seen, history_every_s = partial(seen_by, upstreams.sources), settings.history.write_every_s
    publisher = Publisher(plan, description, history_every_s, journal, notices, seen, writer, store, clock, instruments)
    comparers = build_comparers(lists, upstreams, clock, journal.hear_position, instruments.count)
    readers = build_list_readers(settings.linked_lists(), counted, plan, journal, clock, instruments)
    watcher = Watcher(upstreams, journal, plan.limits, clock, instruments, comparers, readers)
    return Monitor(plan, description, settings.ping, upstreams, journal, notices, publisher, watcher, instruments)


def resume_ledger(
    plan: Plan, stored: Mapping[str, bytes], make: Callable[[Plan, State | None], Ledger] = Ledger
) -> Ledger:
    """StateError if the stored state does not fit this plan."""
    try:
        return make(plan, decode_state(stored))
    except StateError as error:
        raise StateError(f"the store is damaged: {error}; restore a backup, or begin a new store") from None
    except ValueError as error:
        raise StateError(f"{error}; set history.bucket_s back, or choose another file in store.url") from None


class Monitor:
    """Probes, judges, publishes and stores. It runs once."""

    def __init__(
        self,
        plan: Plan,
        description: Description,
        ping: PingTable,
        upstreams: Upstreams,
        journal: Journal,
        notices: NoticeKeeper,
        publisher: Publisher,
        watcher: Watcher,
        instruments: Instruments,
        open_session: Callable[[float], AbstractAsyncContextManager[Session]] = open_session,
    ) -> None:
        self.notices = notices
        self.publisher = publisher
        self.recheck = watcher.recheck
        self._plan = plan
        self._description = description
        self._ping = ping
        self._upstreams = upstreams
        self._journal = journal
        self._watcher = watcher
        self._instruments = instruments
        self._open_session = open_session

    async def run(self) -> None:
        """Run until cancelled. LostStoreError if the store is another monitor's now."""
        plan, published_at = self._plan, self._journal.ledger.published_at
        log.info("started", checks=len(plan.checks()), monitored=len(plan.monitored), resumed=published_at is not None)
        self._instruments.describe_watched(self._description.chains, plan.own_services, self._upstreams)
        self._instruments.count_tasks_of(asyncio.get_running_loop())
        self._journal.start()
        self._watcher.set_read_lists()
        pinger = Pinger(self._ping, plan.limits, self._instruments)
        try:
            async with self._open_session(plan.limits.probe_timeout_ms / 1000) as session, asyncio.TaskGroup() as tasks:
                others = (
                    tasks.create_task(self._watcher.run(session), name="watch"),
                    tasks.create_task(self._watch_clock(), name="clock"),
                    tasks.create_task(pinger.run(session), name="ping"),
                )
                publishing = tasks.create_task(self._publish(others), name="publish")
        finally:
            self.notices.stop()
            self._journal.stop()
            log.info("stopped")
        if lost := publishing.result():
            raise lost

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
        stepped, reported_ms = self._journal.timeline.stepped, 0
        while True:
            verdict_ms = self._watcher.judge_own_clock()
            if verdict_ms is not None and verdict_ms * reported_ms <= 0 and verdict_ms != reported_ms:
                reported_ms = verdict_ms
                self._report_clock(verdict_ms)
            try:
                async with asyncio.timeout(_CLOCK_EVERY_S):
                    await stepped.wait()
            except TimeoutError:
                self._journal.detect_clock_step()
            if stepped.is_set():
                stepped.clear()
                self._watcher.wake()

    def _report_clock(self, error_ms: int) -> None:
        if error_ms:
            log.error("a fault of the monitor's own", error=describe_clock_error(error_ms), lacking="clock")
            self._instruments.count_own_fault("clock")
        else:
            log.info("this machine's clock is right again")
        self._journal.alerts.report_clock(self._journal.now(), error_ms)


Build = Callable[[Settings, Mapping[str, bytes], Recorder | None], Monitor]


class Succession:
    """Runs a monitor and, after each reload, the next one, which resumes the state of the last. Probes under way are
    dropped, and do not count."""

    def __init__(self, build: Build, settings: Settings, stored: Mapping[str, bytes], record: Record) -> None:
        """StateError if the stored state cannot be read. The record already has the recorder of these settings."""
        self.monitor = build(settings, stored, record.recorder)
        self._build = build
        self._record = record
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
            self._has_begun.set()  # a waiting reload continues

    async def replace(self, settings: Settings) -> None:
        """Replace the monitor by one with these settings. If the state does not fit them, nothing changes:
        StateError."""
        self._build(settings, self.monitor.publisher.pieces(), None)
        recorder = self._record.open(settings.monitor)
        self._has_begun.clear()
        self._next.set_result(lambda: self._build(settings, self.monitor.publisher.pieces(), recorder))
        await self._has_begun.wait()
        self._record.use(recorder)
