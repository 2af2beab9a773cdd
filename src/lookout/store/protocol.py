"""The interfaces of a store, for the monitor that writes and the servers that read."""

import secrets
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from lookout.base.logger import get_logger
from lookout.documents.document import Document, DocumentName

_LARGEST_STEP: Final = 2**32

log = get_logger()

_Name = TypeVar("_Name", bound=str)
_Value = TypeVar("_Value")


class Snapshot(NamedTuple):
    """The content of a store: the documents that servers read, and those of the monitor's state."""

    documents: Mapping[DocumentName, Document]
    state: Mapping[str, bytes]


class StoreError(Exception):
    """The store cannot be used, or not now; the text says why in one sentence."""


class StoreBusyError(StoreError):
    """Another monitor is writing to the store; ``is_elsewhere`` if it is known to be on another machine."""

    def __init__(self, text: str, *, is_elsewhere: bool = False) -> None:
        super().__init__(text)
        self.is_elsewhere = is_elsewhere


class StoreUnreachableError(StoreError):
    """The store does not answer now."""


class LostStoreError(StoreError):
    """The writer has lost the store: another monitor has taken over, or the store was replaced. All later writes fail;
    open another writer, and load."""


class StorePosition(NamedTuple):
    """A store's version: the writer's epoch, and the number of writes in it."""

    epoch: int
    writes: int

    def begin_epoch(self) -> Self:
        """The position of a writer that takes over at this position."""
        # A random step gives different epochs to two new stores, or to two copies of a backup.
        return self._replace(epoch=self.epoch + 1 + secrets.randbelow(_LARGEST_STEP), writes=0)

    def require_own(self, found: Self, store: object) -> None:
        """LostStoreError if the found epoch is not this position's."""
        if found.epoch != self.epoch:
            raise taken_over(store)


NO_WRITER: Final = StorePosition(0, 0)
"""The position of a store that no writer has opened yet."""


class Left(NamedTuple):
    """What a writer left in the store."""

    position: StorePosition = NO_WRITER
    content: Snapshot = Snapshot({}, {})

    def find_changes(self, found: StorePosition, content: Snapshot, store: object) -> tuple[Self, Snapshot]:
        """What a write of this content will leave, and the part of it to write: all of it if the store is not as it was
        left. ``found`` was read in the write's transaction; LostStoreError if its epoch is not the writer's."""
        self.position.require_own(found, store)
        was = self.content
        if found != self.position:
            log.warning("the store is not as it was left; writing everything into it", store=str(store))
            was = Snapshot({}, {})
        position = found._replace(writes=max(self.position.writes, found.writes) + 1)
        changes = Snapshot(_differences(was.documents, content.documents), _differences(was.state, content.state))
        return self._replace(position=position, content=content), changes


def _differences(was: Mapping[_Name, _Value], now: Mapping[_Name, _Value]) -> dict[_Name, _Value]:
    return {name: value for name, value in now.items() if was.get(name) != value}


def taken_over(store: object) -> LostStoreError:
    return LostStoreError(f"{store}: another monitor has taken over, or another store was put in its place")


def refuse_newer(store: object, version: int, known: int) -> None:
    if version > known:
        raise StoreError(f"{store}: written by a newer version of Lookout (schema {version}, this one knows {known})")


def log_upgrade(store: object, version: int, known: int) -> None:
    """Log the upgrade of a store; a new store has version 0, and is not logged."""
    if 0 < version < known:
        log.info("the store's format was upgraded", store=str(store), schema_was=version, schema=known)


class Writer(Protocol):
    """The monitor's side. Only one writer is open at a time: opening a second one fails (StoreBusyError)."""

    def load(self) -> dict[str, bytes]:
        """All documents of the state."""

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        """Store a publication atomically, with the whole state. What this writer has stored already is not written
        again."""

    def close(self) -> None:
        """Let another writer open the store."""


class Reader(Protocol):
    """A server's side."""

    def changed(self) -> bool:
        """Whether a document may have changed since the last call; true at the first call."""

    def read(self, name: DocumentName) -> Document | None:
        """A document, or None if it was never written."""

    def close(self) -> None: ...
