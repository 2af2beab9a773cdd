"""From what was observed to what is stored: the ledger, its publications, and the thread that writes them."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

from lookout.base.clock import Clock
from lookout.base.threads import Caller, DaemonThread
from lookout.core.heads import Heads, Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Found, Observation, Row
from lookout.core.plan import Limits, Plan
from lookout.documents.document import Document, PlainName
from lookout.documents.reports import RowCache, history_document, live_document
from lookout.monitor.alerts import NOBODY, Alerts
from lookout.monitor.metrics import Instruments
from lookout.monitor.publication_writer import PublicationWriter
from lookout.monitor.recorder import Recorder
from lookout.state.differ import Kept
from lookout.state.log import Event, HeadRead, Started, Stopped
from lookout.store.protocol import LostStoreError, Writer

GATHER_MS: Final = 500  # at most two publications a second (M5)
STEP_MS: Final = 5_000  # a jump of the wall clock from which on it was set
LAST_WRITE_S: Final = 5.0  # how long the end waits for a store that hangs
_store_thread = partial(DaemonThread, "store")

log = structlog.get_logger("monitor")


class Publisher:
    """Owns the ledger. All that it is told happens on the event loop; only the writing has a thread of its own."""

    def __init__(
        self,
        ledger: Ledger,
        writer: Writer,
        clock: Clock,
        limits: Limits,
        write_history_every_ms: int,
        sources_pieces: Callable[[], dict[str, bytes]] = dict,
        recorder: Recorder | None = None,
        instruments: Instruments | None = None,
        open_thread: Callable[[], AbstractContextManager[Caller]] = _store_thread,
        alerts: Alerts | None = None,
    ) -> None:
        """The store is written to by what ``open_thread`` gives."""
        self._ledger = ledger
        self._clock = clock
        self._heartbeat_ms = _heartbeat_ms(limits)
        self._write_history_every_ms = write_history_every_ms
        self._sources_pieces = sources_pieces
        self._recorder = recorder
        self._instruments = instruments or Instruments(CollectorRegistry(), clock)
        self._open_thread = open_thread
        self._alerts = alerts or Alerts(NOBODY, {}, clock, self._instruments)
        self._changed = asyncio.Event()
        self._writer = PublicationWriter(writer, clock, self._instruments)
        self._row_cache = RowCache()
        self._last_at = self._wall_at = self._elapsed_ms = 0
        self.clock_was_set = asyncio.Event()
        self._history_due_ms = clock.elapsed_ms()

    def start(self) -> None:
        """The monitor begins to run."""
        self._wall_at, self._elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        at, last_at = self._wall_at, self._ledger.published_at
        if last_at is not None and at < last_at <= at + STEP_MS:
            at = last_at  # the clock of the monitor before may have been a little ahead: generatedAt never goes back
        self._start(at, None)

    def look_at_the_clock(self) -> None:
        """Notice a wall clock that was set: that is a stop and a start (M12), and ``clock_was_set`` tells of it."""
        now, elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        expected_at = self._wall_at + elapsed_ms - self._elapsed_ms
        self._wall_at, self._elapsed_ms = now, elapsed_ms
        if abs(now - expected_at) > STEP_MS:
            log.warning("the clock was set", by_s=(now - expected_at) / 1000)
            self._start(now, expected_at)
            self.clock_was_set.set()

    def stop(self) -> None:
        self._record(Stopped(self._instant()))

    def replan(self, plan: Plan, write_history_every_ms: int, recorder: Recorder | None) -> None:
        """Go on under another plan, of which both documents tell with the next publication; and record with this one,
        as far as it is another."""
        self._ledger.replan(plan)
        self._heartbeat_ms = _heartbeat_ms(plan.limits)
        self._write_history_every_ms = write_history_every_ms
        self._history_due_ms = self._clock.elapsed_ms()
        self._changed.set()
        if recorder is not self._recorder:
            self._record(Stopped(self._instant()))
            self._recorder = recorder
            self._record(Started(self._instant()))

    def observe(self, check: Check, found: Found) -> Row:
        """A probe completed just now."""
        before = self._ledger.row(check)
        seen = Observation(check, self._instant(), found)
        row = self._ledger.observe(seen)
        self._changed.set()
        self._record(seen)
        if row.status != before.status:
            log.info("status", check=row.check.name, status=row.status, reason=row.reason, was=before.status)
        return row

    def heads(self, chain_id: int) -> Heads:
        """A chain's heads of the last hour."""
        return self._ledger.heads(chain_id)

    def hear_endpoint(self) -> None:
        """An endpoint answered, whatever comes of it: the monitor is not blind (M13)."""
        self._ledger.hear(self._clock.now())

    def read_head(self, chain_id: int, answer: Reading) -> None:
        """A chain's endpoints agree on this answer. It is no new head if it is the last one, or was read before it
        (M8). A head changes no row, and so asks for no publication."""
        at = self._instant()
        if self.clock_was_set.is_set():
            # A clock set forward makes every answer too old but this one, which might be the one that lies. All are
            # about to be asked again.
            return
        # Not before it was read, as the log has it: a clock that is slowed down may go back by less than a step.
        at = self._last_at = max(at, answer.at)
        last = self._ledger.heads(chain_id).newest_of_run
        if last is None or (answer != last and answer.at >= last.at):
            self._ledger.read_head(chain_id, answer)
            self._record(HeadRead(at, chain_id, answer))

    async def run(self) -> None:
        """Publish what changed, gathered, and at least as often as the heartbeat says (M5). LostStoreError if the store
        is another monitor's now."""
        with self._open_thread() as thread:
            try:
                async with self._alerts.sending(self._changed.set):
                    await self._publish_always(thread)
            except LostStoreError:
                self._changed.clear()  # whatever was accepted meanwhile: who took over knows better
                raise
            finally:
                if self._changed.is_set() or self._writer.has_unwritten:  # a clean stop loses nothing
                    await self._publish_the_last(thread)

    async def _publish_always(self, thread: Caller) -> None:
        while True:
            began_ms = self._clock.elapsed_ms()
            await self._publish(thread)
            await asyncio.sleep(max(0, began_ms + GATHER_MS - self._clock.elapsed_ms()) / 1000)
            await self._wait_for_change(began_ms + self._heartbeat_ms)

    async def _wait_for_change(self, until_ms: int) -> None:
        try:
            async with asyncio.timeout(max(0, until_ms - self._clock.elapsed_ms()) / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _publish_the_last(self, thread: Caller) -> None:
        """A disk that hangs is not waited for: the end would never come."""
        try:
            await asyncio.wait_for(self._publish(thread), LAST_WRITE_S)
        except TimeoutError:
            log.error("the last publication was not stored: the store hangs", waited_s=LAST_WRITE_S)
        except LostStoreError as lost:  # who is to end does not stand by instead
            log.warning("the last publication was not stored", why=str(lost))

    async def _publish(self, thread: Caller) -> None:
        self._changed.clear()
        at = self._instant()
        self._ledger.publish(at)
        self._instruments.published(at, self._ledger.rows)
        self._alerts.published(at, self._ledger.rows)
        documents: dict[PlainName, Document] = {"live": live_document(self._ledger.report(), self._row_cache.live_row)}
        with_history = self._clock.elapsed_ms() >= self._history_due_ms
        if with_history:
            documents["history"] = history_document(self._ledger.view())
            self._history_due_ms = self._clock.elapsed_ms() + self._write_history_every_ms
        kept = Kept(self._ledger.state(), {**self._sources_pieces(), **self._alerts.pieces()})
        began_ms = self._clock.elapsed_ms()
        try:
            is_stored = await self._writer.write(thread, documents, kept)
        except LostStoreError:
            self._changed.clear()
            raise
        if is_stored:
            self._alerts.stored(began_ms)
            return
        self._changed.set()  # so that it is tried again soon
        if with_history:
            self._history_due_ms = began_ms

    def _instant(self) -> int:
        """Now, and never before the instant last used: a clock that is slowed down a little must not unorder events."""
        self.look_at_the_clock()
        self._last_at = max(self._last_at, self._wall_at)
        return self._last_at

    def _start(self, at: int, last_at: int | None) -> None:
        self._last_at = at
        self._ledger.start(at, last_at)
        self._alerts.start()
        self._changed.set()
        self._record(Started(at))

    def _record(self, event: Event) -> None:
        if self._recorder is not None:
            self._recorder.record(event)


def _heartbeat_ms(limits: Limits) -> int:
    """A publication that is due on the second may begin a little late: generatedAt is not to show it."""
    return limits.heartbeat_ms - min(1_000, limits.heartbeat_ms // 10)
