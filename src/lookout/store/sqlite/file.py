"""The file of a SQLite store: its schema, its connections, and what is said when it is of no use."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import Final

from lookout.documents.document import Document
from lookout.store.protocol import Snapshot, StoreError, refuse_newer

APPLICATION_ID: Final = 0x4C6F6F6B  # "Look"
BUSY_S: Final = 5.0
REMEDY: Final = "; put a copy of it back, or move it away to begin a new store"
# A log ahead that grows until the disk is full leaves the file no room to take it in. Both are small, therefore, and
# still larger than most publications.
LARGEST_WAL_BYTES: Final = 512 * 1024
CHECKPOINT_PAGES: Final = 100
_BESIDE: Final = ("-wal", "-shm")
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_TEXT: Final = "Could not decode to UTF-8"  # which Python says, and SQLite has no code for

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
    """
    CREATE TABLE writer (epoch INTEGER NOT NULL, writes INTEGER NOT NULL) STRICT;
    """,
)
SCHEMA_VERSION: Final = len(STEPS)
_HEAR_SIGNALS_AFTER: Final = 100_000  # of SQLite's instructions, some milliseconds

_Entry = tuple[str, str, str, str | None]
_ENTRIES: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema"

# Which file has a name, by device and number; None if there is none.
FileIdentity = tuple[int, int] | None


def read_all(connection: sqlite3.Connection) -> Snapshot:
    documents = {name: Document(*row) for name, *row in connection.execute("SELECT * FROM documents")}
    return Snapshot(documents, dict(connection.execute("SELECT name, piece FROM pieces")))


def prepare(path: Path) -> sqlite3.Connection:
    """A connection for writing to a store that is up to date. If the file is not there it is made."""
    if identity(path) is None:
        _make(path)
    # One thread at a time uses it; which one, the monitor decides.
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        version = version_of(connection, path)
        _check_whole(connection, path)
        _keep_a_log_ahead(connection, path)
        connection.execute("PRAGMA synchronous = FULL")
        bring_up_to_date(connection, version)
        # A write may have failed since the log ahead, which only a write that succeeds makes smaller, left no room.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    """For its owner alone: SQLite would make it readable for all, and gives what it keeps beside it the same mode."""
    remove_beside(path, identities(path))  # it is of a file that is gone, and would be taken for this one's
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """StoreError if anything in the file is broken: going on would build on it, or stumble over it later."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        what = " ".join(found.split())
        raise StoreError(f"{path}: is damaged ({what}){REMEDY}")


def _keep_a_log_ahead(connection: sqlite3.Connection, path: Path) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path}: this file system does not support write-ahead logging")
    # SQLite 3.40 leaves a lock behind when it switches, as for a backup, which has no log: reading lets go of it.
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    connection.execute(f"PRAGMA journal_size_limit = {LARGEST_WAL_BYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")


def bring_up_to_date(connection: sqlite3.Connection, version: int, steps: Sequence[str] = STEPS) -> None:
    """Take the steps from this version on, all of them or none: a process that is killed meanwhile leaves the store as
    it was."""
    if version < len(steps):
        script = "".join(steps[version:])
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {len(steps)}; COMMIT;")


def identity(path: Path) -> FileIdentity:
    """Which file has this name now. A link is none of those that it may lead to."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not S_ISREG(found.st_mode) and not S_ISLNK(found.st_mode):  # opening a pipe would wait for its other end
        raise StoreError(f"{path}: is not a file")
    return found.st_dev, found.st_ino


def identities(path: Path) -> tuple[FileIdentity, ...]:
    """Which files a store of this name consists of now: the database, and what SQLite keeps beside it."""
    return tuple(identity(path.with_name(path.name + end)) for end in ("", *_BESIDE))


def remove_beside(path: Path, found: tuple[FileIdentity, ...]) -> None:
    """Remove what SQLite kept beside a file, as far as it is still what was found: another file would be read together
    with it."""
    for end, was in zip(_BESIDE, found[1:], strict=True):
        beside = path.with_name(path.name + end)
        if was is not None and identity(beside) == was:
            beside.unlink()


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The store's schema version, 0 for an empty file; StoreError if it is somebody else's or too new, or its tables
    are not as Lookout makes them."""
    connection.execute("BEGIN")  # a monitor may be making the store just now
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID and (application_id or version or tables):
            raise StoreError(
                f"{path}: a database of another program; choose another file in store.url, or move it away"
            )
        refuse_newer(path, version, SCHEMA_VERSION)
        check_tables(connection, version, path)
    finally:
        connection.rollback()
    return int(version)


def check_tables(connection: sqlite3.Connection, version: int, path: Path) -> None:
    """StoreError if anything of the tables' names is not what the steps make, to the letter: a view may never end, and
    a trigger or a check do anything. What else is in the file is let be."""
    names, made = tables_of(SCHEMA_VERSION), _made_by(version)
    found = {entry for entry in connection.execute(_ENTRIES) if str(entry[2]).lower() in names}
    if different := found - made or made - found:
        kind, name, *_ = min(different, key=str)
        raise StoreError(f"{path}: the {kind} {name} is not as Lookout makes it; use another file")


def tables_of(version: int) -> set[str]:
    return {table for _, _, table, _ in _made_by(version)}


@cache
def _made_by(version: int) -> frozenset[_Entry]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript("".join(STEPS[: max(version, 0)]))
        return frozenset(made.execute(_ENTRIES))


def hear_signals(connection: sqlite3.Connection) -> None:
    """Let Ctrl-C end a statement, which ``store_errors`` passes on: Python looks for signals only between its own
    steps."""
    connection.set_progress_handler(lambda: 0, _HEAR_SIGNALS_AFTER)


@contextmanager
def store_errors(path: Path, remedy: str = "") -> Iterator[None]:
    """Failures of the file or the disk, in one sentence; the remedy is for a file that is damaged."""
    try:
        yield
    except sqlite3.Error as error:
        # Nothing else interrupts a statement than a signal.
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
            raise KeyboardInterrupt from None
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF  # misuse has none; the rest is detail
        if str(error).startswith(_NO_TEXT):
            raise StoreError(f"{path}: is damaged (a text in it cannot be decoded){remedy}") from error
        raise StoreError(f"{path}: is damaged ({error}){remedy}" if code in _DAMAGE else f"{path}: {error}") from error
    except UnicodeDecodeError as error:  # what SQLite says of a damaged schema
        raise StoreError(f"{path}: is damaged (its error message cannot be decoded){remedy}") from error
    except (RuntimeError, ValueError) as error:  # links in a circle, a NUL, or a name that is none
        raise StoreError(f"{path}: {error}") from error
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
