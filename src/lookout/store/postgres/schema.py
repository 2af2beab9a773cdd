"""The tables of the PostgreSQL store, made and brought up to date, forward only."""

from collections.abc import Mapping, Sequence
from typing import Final

from psycopg.rows import TupleRow

from lookout.store.postgres.session import DatabaseAddress, DatabaseSession, damaged
from lookout.store.protocol import StoreBusyError, StoreError, refuse_newer

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
    """
    CREATE TABLE lookout.lease (
        epoch bigint NOT NULL, writes bigint NOT NULL, holder text, renewed_at timestamptz NOT NULL
    );
    INSERT INTO lookout.lease SELECT epoch, writes, NULL, clock_timestamp() FROM lookout.writer;
    DROP TABLE lookout.writer, lookout.former_writers;
    """,
)
SCHEMA_VERSION: Final = len(STEPS)
_LOCKED_VERSION: Final = 1  # whose monitors hold an advisory lock instead of the lease
_LOCK: Final = 0x4C6F6F6B6F7574  # "Lookout"
# What the steps lead to, as the database says it.
TABLES: Final = {
    "schema_version": "version integer",
    "documents": "name text, body bytea, etag text, generated_at bigint, epoch bigint",
    "pieces": "name text, piece bytea",
    "lease": "epoch bigint, writes bigint, holder text, renewed_at timestamp with time zone",
}


def migrate(session: DatabaseSession, address: DatabaseAddress, steps: Sequence[str] = STEPS) -> None:
    """Bring the store up to date, in a transaction of the caller's. StoreBusyError if a monitor of an earlier version
    writes to the store; StoreError if the store is of a newer version, or not as Lookout makes one."""
    version = 0
    if found := _found(session):
        version = _version(session, found, address)
    elif session.execute("SELECT to_regnamespace('lookout')").fetchone() == (None,):
        session.execute("CREATE SCHEMA lookout")
    if version == _LOCKED_VERSION:
        _keep_locking_monitors_out(session, address)
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


def _keep_locking_monitors_out(session: DatabaseSession, address: DatabaseAddress) -> None:
    """Until the end of the transaction; StoreBusyError if a monitor of an earlier version is writing."""
    if session.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone() != (True,):
        raise StoreBusyError(f"{address}: a monitor of an earlier version is writing to it")
