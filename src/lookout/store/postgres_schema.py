"""The tables of the PostgreSQL store, made and brought up to date, forward only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lookout.store.postgres_session import Address, Session
from lookout.store.protocol import StoreError

# Each step brings a store from the version that is its place to the next.
_STEPS: Final = (
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
SCHEMA_VERSION: Final = len(_STEPS)


def migrate(session: Session, address: Address) -> None:
    """Bring the store up to date, all of it or nothing; one of a newer version is left alone."""
    with transaction(session):
        version = 0
        if session.execute("SELECT to_regclass('lookout.schema_version')").fetchone() != (None,):
            row = session.execute("SELECT version FROM lookout.schema_version").fetchone()
            version = 0 if row is None else int(row[0])
        elif session.execute("SELECT to_regnamespace('lookout')").fetchone() == (None,):
            session.execute("CREATE SCHEMA lookout")
        check_version(version, address)
        if version < SCHEMA_VERSION:
            for step in _STEPS[version:]:
                session.execute(step)
            session.execute("UPDATE lookout.schema_version SET version = %s", (SCHEMA_VERSION,))


def check_version(version: int, address: Address) -> None:
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{address}: written by a newer version of Lookout (schema {version}, this one knows {SCHEMA_VERSION})"
        )


@contextmanager
def transaction(session: Session) -> Iterator[None]:
    session.execute("BEGIN")
    try:
        yield
        session.execute("COMMIT")
    except BaseException:
        if not session.closed:
            session.execute("ROLLBACK")
        raise
