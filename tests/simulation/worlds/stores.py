"""Stores: a model of one with faults at any call, and the real SQLite file."""

import gzip
from collections import deque
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from lookout.documents.document import Document, DocumentName
from lookout.store.protocol import (
    NO_WRITER,
    Left,
    LostStoreError,
    Reader,
    Snapshot,
    StoreBusyError,
    StoreError,
    StorePosition,
    Writer,
)
from lookout.store.sqlite import SqliteReader, SqliteWriter, open_writer
from tests.simulation.worlds.scene import Life, Message, Publication, Scene, Written

_KEPT_MS: Final = 3_700_000
_MESSAGE: Final = "alerts/"


class Content(NamedTuple):
    """All that a store holds, since when, the publication that it is the memory of, and how far its writing came."""

    ms: int
    documents: Mapping[DocumentName, Document]
    state: Mapping[str, bytes]
    publication: Publication | None
    position: StorePosition


_NOTHING: Final = Content(0, {}, {}, None, NO_WRITER)


class Store(Protocol):
    """What a world needs of a store."""

    def open(self, life: Life) -> Writer:
        """StoreBusyError while another has it."""

    def reader(self, server: int) -> Reader: ...

    def release(self, life: Life) -> None:
        """A monitor is gone, however it went."""

    def loaded(self) -> Publication | None:
        """The publication that is stored."""


class ModelStore:
    """One writer at a time, as PostgreSQL has it: a write is refused in the epoch of another."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._holder: Life | None = None
        self.now = _NOTHING
        self.number = 0
        self._epochs = count(1)
        self._is_back = False  # until it is written to again
        self.past: deque[Content] = deque([_NOTHING])

    def open(self, life: Life) -> Writer:
        if self._holder is not None and self._holder is not life:
            raise StoreBusyError("another monitor is writing")
        self._holder = life
        if self._is_back:  # before who knew more could write it again
            self._scene.went_back_ms, self._is_back = self._scene.ms, False
        self.now = self.now._replace(ms=self._scene.ms, position=StorePosition(next(self._epochs), 0))
        self.past.append(self.now)
        return ModelWriter(self, self._scene, life)

    def reader(self, server: int) -> Reader:
        return ModelReader(self, self._scene, server)

    def release(self, life: Life) -> None:
        if self._holder is life:
            self._holder = None

    def loaded(self) -> Publication | None:
        return self.now.publication

    def holds(self, life: Life) -> bool:
        return self._holder is life

    def take_if_free(self, life: Life) -> bool:
        """Go on after a lost session."""
        self._holder = self._holder or life
        return self._holder is life

    def lose_session(self) -> None:
        self._holder = None
        self._scene.let_go_ms = self._scene.ms

    def set_back(self, by_ms: int) -> None:
        """Restore a backup."""
        to_ms = self._scene.ms - by_ms
        self.now = next((each for each in reversed(self.past) if each.ms <= to_ms), self.past[0])
        self.past.append(self.now._replace(ms=self._scene.ms))
        self.number += 1
        self._holder, self._is_back = None, True
        self._scene.let_go_ms = self._scene.restored_ms = self._scene.ms

    def put(self, stored: Content) -> None:
        self.now, self._is_back = stored, False
        self.number += 1
        self.past.append(stored)
        while len(self.past) > 1 and self.past[1].ms < stored.ms - _KEPT_MS:
            self.past.popleft()

    def as_of(self, ms: int) -> Content:
        return next((each for each in reversed(self.past) if each.ms <= ms), self.past[0])


class ModelWriter:
    """Faults are the script's; what was refused changes nothing."""

    def __init__(self, store: ModelStore, scene: Scene, life: Life) -> None:
        self._store = store
        self._scene = scene
        self._life = life
        self._left = Left(store.now.position)
        self._lost = False

    def load(self) -> dict[str, bytes]:
        if self._scene.active("load-fails"):
            raise StoreError("cannot be read")
        return dict(self._store.now.state)

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        scene, store = self._scene, self._store
        is_own = store.now.position.epoch == self._left.position.epoch
        if self._lost or not is_own or not (store.holds(self._life) or store.take_if_free(self._life)):
            self._lost = True
            raise LostStoreError("another monitor has taken over")
        if scene.active("write-fails"):
            raise StoreError("disk full")
        left, changes = self._left.find_changes(store.now.position, Snapshot(documents, state), "the store")
        kept = {name: document for name, document in store.now.state.items() if name in state}
        publication, before = _publication(self._life), store.now.documents
        stored = Content(
            scene.ms, {**before, **changes.documents}, {**kept, **changes.state}, publication, left.position
        )
        store.put(stored)
        _emit_written(scene, self._life, publication, before, stored.documents, stored.state)
        if scene.active("answer-lost"):
            raise StoreError("no answer")
        self._left = left

    def close(self) -> None:
        self._store.release(self._life)


