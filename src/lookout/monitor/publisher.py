"""From the ledger to what is stored: publications, and the thread that writes them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from lookout.base.concurrency import Caller, ends_within
from lookout.base.logger import get_logger
from lookout.config.settings import Settings
from lookout.core.cadence import GATHER_MS
from lookout.core.plan import Limits
from lookout.documents.document import Document, DocumentName, etag
from lookout.documents.reports import history_document, live_document
from lookout.monitor.journal import Journal
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.publication_writer import PublicationWriter
from lookout.monitor.resources import Resources
from lookout.public.about import describe_note
from lookout.state.differ import Kept
from lookout.store.protocol import LostStoreError

LAST_WRITE_S: Final = 5.0  # how long the end waits for a store that hangs

log = get_logger("monitor")


class Publisher:
    """Publishes the ledger: gathered, when something changed, and as often as the heartbeat demands. It runs on the
    event loop; only the writing has a thread of its own."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        notices: NoticeKeeper,
        sources_pieces: Callable[[], dict[str, bytes]],
        resources: Resources,
    ) -> None:
        self._journal = journal
        self._notices = notices
        self._sources_pieces = sources_pieces
        self._resources = resources
        self._writer = PublicationWriter(resources.writer, resources.clock, resources.instruments)
        self._stored_about = b""
        self._heartbeat_ms = _heartbeat_ms(settings.plan().limits)
        self._write_history_every_ms = round(settings.history.write_every_s * 1000)
        self._history_due_ms = resources.clock.elapsed_ms()
        self._description = settings.description()

    async def run(self) -> None:
        """Publish what changed, gathered, and at least as often as the heartbeat says (M5). LostStoreError if the store
        is another monitor's now."""
        with self._resources.open_thread("store") as thread:
            try:
                async with self._journal.alerts.sending(self._journal.changed.set):
                    await self._publish_always(thread)
            except LostStoreError:
                self._journal.changed.clear()  # the monitor that took over knows better what was accepted
                raise
            finally:
                if self._journal.changed.is_set() or self._writer.has_unwritten:  # a clean stop loses nothing
                    await self._publish_the_last(thread)

    def keep(self) -> Kept:
        """All that a monitor after this one goes on from (M7)."""
        others = {**self._sources_pieces(), **self._journal.alerts.pieces(), **self._notices.pieces}
        return Kept(self._journal.ledger.state(), others)

    async def _publish_always(self, thread: Caller) -> None:
        while True:
            began_ms = self._resources.clock.elapsed_ms()
            await self._publish(thread)
            await asyncio.sleep(max(0, began_ms + GATHER_MS - self._resources.clock.elapsed_ms()) / 1000)
            await self._wait_for_change(began_ms + self._heartbeat_ms)

    async def _wait_for_change(self, until_ms: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0, until_ms - self._resources.clock.elapsed_ms()) / 1000):
                await self._journal.changed.wait()

    async def _publish_the_last(self, thread: Caller) -> None:
        """A disk that hangs is not waited for: the end would never come."""
        try:
            if not await ends_within(self._publish(thread), LAST_WRITE_S):
                log.error("the last publication was not stored: the store hangs", waited_s=LAST_WRITE_S)
        except LostStoreError as lost:  # who is to end does not stand by instead
            log.warning("the last publication was not stored", why=str(lost))

    async def _publish(self, thread: Caller) -> None:
        ledger, clock = self._journal.ledger, self._resources.clock
        self._journal.changed.clear()
        at = self._journal.now()
        ledger.publish(at)
        self._resources.instruments.published(at, ledger.published_rows, ledger.progress(at))
        silenced = self._notices.find_silenced(at, (row.check for row in ledger.published_rows))
        self._journal.alerts.advance(at, ledger.published_rows, self._journal.causes, silenced)
        documents: dict[DocumentName, Document] = {"live": live_document(ledger.report())}
        with_history = clock.elapsed_ms() >= self._history_due_ms
        if with_history:
            view = ledger.view()
            documents["history"] = history_document(view)
            self._resources.instruments.set_uptimes({row.check: row.uptime for row in view.rows})
            self._history_due_ms = clock.elapsed_ms() + self._write_history_every_ms
        about = self._describe(at)
        if with_history or about != self._stored_about:  # no note waits for the next history
            documents["about"] = Document(about, etag(about), at)
        kept = self.keep()
        self._notices.begin_write()
        began_ms = clock.elapsed_ms()
        try:
            is_stored = await self._writer.write(thread, documents, kept)
        except LostStoreError:
            self._journal.changed.clear()
            raise
        if is_stored:
            self._stored_about = about
            self._journal.alerts.mark_stored(began_ms)
            self._notices.mark_stored()
            return
        self._journal.changed.set()  # so that it is tried again soon
        if with_history:
            self._history_due_ms = began_ms

    def _describe(self, at: int) -> bytes:
        """The deployment, with the notes of this instant."""
        notes = self._notices.list_valid(at, "note")
        return replace(self._description, notes=[describe_note(note) for note in notes]).encode()


def _heartbeat_ms(limits: Limits) -> int:
    """A publication that is due on the second may begin a little late: generatedAt is not to show it."""
    return limits.heartbeat_ms - min(1_000, limits.heartbeat_ms // 10)
