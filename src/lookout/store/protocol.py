"""What a store has to do, for the monitor that writes and for the servers that read."""

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, Self

from lookout.base.logger import get_logger
from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName

_LARGEST_STEP: Final = 2**32

log = get_logger()


class Snapshot(NamedTuple):
    documents: dict[DocumentName, Document]
    pieces: dict[str, bytes]


class StoreError(Exception):
    """The store cannot be used, or not now; the text says which and why, in one sentence."""


class StoreBusyError(StoreError):
    """Another monitor is writing to the store."""


class StoreUnreachableError(StoreError):
    """The store does not answer; it may, later."""


class LostStoreError(StoreError):
    """The store is not this writer's any more: another monitor has taken over, or another store is in its place. A
    writer that raised it writes nothing ever after; open another one, and load."""


class StoreBehindError(StoreError):
    """The store is this writer's, but not as this writer left it, as after a restored backup: write all documents, and
    pieces that replace all."""


class StorePosition(NamedTuple):
    """How far a store's writing has come: in which writer's epoch, and how often that has written."""

    epoch: int
    writes: int

    def begin_epoch(self) -> Self:
        """The position of a writer that takes over here."""
        # By a random step: two stores that were both begun from nothing, or from one backup, have different epochs.
        return self._replace(epoch=self.epoch + 1 + secrets.randbelow(_LARGEST_STEP), writes=0)

    def require_own(self, found: Self, store: object) -> None:
        """LostStoreError if the found epoch is not that of the writer at this position."""
        if found.epoch != self.epoch:
            raise taken_over(store)

    def advance(self, found: Self, pieces: Pieces, store: object) -> Self:
        """The position after a write by the writer at this position; ``found`` was read in the write's transaction.
        LostStoreError if its epoch is another one; StoreBehindError if the store has to be written whole."""
        self.require_own(found, store)
        if found != self and not pieces.replace_all:
            raise StoreBehindError(f"{store}: is not as this monitor left it")
        return self._replace(writes=max(self.writes, found.writes) + 1)


NOBODY: Final = StorePosition(0, 0)
"""The position of a store that no writer has opened yet."""


def taken_over(store: object) -> LostStoreError:
    return LostStoreError(f"{store}: another monitor has taken over, or another store was put in its place")


def refuse_newer(store: object, version: int, known: int) -> None:
    if version > known:
        raise StoreError(f"{store}: written by a newer version of Lookout (schema {version}, this one knows {known})")


def log_upgrade(store: object, version: int, known: int) -> None:
    """Say that a store that an earlier version made was brought up to date; a new one is of version 0."""
    if 0 < version < known:
        log.info("the store's format was upgraded", store=str(store), schema_was=version, schema=known)


class Writer(Protocol):
    """The one monitor's side. Only one writer is open at a time: opening a second one fails (StoreBusyError)."""

    def load(self) -> dict[str, bytes]:
        """Every stored piece of the state."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        """Store a publication, all of it or nothing. StoreBehindError if all pieces have to be written."""

    def close(self) -> None:
        """Let another writer in."""


class Reader(Protocol):
    """A server's side."""

    def changed(self) -> bool:
        """Whether there may be something new since the last call; at first there is."""

    def read(self, name: DocumentName) -> Document | None:
        """A document, or None if it was never written."""

    def close(self) -> None: ...
