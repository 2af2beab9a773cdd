"""A backup: a whole store in one file, which is a SQLite store itself, whichever kind of store it was made of."""

import os
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from lookout.store.protocol import Snapshot, StoreError
from lookout.store.sqlite import bring_up_to_date, put_documents, put_pieces, store_errors


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
