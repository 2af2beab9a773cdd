"""Publications on their way into the store."""

from collections.abc import Mapping

from lookout.base.clock import Clock
from lookout.base.concurrency import Caller
from lookout.base.logger import get_logger
from lookout.documents.document import Document, DocumentName, with_compressed
from lookout.monitor.metrics import Instruments
from lookout.state.differ import Backlog, Kept
from lookout.store.protocol import LostStoreError, StoreBehindError, StoreError, Writer

log = get_logger("monitor")


class PublicationWriter:
    """Writes publications, each with what changed since the one before. What could not be written is written with the
    next; a store that is not as it was left is written whole."""

    def __init__(self, writer: Writer, clock: Clock, instruments: Instruments) -> None:
        self._writer = writer
        self._clock = clock
        self._instruments = instruments
        self._backlog = Backlog()
        self._documents: dict[DocumentName, Document] = {}  # the last of each name
        self._is_failing = False

    @property
    def has_unwritten(self) -> bool:
        """Whether a write failed, or was not waited for to its end."""
        return not self._backlog.is_empty

    async def write(self, thread: Caller, documents: Mapping[DocumentName, Document], kept: Kept) -> bool:
        """Write a publication on this thread; whether that went well. LostStoreError if the store is another monitor's
        now."""
        self._documents |= documents
        began_ms = self._clock.elapsed_ms()
        try:
            await self._write(thread, documents, kept)
        except LostStoreError:
            self._backlog.clear()  # the monitor that took over knows better
            raise
        except StoreError as error:
            self._instruments.not_stored(self._clock.elapsed_ms() - began_ms)
            if not self._is_failing:
                log.error("not stored; trying again with every publication", error=str(error))
            self._is_failing = True
            return False
        self._instruments.stored(self._clock.elapsed_ms() - began_ms)
        if self._is_failing:
            log.info("stored again")
        self._is_failing = False
        self._backlog.clear()
        return True

    async def _write(self, thread: Caller, documents: Mapping[DocumentName, Document], kept: Kept) -> None:
        pieces = self._backlog.add(kept)
        if pieces.replace_all:
            documents = self._documents
        try:
            await thread.call(lambda: self._writer.write(with_compressed(documents), pieces))
        except StoreBehindError as behind:
            log.warning("the store is not as it was left; writing everything into it", why=str(behind))
            self._backlog = Backlog()  # its first pieces are all pieces
            await self._write(thread, documents, kept)