class ModelReader:
    """A replica of the store, with faults of its own."""

    def __init__(self, store: ModelStore, scene: Scene, server: int) -> None:
        self._store = store
        self._scene = scene
        self._server = str(server)
        self._seen = -1

    def changed(self) -> bool:
        scene, server = self._scene, self._server
        if scene.active("read-fails", server):
            raise StoreError("cannot be read")
        lagging = scene.active("lags", server) or scene.active("damaged", server) or scene.active("empty", server)
        before, self._seen = self._seen, -1 if lagging else self._store.number
        return self._seen != before or lagging is not None

    def read(self, name: DocumentName) -> Document | None:
        scene, server = self._scene, self._server
        if scene.active("read-fails", server):
            raise StoreError("cannot be read")
        if scene.active("empty", server):
            return None
        lag = scene.active("lags", server)
        stored = self._store.as_of(scene.ms - lag.size) if lag else self._store.now
        document = stored.documents.get(name)
        damage = scene.active("damaged", server)
        if document is not None and damage and damage.size == (name == "live"):
            return Document(document.body[:-1] + b" ", document.etag, document.generated_at)
        return document

    def close(self) -> None: ...


class SqliteStore:
    """The real file; what goes wrong goes wrong before a call, or after it."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._path = folder / "lookout.db"
        self._writers: dict[Life, SqliteWriter] = {}
        self._is_gone = False  # until another one is begun
        self.publication: Publication | None = None
        self.documents: Mapping[DocumentName, Document] = {}

    def open(self, life: Life) -> Writer:
        self._writers[life] = real = open_writer(self._path)
        if self._is_gone:  # before who knew what was in it could write it again
            self.publication, self._is_gone = None, False
            self._scene.went_back_ms = self._scene.let_go_ms = self._scene.ms
        return _FaultySqliteWriter(self, real, self._scene, life)

    def reader(self, server: int) -> Reader:
        return _FaultySqliteReader(SqliteReader(self._path), self._scene, str(server))

    def release(self, life: Life) -> None:
        """What the system does when a process dies: its files are closed."""
        if (real := self._writers.pop(life, None)) is not None:
            real.close()

    def loaded(self) -> Publication | None:
        return self.publication

    def wrote(self, publication: Publication, documents: Mapping[DocumentName, Document]) -> None:
        self.publication, self.documents = publication, documents

    def remove_file(self, and_beside: int) -> None:
        self._remove("", *(("-wal", "-shm") if and_beside else ()))

    def remove_lock(self, and_file: int) -> None:
        """The monitor that stands by gets in."""
        self._remove("-lock", *(("",) if and_file else ()))
        self._scene.let_go_ms = self._scene.ms

    def _remove(self, *ends: str) -> None:
        for end in ends:
            self._path.with_name(self._path.name + end).unlink(missing_ok=True)
        self._is_gone = self._is_gone or "" in ends
        self._scene.note(f"removed: {' '.join(f'lookout.db{end}' for end in ends)}")


class _FaultySqliteWriter:
    def __init__(self, store: SqliteStore, real: SqliteWriter, scene: Scene, life: Life) -> None:
        self._store = store
        self._real = real
        self._scene = scene
        self._life = life

    def load(self) -> dict[str, bytes]:
        if self._scene.active("load-fails"):
            raise StoreError("cannot be read")
        return self._real.load()

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        if self._scene.active("write-fails"):
            raise StoreError("disk full")
        left = self._real._left
        self._real.write(documents, state)
        publication, before = _publication(self._life), self._store.documents
        self._store.wrote(publication, documents)
        _emit_written(self._scene, self._life, publication, before, documents, state)
        if self._scene.active("answer-lost"):
            self._real._left = left  # a commit that reports an error leaves it so
            raise StoreError("no answer")

    def close(self) -> None:
        self._store.release(self._life)


class _FaultySqliteReader:
    def __init__(self, real: SqliteReader, scene: Scene, server: str) -> None:
        self._real = real
        self._scene = scene
        self._server = server

    def changed(self) -> bool:
        return self._real.changed()

    def read(self, name: DocumentName) -> Document | None:
        if self._scene.active("read-fails", self._server):
            raise StoreError("cannot be read")
        return self._real.read(name)

    def close(self) -> None:
        self._real.close()


def _publication(life: Life) -> Publication:
    if life.writing is None:
        raise RuntimeError("nothing is being written")
    return life.writing


def messages_in(state: Mapping[str, bytes]) -> dict[int, Message]:
    """The messages among the stored documents, by their numbers, the oldest first."""
    named = {int(name.removeprefix(_MESSAGE)): name for name in state if name.startswith(_MESSAGE)}
    return {
        number: msgspec.json.decode(gzip.decompress(state[named[number]]), type=Message) for number in sorted(named)
    }


def _emit_written(
    scene: Scene,
    life: Life,
    publication: Publication,
    before: Mapping[DocumentName, Document],
    documents: Mapping[DocumentName, Document],
    state: Mapping[str, bytes],
) -> None:
    waited, scene.waiting = scene.waiting, messages_in(state)
    came = tuple(each for number, each in scene.waiting.items() if waited.get(number) != each)
    went = tuple(each for number, each in waited.items() if scene.waiting.get(number) != each)
    new = {name: document for name, document in documents.items() if before.get(name) != document or name == "live"}
    scene.note(f"{life.name} stored {publication.at} {' '.join(new)}")
    scene.emit(Written(life, publication, new, came, went))
