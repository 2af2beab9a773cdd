"""From the ledger to what is stored: publications, and the thread that writes them."""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from lookout.base.threads import Caller
from lookout.config.settings import Settings
from lookout.core.plan import Limits
from lookout.documents.document import Document, PlainName, with_compressed
from lookout.documents.reports import RowCache, history_document, live_document
from lookout.monitor.alerts import Alerts
from lookout.monitor.journal import Journal
from lookout.monitor.resources import Resources
from lookout.state.pieces import Pieces, encode_changes, merge, sealed
from lookout.state.seal import Seal
from lookout.store.protocol import LostStoreError, StoreError

GATHER_MS: Final = 500  # at most two publications a second (M5)
LAST_WRITE_S: Final = 5.0  # how long the end waits for a store that hangs
_NO_PIECES: Final = Pieces({}, (), whole=False)

log = structlog.get_logger("monitor")


class Publisher:
    """Publishes the ledger: gathered, when something changed, and as often as the heartbeat demands. It runs on the
    event loop; only the writing has a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        alerts: Alerts,
        sources_pieces: Callable[[], dict[str, bytes]],
        resources: Resources,
    ) -> None:
        self._ledger = journal.ledger
        self._journal = journal
        self._changed = journal.changed
        self._alerts = alerts
        self._sources_pieces = sources_pieces
        self._writer = resources.writer
        self._open_thread = resources.open_store_thread
        self._clock = resources.clock
        self._instruments = resources.instruments
        self._alert_pieces: dict[str, bytes] = {}
        self._unwritten = _NO_PIECES
        self._seal = Seal()
        self._row_cache = RowCache()
        self._failing = False
        self.apply_settings(settings)

    def apply_settings(self, settings: Settings) -> None:
        """Both documents have the new plan from the next publication on."""
        self._heartbeat_ms = _heartbeat_ms(settings.plan().limits)
        self._write_history_every_ms = round(settings.history.write_every_s * 1000)
        self._history_due_ms = self._clock.elapsed_ms()

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
                if self._changed.is_set() or self._unwritten.put:  # a clean stop loses nothing
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
        at = self._journal.now()
        self._ledger.publish(at)
        self._instruments.published(at, self._ledger.rows)
        self._alerts.advance(at, self._ledger.rows)
        documents: dict[PlainName, Document] = {"live": live_document(self._ledger.report(), self._row_cache.live_row)}
        with_history = self._clock.elapsed_ms() >= self._history_due_ms
        if with_history:
            documents["history"] = history_document(self._ledger.view())
            self._history_due_ms = self._clock.elapsed_ms() + self._write_history_every_ms
        changes = encode_changes(self._ledger.changes())
        pieces = merge(self._unwritten, Pieces(changes.put | self._sources_pieces(), changes.delete, changes.whole))
        pieces = sealed(merge(pieces, self._changed_alerts(whole=changes.whole)), self._seal)
        self._unwritten = pieces
        began_ms = self._clock.elapsed_ms()
        try:
            await thread.call(lambda: self._writer.write(with_compressed(documents), pieces))
        except LostStoreError:
            self._changed.clear()
            self._unwritten = _NO_PIECES  # who took over knows better
            raise
        except StoreError as error:
            self._changed.set()  # so that it is tried again soon
            if with_history:
                self._history_due_ms = began_ms
            self._instruments.not_stored(self._clock.elapsed_ms() - began_ms)
            if not self._failing:
                log.error("not stored; trying again with every publication", error=str(error))
            self._failing = True
            return
        self._instruments.stored(self._clock.elapsed_ms() - began_ms)
        self._alerts.mark_stored(began_ms)
        if self._failing:
            log.info("stored again")
        self._failing = False
        self._unwritten = _NO_PIECES

    def _changed_alerts(self, *, whole: bool) -> Pieces:
        before, now = self._alert_pieces, self._alerts.pieces()
        self._alert_pieces = now
        put = {name: piece for name, piece in now.items() if whole or before.get(name) != piece}
        return Pieces(put, tuple(name for name in before if name not in now), whole=False)


def _heartbeat_ms(limits: Limits) -> int:
    """A publication that is due on the second may begin a little late: generatedAt is not to show it."""
    return limits.heartbeat_ms - min(1_000, limits.heartbeat_ms // 10)
