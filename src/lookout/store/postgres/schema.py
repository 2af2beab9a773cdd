"""The tables of the PostgreSQL store, made and brought up to date, forward only."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from psycopg.rows import TupleRow

from lookout.store.postgres.session import DatabaseAddress, DatabaseSession, damaged
from lookout.store.protocol import StoreError, refuse_newer

# Each step brings a store from the version that is its place to the next. One that was released is never changed:
# tests/data/stores has what it made.
STEPS: Final = (
    """
    CREATE TABLE lookout.schema_version (version integer NOT NULL);
    INSERT INTO lookout.schema_version VALUES (0);
    CREATE TABLE lookout.documents (
        name text PRIMARY KEY, body bytea NOT NULL, etag text NOT NULL, generated_at bigint NOT NULL,
        epoch bigint NOT NULL
    );
    ALTER TABLE lookout.documents ALTER body SET STORAGE EXTERNAL;
    CREATE TABLE lookout.pieces (name text PRIMARY KEY, piece bytea NOT NULL);
    CREATE TABLE lookout.writer (
        epoch bigint PRIMARY KEY, holder text NOT NULL, taken_at timestamptz NOT NULL,
        writes bigint NOT NULL, first_write_at timestamptz, last_write_at timestamptz
    );
    INSERT INTO lookout.writer VALUES (0, 'nobody', clock_timestamp(), 0);
    CREATE TABLE lookout.former_writers (LIKE lookout.writer INCLUDING ALL);
    """,
)
SCHEMA_VERSION: Final = len(STEPS)
_WRITER: Final = (
    "epoch bigint, holder text, taken_at timestamp with time zone, writes bigint,"
    " first_write_at timestamp with time zone, last_write_at timestamp with time zone"
)
# What the steps lead to, as the database says it.
TABLES: Final = {
    "schema_version": "version integer",
    "documents": "name text, body bytea, etag text, generated_at bigint, epoch bigint",
    "pieces": "name text, piece bytea",
    "writer": _WRITER,
    "former_writers": _WRITER,
}


def migrate(session: DatabaseSession, address: DatabaseAddress, steps: Sequence[str] = STEPS) -> None:
    """Bring the store up to date, in a transaction of the caller's. One of a newer version is left alone, and so is
    whatever is not as Lookout makes it: StoreError."""
    version = 0
    if found := _found(session):
        version = _version(session, found, address)
    elif session.execute("SELECT to_regnamespace('lookout')").fetchone() == (None,):
        session.execute("CREATE SCHEMA lookout")
    if version < len(steps):
        for step in steps[version:]:
            session.execute(step)
        session.execute("UPDATE lookout.schema_version SET version = %s", (len(steps),))
        found = _found(session)
    for name, columns in TABLES.items():
        if name not in found:
            raise not_ours(address, f"lookout.{name} is missing")
        if found[name] != columns:
            raise not_ours(address, f"lookout.{name} has other columns")


def pieces_in(session: DatabaseSession, address: DatabaseAddress) -> dict[str, bytes]:
    """Every stored piece."""
    return dict(complete(session.execute("SELECT name, piece FROM lookout.pieces", binary=True).fetchall(), address))


def complete(rows: list[TupleRow], address: DatabaseAddress) -> list[TupleRow]:
    """The rows; StoreError if nothing is in one where something has to be: a failing disk minds no constraint."""
    if any(None in row for row in rows):
        raise damaged(address, "nothing is where something has to be")
    return rows


def check_version(version: int | None, address: DatabaseAddress) -> None:
    if version is None or version < 1:
        raise not_ours(address, "lookout.schema_version holds no version")
    refuse_newer(address, version, SCHEMA_VERSION)


def not_ours(address: DatabaseAddress, why: str) -> StoreError:
    return StoreError(
        f"{address}: the schema lookout is another application's, or damaged: {why};"
        " restore it from a backup, or give Lookout another database"
    )


def _found(session: DatabaseSession) -> dict[str, str]:
    """The columns of whatever has the name of one of the tables."""
    rows = session.execute(
        "SELECT c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)"
        " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        " WHERE c.relnamespace = to_regnamespace('lookout') AND c.relname = ANY(%s) GROUP BY c.relname",
        (list(TABLES),),
    )
    return dict(rows.fetchall())


def _version(session: DatabaseSession, found: Mapping[str, str], address: DatabaseAddress) -> int:
    if found.get("schema_version") != TABLES["schema_version"]:
        what = "has other columns" if "schema_version" in found else f"is missing, and lookout.{min(found)} is there"
        raise not_ours(address, f"lookout.schema_version {what}")
    rows = session.execute("SELECT version FROM lookout.schema_version").fetchall()
    if len(rows) != 1:
        raise not_ours(address, f"lookout.schema_version has {len(rows)} rows")
    check_version(rows[0][0], address)
    return int(rows[0][0])


@contextmanager
def transaction(session: DatabaseSession) -> Iterator[None]:
    session.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        yield
        session.execute("COMMIT")
    except BaseException:
        if not session.closed:
            session.execute("ROLLBACK")
        raise
