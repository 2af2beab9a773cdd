"""The store in one SQLite file.

Write-ahead logging lets any number of readers read while the writer writes; ``synchronous=FULL`` makes a publication
survive a power cut. Two monitors are kept apart by a lock on a file beside the database. Should that be removed, the
epoch keeps them apart: opening a writer raises it, and a writer whose epoch is not the stored one writes nothing.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName
from lookout.store.protocol import NOBODY, LostStoreError, StoreBusyError, StoreError, StorePosition
from lookout.store.sqlite.file import (
    BUSY_S,
    REMEDY,
    FileIdentity,
    identities,
    prepare,
    read_all,
    remove_beside,
    store_errors,
    version_of,
)


class FileLock:
    """Keeps two monitors apart. It does so for as long as its file is there: ``hold`` makes one that was removed again,
    and what happened meanwhile is for the store to notice."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._path = store.with_name(store.name + "-lock")
        self._file: int | None = None

    def hold(self) -> None:
        """Take the lock, unless it is held; StoreBusyError if another monitor holds it."""
        if self._file is not None and self._is_in_place(self._file):
            return
        if not self._path.parent.is_dir():
            folder = self._path.parent
            raise StoreError(f"{self._store}: there is no folder {folder}; make it first, or change store.url")
        if self._path.is_symlink():
            raise StoreError(f"{self._path}: is a link; remove it")
        # For its owner alone. A link is not followed: anybody who may write to the folder could have put it there.
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise StoreBusyError(f"{self._store}: another monitor is writing to it") from None
        self.release()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _is_in_place(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.lstat(self._path))
        except FileNotFoundError:
            return False


class SqliteWriter:
    """The monitor's side of the file. Made by ``open_writer``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(path)
        self._using = threading.Lock()
        self._is_closed = False
        self._lost: str | None = None
        self._connection: sqlite3.Connection | None = None
        self._files: tuple[FileIdentity, ...] | None = None
        self._at = NOBODY

    def open(self) -> None:
        """Become the writer; StoreBusyError if another one is."""
        with store_errors(self._path, REMEDY):
            self._lock.hold()
            try:
                with self._used() as connection, _transaction(connection):
                    self._at = _position(connection).begin_epoch()
                    _put_position(connection, self._at)
            except BaseException:
                self.close()
                raise

    def load(self) -> dict[str, bytes]:
        """LostStoreError if the file was replaced since it was opened or written to."""
        with store_errors(self._path, REMEDY), self._used() as connection, _transaction(connection):
            if _position(connection) != self._at:
                raise LostStoreError(f"{self._path}: another store was put in its place")
            return read_all(connection).pieces

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        with store_errors(self._path, REMEDY), self._used() as connection:
            with _transaction(connection):
                wrote = self._at.advance(_position(connection), pieces, self._path)
                _write(connection, documents, pieces)
                _put_position(connection, wrote)
            self._at = wrote

    def close(self) -> None:
        """Waits for a write to end: without the lock, a write could end after another monitor's first one."""
        self._is_closed = True
        with self._using:
            self._end()
            self._lock.release()

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time. One that failed is not used again: a lock that the system would not
        let go of is its own for ever, and keeps it out."""
        with self._using:
            if self._is_closed:
                raise StoreError(f"{self._path}: the store was closed")
            if self._lost is not None:
                raise LostStoreError(self._lost)
            try:
                self._hold_lock()
                yield self._current()
            except BaseException as error:
                self._end()
                if isinstance(error, LostStoreError):
                    self._lost = str(error)
                raise

    def _hold_lock(self) -> None:
        try:
            self._lock.hold()
        except StoreBusyError:
            raise LostStoreError(f"{self._path}: another monitor has taken over") from None

    def _current(self) -> sqlite3.Connection:
        """The connection to the file that is there now; LostStoreError if there is none any more."""
        there = identities(self._path)
        if self._files is not None and there != self._files:
            if there[0] is None:
                raise LostStoreError(f"{self._path}: the file is gone")
            if there[0] == self._files[0] and self._connection is not None:  # what was beside it is gone
                with suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint")
            self._end()
            remove_beside(self._path, self._files)
        if self._connection is None:
            self._connection = prepare(self._path)
            self._files = identities(self._path)
        return self._connection

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class SqliteReader:
    """A server's side of the file. The file need not be there yet, and may be replaced by another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[FileIdentity, ...] | None = None  # the files that are open
        self._version: int | None = None

    def changed(self) -> bool:
        with store_errors(self._path, REMEDY):
            connection = self._current()
            if connection is None:
                return False
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            before, self._version = self._version, version
            return bool(version != before)

    def read(self, name: DocumentName) -> Document | None:
        with store_errors(self._path, REMEDY):
            connection = self._current()
            if connection is None:
                return None
            row = connection.execute(
                "SELECT body, etag, generated_at FROM documents WHERE name = ?", (name,)
            ).fetchone()
        return None if row is None else Document(*row)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _current(self) -> sqlite3.Connection | None:
        """The connection to the file that is there now; None while there is none, or none with anything in it."""
        path = self._path.resolve()  # what SQLite keeps is beside the file, not beside a link to it
        there = identities(path)
        if there[0] is None:
            self.close()
            return None
        if self._connection is None or self._opened != there:
            self.close()
            connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_S, check_same_thread=False)
            try:
                if version_of(connection, self._path) == 0:
                    connection.close()
                    return None
            except BaseException:
                connection.close()
                raise
            # What is beside the file may be there only since it was opened.
            self._connection, self._opened, self._version = connection, (there[0], *identities(path)[1:]), None
        return self._connection


def _position(connection: sqlite3.Connection) -> StorePosition:
    row = connection.execute("SELECT epoch, writes FROM writer").fetchone()
    return NOBODY if row is None else StorePosition(*row)


def _put_position(connection: sqlite3.Connection, position: StorePosition) -> None:
    connection.execute("DELETE FROM writer")
    connection.execute("INSERT INTO writer VALUES (?, ?)", position)


def _write(connection: sqlite3.Connection, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)",
        ((name, d.body, d.etag, d.generated_at) for name, d in documents.items()),
    )
    if pieces.replace_all:
        connection.execute("DELETE FROM pieces")
    connection.executemany("INSERT OR REPLACE INTO pieces VALUES (?, ?)", pieces.put.items())
    connection.executemany("DELETE FROM pieces WHERE name = ?", ((name,) for name in pieces.delete))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def open_writer(path: Path) -> SqliteWriter:
    """Open the file for writing, making it if it is not there; StoreError if another monitor holds it,
    or if it is not a store that this version can write."""
    with store_errors(path):
        path = path.resolve()  # or two names of one file would have two locks
    writer = SqliteWriter(path)
    writer.open()
    return writer
