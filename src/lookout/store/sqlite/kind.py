"""SQLite as a kind of store: an address is ``sqlite:`` and a path, relative to the configuration's folder."""

import os
from pathlib import Path
from typing import Final

from lookout.store.backup import read_file
from lookout.store.protocol import StoreKind
from lookout.store.sqlite.writer import SqliteReader, open_writer


def _path(url: str, folder: Path) -> Path:
    return folder / url.partition(":")[2]


SQLITE: Final = StoreKind(
    "SQLite",
    "sqlite:.",
    "begin with sqlite: and a path",
    open_writer=lambda url, folder: open_writer(_path(url, folder)),
    open_reader=lambda url, folder, _key: SqliteReader(_path(url, folder)),
    read_snapshot=lambda url, folder: read_file(_path(url, folder)),
    list_files=lambda url, folder: [
        os.path.realpath(_path(url, folder)) + end for end in ("", "-wal", "-shm", "-lock")
    ],
)
