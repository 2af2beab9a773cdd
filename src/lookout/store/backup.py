"""A whole store in one file, which is a SQLite store itself: a backup of either kind of store restores into either."""

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from lookout.store.protocol import Snapshot, StoreError, refuse_newer
from lookout.store.sqlite import (
    APPLICATION_ID,
    BUSY_S,
    SCHEMA_VERSION,
    bring_up_to_date,
    check_whole,
    put_documents,
    put_pieces,
    read_all,
    store_errors,
)


def read_file(path: Path) -> Snapshot:
    """What a store's file or a backup holds, also while it is written to; one of an earlier version is brought up to
    date on the way. StoreError if it is neither, or damaged, or of a newer version."""
    with store_errors(path), closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
        if not path.is_file():
            raise StoreError(f"{path}: there is no such file")
        # In memory, so that the file is left as it is, and held for as long as copying it takes.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as file:
            try:
                file.backup(copy)
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                    raise _not_ours(path) from None
                raise
        (application_id,) = copy.execute("PRAGMA application_id").fetchone()
        (version,) = copy.execute("PRAGMA user_version").fetchone()
        if application_id != APPLICATION_ID or version < 1:
            raise _not_ours(path)
        refuse_newer(path, version, SCHEMA_VERSION)
        check_whole(copy, path)
        bring_up_to_date(copy, version)
        return read_all(copy)


def write_file(snapshot: Snapshot, path: Path) -> int:
    """Make a backup, for its owner alone, and say its size. It has its name only once it is whole; a file of that name
    that is there is left alone: StoreError."""
    body = _as_file(snapshot)
    # Its name is known before it is there: a process that is interrupted in between can still remove it.
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
            _keep_the_name(path.absolute().parent)
        finally:
            beside.unlink(missing_ok=True)
    return len(body)


def _not_ours(path: Path) -> StoreError:
    return StoreError(f"{path}: is neither a backup nor a store of Lookout")


def _as_file(snapshot: Snapshot) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        bring_up_to_date(made, 0)
        put_documents(made, snapshot.documents)
        put_pieces(made, snapshot.pieces)
        return made.serialize()


def _refuse_existing(path: Path) -> None:
    if path.is_dir():
        raise StoreError(f"{path}: is a folder; name a file in it")
    if path.is_symlink() or path.exists():
        raise StoreError(f"{path}: already exists; choose another name, or remove it")


def _keep_the_name(folder: Path) -> None:
    """A power cut takes a new name away again unless its folder was written, too."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
