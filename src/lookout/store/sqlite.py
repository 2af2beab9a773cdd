"""The store in one SQLite file.

Write-ahead logging lets any number of readers read while the writer writes; ``synchronous=FULL`` makes a publication
survive a power cut. Two monitors are kept apart by a lock on a file beside the database, which the system releases
when its holder dies, however it dies.
"""

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import Final

from lookout.core.pieces import Pieces
from lookout.core.wire import Document
from lookout.store.protocol import DocumentName, StoreBusyError, StoreError

APPLICATION_ID: Final = 0x4C6F6F6B  # "Look"
_BUSY_S: Final = 5.0
_LARGEST_WAL_BYTES: Final = 16 * 1024 * 1024
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_TEXT: Final = "Could not decode to UTF-8"  # which Python says, and SQLite has no code for
_REMEDY: Final = "; put a copy of it back, or move it away to begin a new store"

# Each step brings a store from the version that is its place to the next. One that was released is never changed:
# tests/data/stores has what it made.
STEPS: Final = (
    f"""
    CREATE TABLE documents (
        name TEXT PRIMARY KEY, body BLOB NOT NULL, etag TEXT NOT NULL, generated_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE pieces (name TEXT PRIMARY KEY, piece BLOB NOT NULL) STRICT, WITHOUT ROWID;
    PRAGMA application_id = {APPLICATION_ID};
    """,
)
SCHEMA_VERSION: Final = len(STEPS)


class SqliteWriter:
    """The monitor's side of the file. Made by ``open_writer``."""

    def __init__(self, connection: sqlite3.Connection, lock: int, path: Path) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._lock = lock
        self._path = path
        self._identity = identity(path)
        self._using = threading.Lock()
        self._is_closed = False

    def load(self) -> dict[str, bytes]:
        with told(self._path, _REMEDY), self._used() as connection:
            return dict(connection.execute("SELECT name, piece FROM pieces"))

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        with told(self._path, _REMEDY):
            self._check_identity()
            with self._used() as connection, _transaction(connection):
                _write(connection, documents, pieces)

    def _check_identity(self) -> None:
        if identity(self._path) != self._identity:
            raise StoreError(f"{self._path}: was replaced or removed; restart the monitor")

    def close(self) -> None:
        """Waits for whoever writes: without the lock, a write could end after another monitor's first one."""
        self._is_closed = True
        with self._using:
            self._end()
            os.close(self._lock)

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time. One that failed is not used again: a lock that the system would not
        let go of is its own for ever, and keeps it out."""
        with self._using:
            if self._is_closed:
                raise StoreError(f"{self._path}: the store was closed")
            if self._connection is None:
                self._connection, version = _connected(self._path)
                if version == 0:  # a part of the state would be taken for all of it
                    self._end()
                    raise StoreError(f"{self._path}: was emptied; restart the monitor")
            try:
                yield self._connection
            except BaseException:
                self._end()
                raise

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class SqliteReader:
    """A server's side of the file. The file need not be there yet, and may be replaced by another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None  # the file that is open, by device and number
        self._version: int | None = None

    def changed(self) -> bool:
        with told(self._path, _REMEDY):
            connection = self._current()
            if connection is None:
                return False
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            before, self._version = self._version, version
            return bool(version != before)

    def read(self, name: DocumentName) -> Document | None:
        with told(self._path, _REMEDY):
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
        there = identity(self._path)
        if there is None:
            self.close()
            return None
        if self._connection is None or self._opened != there:
            self.close()
            connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S, check_same_thread=False
            )
            try:
                if _version_of(connection, self._path) == 0:
                    connection.close()
                    return None
            except BaseException:
                connection.close()
                raise
            self._connection, self._opened, self._version = connection, there, None
        return self._connection


def _write(connection: sqlite3.Connection, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)",
        ((name, d.body, d.etag, d.generated_at) for name, d in documents.items()),
    )
    if pieces.whole:
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
    with told(path, _REMEDY):
        path = path.resolve()  # or two names of one file would have two locks
        if not path.parent.is_dir():
            raise StoreError(f"{path}: there is no folder {path.parent}; make it first, or change store.url")
        lock = _lock(path)
        try:
            return SqliteWriter(_prepared(path), lock, path)
        except BaseException:
            os.close(lock)
            raise


def _lock(path: Path) -> int:
    beside = path.with_name(path.name + "-lock")
    if beside.is_symlink():
        raise StoreError(f"{beside}: is a link; remove it")
    lock = _made(beside)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise StoreBusyError(f"{path}: another monitor is writing to it") from None
    return lock


def _made(path: Path) -> int:
    """The file, open; if it was not there, for its owner alone from the first moment. A link is not followed: whoever
    may write to the folder could have put it there."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _prepared(path: Path) -> sqlite3.Connection:
    os.close(_made(path))  # SQLite would make it readable for all, and gives what it keeps beside it the same mode
    connection, version = _connected(path)
    try:
        bring_up_to_date(connection, version)
    except BaseException:
        connection.close()
        raise
    return connection


def bring_up_to_date(connection: sqlite3.Connection, version: int, steps: Sequence[str] = STEPS) -> None:
    """Take the steps from this version on, all of them or none: whoever is killed meanwhile leaves the store as it
    was."""
    if version < len(steps):
        script = "".join(steps[version:])
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {len(steps)}; COMMIT;")


def _connected(path: Path) -> tuple[sqlite3.Connection, int]:
    """A connection for writing, and the store's schema version, 0 for an empty file."""
    # One thread at a time uses it; which one, the monitor decides.
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        version = _version_of(connection, path)
        _check_whole(connection, path)
        _keep_a_log_ahead(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_WAL_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection, version


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """StoreError if anything in the file is broken: going on would build on it, or stumble over it later."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        what = " ".join(found.split())
        raise StoreError(f"{path}: is damaged ({what}){_REMEDY}")


def _keep_a_log_ahead(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path}: this file system does not bear write-ahead logging")


def identity(path: Path) -> tuple[int, int] | None:
    """Which file has this name now, by device and number."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if not S_ISREG(found.st_mode):  # opening a pipe would wait for its other end
        raise StoreError(f"{path}: is not a file")
    return found.st_dev, found.st_ino


def _version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The store's schema version, 0 for an empty file; StoreError if it is somebody else's or too new."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    # Last, since a monitor may be making the store just now: what is there by now is then known to be ours.
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID and (application_id or version or tables):
        raise StoreError(f"{path}: a database of another program; choose another file in store.url")
    check_version(version, path)
    return int(version)


def check_version(version: int, path: Path) -> None:
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: written by a newer version of Lookout (schema {version}, this one knows {SCHEMA_VERSION})"
        )


@contextmanager
def told(path: Path, remedy: str = "") -> Iterator[None]:
    """Failures of the file or the disk, in one sentence; the remedy is for a file that is damaged."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF  # misuse has none; the rest is detail
        if str(error).startswith(_NO_TEXT):
            raise StoreError(f"{path}: is damaged (a text in it is none){remedy}") from error
        raise StoreError(f"{path}: is damaged ({error}){remedy}" if code in _DAMAGE else f"{path}: {error}") from error
    except UnicodeDecodeError as error:  # what SQLite says of a damaged schema
        raise StoreError(f"{path}: is damaged (even what is wrong with it is no text){remedy}") from error
    except (RuntimeError, ValueError) as error:  # links in a circle, a NUL, or a name that is none
        raise StoreError(f"{path}: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
