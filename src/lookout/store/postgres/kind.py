"""PostgreSQL as a kind of store. Its driver is loaded only if such a store is opened."""

from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from lookout.store.protocol import Reader, Snapshot, StoreKind, Writer


def _open_writer(url: str, _folder: Path) -> Writer:
    from lookout.store.postgres.writer import open_writer

    return open_writer(url)


def _open_reader(url: str, _folder: Path, key: str) -> Reader:
    from lookout.store.postgres.reader import PostgresReader

    return PostgresReader(url, key)


def _read_snapshot(url: str, _folder: Path) -> Snapshot:
    from lookout.store.postgres.backup import read_database

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
    _open_writer,
    _open_reader,
    _read_snapshot,
    variables="PG[A-Z]+|PGCONNECT_TIMEOUT|KRB5[A-Z_]+",
    name_database=_name_database,
)
