"""SQLite as a kind of store: an address is ``sqlite:`` and a path, relative to the configuration's folder. What opens
one is loaded only then."""

import os
from pathlib import Path
from typing import Final

from lookout.store.protocol import Reader, Snapshot, StoreKind, Writer


def _path(url: str, folder: Path) -> Path:
    return folder / url.partition(":")[2]


def _open_writer(url: str, folder: Path) -> Writer:
    from lookout.store.sqlite.writer import open_writer

    return open_writer(_path(url, folder))


def _open_reader(url: str, folder: Path, _key: str) -> Reader:
    from lookout.store.sqlite.writer import SqliteReader

    return SqliteReader(_path(url, folder))


def _read_snapshot(url: str, folder: Path) -> Snapshot:
    from lookout.store.backup import read_file

    return read_file(_path(url, folder))


SQLITE: Final = StoreKind(
    "SQLite",
    "sqlite:.",
    "begin with sqlite: and a path",
    open_writer=_open_writer,
    open_reader=_open_reader,
    read_snapshot=_read_snapshot,
    list_files=lambda url, folder: [
        os.path.realpath(_path(url, folder)) + end for end in ("", "-wal", "-shm", "-lock")
    ],
)
