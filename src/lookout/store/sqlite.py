"""The store in one SQLite file.

Write-ahead logging lets any number of readers read while the writer writes; ``synchronous=FULL`` makes a publication
survive a power cut. A lock on a file beside the database admits one monitor. If that file is removed, the epoch
protects the store: opening a writer raises it, and writes with another epoch than the stored one fail.
"""

import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from lookout.documents.document import Document, DocumentName
from lookout.store.protocol import (
    NO_WRITER,
    Left,
    LostStoreError,
    Snapshot,
    StoreBusyError,
    StoreError,
    StorePosition,
    log_upgrade,
    refuse_newer,
)

_APPLICATION_ID: Final = 0x4C6F6F6B  # "Look"
_BUSY_S: Final = 5.0
_REMEDY: Final = "; use another copy of it, or move it away to begin a new store"
# A write-ahead log that fills the disk leaves no room for its checkpoint. So both limits are small, yet larger than
# most publications.
LARGEST_WAL_BYTES: Final = 512 * 1024
CHECKPOINT_PAGES: Final = 100
_BESIDE: Final = ("-wal", "-shm")
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

# A step upgrades a store from the version equal to the step's index. Released steps never change: tests/data/stores has
# their results.
STEPS: Final = (
    f"""
    CREATE TABLE documents (
        name TEXT PRIMARY KEY, body BLOB NOT NULL, etag TEXT NOT NULL, generated_at INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE pieces (name TEXT PRIMARY KEY, piece BLOB NOT NULL) STRICT, WITHOUT ROWID;
    PRAGMA application_id = {_APPLICATION_ID};
    """,
    """
    CREATE TABLE writer (epoch INTEGER NOT NULL, writes INTEGER NOT NULL) STRICT;
    """,
    "",  # the same tables; what is in pieces is written in another form, which earlier versions refuse
)
SCHEMA_VERSION: Final = len(STEPS)

# A file's device and inode; None if there is no file.
FileIdentity = tuple[int, int] | None


class SqliteWriter:
    """The monitor's side of the file. Made by ``open_writer``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None
        self._using = threading.Lock()
        self._is_closed = False
        self._lost: str | None = None
        self._connection: sqlite3.Connection | None = None
        self._files: tuple[FileIdentity, ...] | None = None
        self._left = Left()

    def open(self) -> None:
        self._lock = _take_lock(self._path)
        try:
            with store_errors(self._path), self._used() as connection, _transaction(connection):
                self._left = Left(_position(connection).begin_epoch())
                _put_position(connection, self._left.position)
        except BaseException:
            self.close()
            raise

    def load(self) -> dict[str, bytes]:
        """LostStoreError if the file was replaced since it was opened or written to."""
        with store_errors(self._path), self._used() as connection, _transaction(connection):
            if _position(connection) != self._left.position:
                raise LostStoreError(f"{self._path}: another store was put in its place")
            return dict(_read_all(connection).state)

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        with store_errors(self._path), self._used() as connection:
            with _transaction(connection):
                content = Snapshot(documents, state)
                left, changes = self._left.find_changes(_position(connection), content, self._path)
                _put(connection, changes)
                names = {name for (name,) in connection.execute("SELECT name FROM pieces")}
                connection.executemany("DELETE FROM pieces WHERE name = ?", ((name,) for name in names - state.keys()))
                _put_position(connection, left.position)
            self._left = left

    def close(self) -> None:
        """Wait for a write to end: without the lock, it could end after another monitor's first write."""
        self._is_closed = True
        with self._using:
            self._end()
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    @contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time. A connection that failed is closed: a lock that the system did not
        release would block it for ever."""
        with self._using:
            if self._is_closed:
                raise StoreError(f"{self._path}: the store was closed")
            if self._lost is not None:
                raise LostStoreError(self._lost)
            try:
                yield self._current()
            except BaseException as error:
                self._end()
                if isinstance(error, LostStoreError):
                    self._lost = str(error)
                raise

    def _current(self) -> sqlite3.Connection:
        """The connection to the file now at the path; LostStoreError if the file is gone."""
        _require_folder(self._path)
        there = _identity(self._path)
        if self._files is not None and there != self._files[0]:
            if there is None:
                raise LostStoreError(f"{self._path}: the file is gone")
            self._end()
            _remove_beside(self._path, self._files)
        if self._connection is None:
            self._connection = _prepare(self._path)
            self._files = _identities(self._path)
        return self._connection

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def open_writer(path: Path) -> SqliteWriter:
    """Open the file for writing, and create it if it does not exist. StoreError if another monitor holds it, or if it
    is not a store that this version can write."""
    with store_errors(path):
        path = path.resolve()  # otherwise two names of one file would have two locks
    writer = SqliteWriter(path)
    writer.open()
    return writer


class SqliteReader:
    """A server's side of the file, which may not exist yet, and may be replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._opened: FileIdentity = None  # the open file
        self._version: int | None = None

    def changed(self) -> bool:
        with store_errors(self._path):
            connection = self._current()
            if connection is None:
                return False
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            before, self._version = self._version, version
            return bool(version != before)

    def read(self, name: DocumentName) -> Document | None:
        with store_errors(self._path):
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
        """The connection to the file now at the path; None while there is no file, or it is empty."""
        path = self._path.resolve()  # SQLite keeps its files beside the target of a link
        there = _identity(path)
        if there is None:
            self.close()
            return None
        if self._connection is None or self._opened != there:
            self.close()
            connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_BUSY_S, check_same_thread=False)
            try:
                if _version_of(connection, self._path) == 0:
                    connection.close()
                    return None
            except BaseException:
                connection.close()
                raise
            self._connection, self._opened, self._version = connection, there, None
        return self._connection


