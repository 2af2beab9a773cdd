"""SQLite as a kind of store: an address is ``sqlite:`` and a path, relative to the configuration's folder."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lookout.store.backup import read_file
from lookout.store.protocol import Reader, Snapshot, StoreKind, Writer
from lookout.store.sqlite.writer import SqliteReader, open_writer


def _path(url: str, folder: Path) -> Path:
    return folder / url.partition(":")[2]


def _open_writer(url: str, folder: Path) -> Writer:
    return open_writer(_path(url, folder))


def _open_reader(url: str, folder: Path, _key: str) -> Reader:
    return SqliteReader(_path(url, folder))


def _read_snapshot(url: str, folder: Path) -> Snapshot:
    return read_file(_path(url, folder))


def _list_files(url: str, folder: Path) -> Iterable[str]:
    path = os.path.realpath(_path(url, folder))
    return [path + end for end in ("", "-wal", "-shm", "-lock")]


SQLITE: Final = StoreKind(
    "SQLite", "sqlite:.", "begin with sqlite: and a path", _open_writer, _open_reader, _read_snapshot, _list_files
)
