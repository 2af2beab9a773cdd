"""The kinds of stores there are, each declared once. What opens one is loaded only then, and so is its driver."""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from lookout.store.protocol import Reader, Snapshot, StoreKind, Writer


def _path(url: str, folder: Path) -> Path:
    return folder / url.partition(":")[2]


def _write_sqlite(url: str, folder: Path) -> Writer:
    from lookout.store.sqlite import open_writer

    return open_writer(_path(url, folder))


def _read_sqlite(url: str, folder: Path, _key: str) -> Reader:
    from lookout.store.sqlite import SqliteReader

    return SqliteReader(_path(url, folder))


def _snapshot_sqlite(url: str, folder: Path) -> Snapshot:
    from lookout.store.backup import read_file

    return read_file(_path(url, folder))


SQLITE: Final = StoreKind(
    "SQLite",
    "sqlite:.",
    "begin with sqlite: and a path",
    open_writer=_write_sqlite,
    open_reader=_read_sqlite,
    read_snapshot=_snapshot_sqlite,
    list_files=lambda url, folder: [
        os.path.realpath(_path(url, folder)) + end for end in ("", "-wal", "-shm", "-lock")
    ],
)


def _write_postgres(url: str, _folder: Path) -> Writer:
    from lookout.store.postgres import open_writer

    return open_writer(url)


def _read_postgres(url: str, _folder: Path, key: str) -> Reader:
    from lookout.store.postgres import PostgresReader

    return PostgresReader(url, key)


def _snapshot_postgres(url: str, _folder: Path) -> Snapshot:
    from lookout.store.postgres import read_database

    return read_database(url)


def _name_database(url: str) -> str:
    """The database that an address names; "" if that is left to the role's name, or cannot be read."""
    try:
        parts = urlsplit(url)
        return parse_qs(parts.query).get("dbname", [unquote(parts.path.removeprefix("/"))])[-1]
    except ValueError:
        return ""


POSTGRES: Final = StoreKind(
    "PostgreSQL",
    "postgres(ql)?://",
    "be a postgresql:// address",
    open_writer=_write_postgres,
    open_reader=_read_postgres,
    read_snapshot=_snapshot_postgres,
    variables="PG[A-Z]+|PGCONNECT_TIMEOUT|KRB5[A-Z_]+",
    name_database=_name_database,
)

KINDS: Final[tuple[StoreKind, ...]] = (SQLITE, POSTGRES)
ADDRESS_FORM: Final = ", or ".join(kind.form for kind in KINDS)
"""Of any store, for people, after "has to"."""


def find_kind(url: str) -> StoreKind | None:
    """The kind of store that an address names; None if there is none of that form."""
    text = str(url)  # where the configuration could not be read, a value that cannot be used stands in for it
    return next((kind for kind in KINDS if re.match(kind.pattern, text)), None)


def kind_of(url: str) -> StoreKind:
    """The same, of an address that the configuration accepted."""
    kind = find_kind(url)
    if kind is None:
        raise ValueError(f"{url.partition(':')[0]}: is no kind of store")
    return kind