def open_reader(path: Path, _key: str) -> SqliteReader:
    return SqliteReader(path)


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot of a store's file or a backup, also during writes; the snapshot of an earlier version is upgraded.
    StoreError if the file is neither, or damaged, or of a newer version."""
    with store_errors(path), closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        if not path.is_file():
            raise StoreError(f"{path}: there is no such file")
        # In memory, so that the file does not change, and is locked only while it is copied.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_S)) as file:
            file.backup(copy)
        version = _version_of(copy, path)
        if version == 0:
            raise StoreError(f"{path}: is neither a backup nor a store of Lookout")
        _check_schema(copy, version, path)
        _check_whole(copy, path)
        bring_up_to_date(copy, version)
        return _read_all(copy)


def _read_all(connection: sqlite3.Connection) -> Snapshot:
    documents = {name: Document(*row) for name, *row in connection.execute("SELECT * FROM documents")}
    return Snapshot(documents, dict(connection.execute("SELECT name, piece FROM pieces")))


def _put(connection: sqlite3.Connection, content: Snapshot) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)",
        ((name, d.body, d.etag, d.generated_at) for name, d in content.documents.items()),
    )
    connection.executemany("INSERT OR REPLACE INTO pieces VALUES (?, ?)", content.state.items())


def bring_up_to_date(connection: sqlite3.Connection, version: int) -> None:
    """Run the steps from this version on, in one transaction."""
    if version < SCHEMA_VERSION:
        script = "".join(STEPS[version:])
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")


def _check_schema(connection: sqlite3.Connection, version: int, path: Path) -> None:
    """StoreError unless the file has the tables of its version and nothing else: to read a view may never end."""
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript("".join(STEPS[:version]))
        found, expected = (
            set(one.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")) for one in (connection, made)
        )
    if found != expected:
        raise StoreError(f"{path}: has other tables, views or indexes than a store of Lookout")


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """StoreError if any part of the file is damaged, even one that is not read now."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreError(f"{path}: is damaged ({' '.join(found.split())}){_REMEDY}")


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise failures of the file or the disk as StoreError, in one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF  # none for misuse; the rest is detail
        raise StoreError(f"{path}: is damaged ({error}){_REMEDY}" if code in _DAMAGE else f"{path}: {error}") from error
    except (RuntimeError, ValueError) as error:  # circular links, a NUL, or an impossible name
        raise StoreError(f"{path}: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error


def _take_lock(store: Path) -> int:
    """The open lock file, locked until it is closed; StoreBusyError if another monitor holds the lock."""
    _require_folder(store)
    path = store.with_name(store.name + "-lock")
    try:
        # For its owner alone. Links are not followed: any user who may write to the folder could plant one.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise StoreBusyError(f"{store}: another monitor is writing to it") from None
    return file


def _require_folder(store: Path) -> None:
    if not store.parent.is_dir():
        raise StoreError(f"{store}: there is no folder {store.parent}; make it first, or change store.url")


def _prepare(path: Path) -> sqlite3.Connection:
    if _identity(path) is None:
        # SQLite's files beside it belong to a removed database, and would be taken for the new one's. The new file is
        # for its owner alone: SQLite would make it readable for all, and gives its own files the same mode.
        _remove_beside(path, _identities(path))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    # The monitor uses it from several threads, one at a time.
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        version = _version_of(connection, path)
        _check_whole(connection, path)
        _keep_a_log_ahead(connection, path)
        bring_up_to_date(connection, version)
        log_upgrade(path, version, SCHEMA_VERSION)
        # A large log may have left no room for writes, and only a successful write would shrink it.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_a_log_ahead(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path}: this file system does not support write-ahead logging")
    # SQLite 3.40 keeps a lock after it switches to WAL, as for a restored backup: a read releases it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    connection.execute(f"PRAGMA journal_size_limit = {LARGEST_WAL_BYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA synchronous = FULL")


def _version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The store's schema version, 0 for an empty file; StoreError if it is another program's, or too new."""
    connection.execute("BEGIN")  # a monitor may be creating the store now
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    finally:
        connection.rollback()
    if application_id != _APPLICATION_ID and (application_id or version or tables):
        raise StoreError(f"{path}: a database of another program; choose another file in store.url, or move it away")
    refuse_newer(path, version, SCHEMA_VERSION)
    return int(version)


def _identity(path: Path) -> FileIdentity:
    """The file at this path now. A link is its own file, not its target."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _identities(path: Path) -> tuple[FileIdentity, ...]:
    """The files of a store at this path now: the database, and SQLite's files beside it."""
    return tuple(_identity(path.with_name(path.name + end)) for end in ("", *_BESIDE))


def _remove_beside(path: Path, found: tuple[FileIdentity, ...]) -> None:
    """Remove SQLite's files beside a database, if they are still the found ones: SQLite would apply them to another
    database."""
    for end, was in zip(_BESIDE, found[1:], strict=True):
        beside = path.with_name(path.name + end)
        if was is not None and _identity(beside) == was:
            beside.unlink()


def _position(connection: sqlite3.Connection) -> StorePosition:
    row = connection.execute("SELECT epoch, writes FROM writer").fetchone()
    return NO_WRITER if row is None else StorePosition(*row)


def _put_position(connection: sqlite3.Connection, position: StorePosition) -> None:
    connection.execute("DELETE FROM writer")
    connection.execute("INSERT INTO writer VALUES (?, ?)", position)


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


def write_file(snapshot: Snapshot, path: Path) -> int:
    """Write a backup for its owner alone, and return its size. It gets its name once it is complete; StoreError if a
    file has that name."""
    body = _as_file(snapshot)
    # Named before it exists, so that an interrupted process can still remove it.
    beside = path.absolute().with_name(f".lookout-{secrets.token_hex(8)}")
    with store_errors(path):
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(file, "wb") as opened:
                opened.write(body)
                opened.flush()
                os.fsync(file)
            _refuse_existing(path)
            beside.rename(path)
        finally:
            beside.unlink(missing_ok=True)
    return len(body)


def _as_file(snapshot: Snapshot) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        bring_up_to_date(made, 0)
        _put(made, snapshot)
        return made.serialize()


def _refuse_existing(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path}: is a folder; name a file in it")
    if path.is_symlink() or path.exists():
        raise StoreError(f"{path}: already exists; choose another name, or remove it")
