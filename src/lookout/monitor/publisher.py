"""Publications: from the ledger to the store."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from lookout.base.clock import Clock
from lookout.base.concurrency import Worker, ends_within
from lookout.base.instants import format_second
from lookout.base.logger import get_logger
from lookout.core.ledger import State
from lookout.core.plan import Limits, Plan
from lookout.documents.document import Document, DocumentName, etag, with_compressed
from lookout.documents.reports import history_document, live_document
from lookout.monitor.journal import Journal
from lookout.monitor.metrics import Instruments, Publication
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.public.about import Description, describe_note
from lookout.state.codec import NOTHING_ENCODED, EncodedState, encode_sightings, encode_state
from lookout.store.protocol import LostStoreError, StoreError, Writer

GATHER_MS: Final = 500  # shortest time between publications (M5)
LAST_WRITE_S: Final = 5.0  # how long a shutdown waits for a store that hangs
_PATIENCE_S: Final = 2.0  # how long alerts wait for a write

log = get_logger()


@dataclass(eq=False)
class Publisher:
    """Publishes the ledger: changes together, and at least once per heartbeat. It runs on the event loop; only writes
    have a thread of their own."""

    plan: Plan
    description: Description
    history_every_s: float
    journal: Journal
    notices: NoticeKeeper
    seen: Callable[[], Mapping[str, SeenBroadcasters]]
    """What the sources have to remember (M7)."""
    unclaimed: Mapping[str, bytes]
    """Stored documents that are written along."""
    writer: Writer
    store: Worker
    """Makes all writes, also the previous monitor's: so they stay in order."""
    clock: Clock
    instruments: Instruments
    _documents: dict[DocumentName, Document] = field(default_factory=dict)  # the last of every name
    _encoded: EncodedState = NOTHING_ENCODED  # the last
    _stored_about: bytes = b""
    _history_due_ms: int | None = None  # at once
    _is_failing: bool = False
    _has_unwritten: bool = False  # a write failed, or did not end in time

    async def run(self) -> None:
        """Publish changes together, and at least once per heartbeat (M5). LostStoreError if another monitor took over
        the store."""
        try:
            async with AsyncExitStack() as running:
                for feature in self.journal.features:
                    await running.enter_async_context(feature.running())
                await self._publish_always()
        except LostStoreError:
            self.journal.changed.clear()  # the state in the store is the other monitor's now
            raise
        finally:
            if self.journal.changed.is_set() or self._has_unwritten:  # so that a clean stop loses nothing
                await self._publish_the_last()

    def state_documents(self) -> Mapping[str, bytes]:
        """The state from which the next monitor resumes, stored or not (M7)."""
        state = self.journal.ledger.state()
        return {} if state.history is None else encode_state(state, self._encode_others()).documents

    def _encode_others(self) -> dict[str, bytes]:
        """The state of everything but the ledger."""
        others = {**self.unclaimed, **encode_sightings(self.seen()), **self.notices.pieces}
        for feature in self.journal.features:
            others.update(feature.documents())
        return others

    async def _publish_always(self) -> None:
        while True:
            began_ms = self.clock.elapsed_ms()
            await self._publish()
            await asyncio.sleep(max(0, began_ms + GATHER_MS - self.clock.elapsed_ms()) / 1000)
            with suppress(TimeoutError):
                until_ms = began_ms + _heartbeat_ms(self.plan.limits)
                async with asyncio.timeout(max(0, until_ms - self.clock.elapsed_ms()) / 1000):
                    await self.journal.changed.wait()

    async def _publish_the_last(self) -> None:
        """Publish, without waiting for a disk that hangs, which would block the shutdown."""
        try:
            if not await ends_within(self._publish(), LAST_WRITE_S):
                log.error("the last publication was not stored: the store hangs", waited_s=LAST_WRITE_S)
        except LostStoreError as lost:  # a monitor that stops does not become a standby
            log.warning("the last publication was not stored", why=str(lost))

    async def _publish(self) -> None:
        ledger, clock = self.journal.ledger, self.clock
        self.journal.changed.clear()
        at = self.journal.now()
        publication = self._advance(at)
        documents: dict[DocumentName, Document] = {"live": live_document(ledger.report())}
        with_history = self._history_due_ms is None or clock.elapsed_ms() >= self._history_due_ms
        if with_history:
            view = ledger.view()
            documents["history"] = history_document(view)
            self.instruments.set_uptimes({row.check: row.uptime for row in view.rows})
            self._history_due_ms = clock.elapsed_ms() + round(self.history_every_s * 1000)
        about = self._describe(at)
        if with_history or about != self._stored_about:  # a note does not wait for the next history
            documents["about"] = Document(about, etag(about), at)
        self.notices.begin_write()
        for feature in self.journal.features:
            feature.begin_write()
        began_ms = clock.elapsed_ms()
        if await self._write(documents, publication):
            self._stored_about = about
            for feature in self.journal.features:
                feature.mark_stored()
            self.notices.mark_stored()
            return
        self.journal.changed.set()  # so that it is retried soon
        if with_history:
            self._history_due_ms = began_ms

    def _advance(self, at: int) -> Publication:
        """Make the ledger's next publication, and the news of it."""
        ledger = self.journal.ledger
        ledger.publish(at)
        for feature in self.journal.features:
            feature.publish(at, ledger.published_rows)
        return self.instruments.published(at, ledger.published_rows, ledger.progress(at))

    async def _write(self, documents: Mapping[DocumentName, Document], publication: Publication) -> bool:
        """Write a publication, and return whether it is stored. While the store hangs, alerts and metrics go on
        (M17)."""
        state, others = self.journal.ledger.state(), self._encode_others()
        writing = asyncio.ensure_future(self._store_publication(documents, publication, state, others))
        try:
            while not (await asyncio.wait((writing,), timeout=_PATIENCE_S))[0]:
                self.instruments.board.note_store("it does not answer")
                self._advance(self.journal.now())
                self.journal.changed.set()
            return writing.result()
        finally:
            writing.cancel()

    async def _store_publication(
        self,
        documents: Mapping[DocumentName, Document],
        publication: Publication,
        state: State,
        others: Mapping[str, bytes],
    ) -> bool:
        """Encode and write it, in the store's thread."""
        began_ms, instruments = self.clock.elapsed_ms(), self.instruments
        self._has_unwritten = True
        try:
            await self.store.call(lambda: self._encode_and_write(documents, state, others))
        except LostStoreError:
            self._has_unwritten = False  # the store is the other monitor's now
            raise
        except StoreError as error:
            instruments.not_stored(self.clock.elapsed_ms() - began_ms)
            instruments.board.note_store(str(error))
            if not self._is_failing:
                log.error("not stored; trying again with every publication", error=str(error))
            self._is_failing = True
            return False
        instruments.stored(publication, self.clock.elapsed_ms() - began_ms)
        instruments.board.note_store(None)
        if self._is_failing:
            log.info("stored again")
        self._is_failing = self._has_unwritten = False
        return True

    def _encode_and_write(
        self, documents: Mapping[DocumentName, Document], state: State, others: Mapping[str, bytes]
    ) -> None:
        self._documents = {**self._documents, **with_compressed(documents)}
        self._encoded = encode_state(state, others, self._encoded)
        self.writer.write(self._documents, self._encoded.documents)

    def _describe(self, at: int) -> bytes:
        notices = self.notices.current
        notes = (*notices.list_valid(at, "note"), *notices.list_past_notes(at))
        progress = self.journal.ledger.progress(at)
        chains = tuple(
            replace(chain, no_block_since=format_second(since_at))
            if chain.id in progress and (since_at := progress[chain.id].stands_since_at) is not None
            else chain
            for chain in self.description.chains
        )
        description = replace(self.description, chains=chains, notes=[describe_note(note) for note in notes])
        for feature in self.journal.features:
            description = feature.describe(description, at)
        return description.encode()


def _heartbeat_ms(limits: Limits) -> int:
    """The heartbeat, a little early: a late start must not show in generatedAt, which has whole seconds."""
    return limits.heartbeat_ms - min(1_000, limits.heartbeat_ms // 10)
