"""Stores of every released version, opened by today's code; and tomorrow's steps, tried on them."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from lookout.core.ledger import Ledger
from lookout.core.model import Check
from lookout.documents.document import Document, DocumentName, etag
from lookout.documents.reports import history_document, live_document
from lookout.state.codec import decode_state
from lookout.store import postgres, sqlite
from lookout.store.postgres import PostgresReader
from lookout.store.protocol import Reader, StoreError
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, MINUTE, NOON, PPOI, a_plan
from tests.contract.store import kept
from tests.contract.store.stores import Opened
from tests.logs import capture_logs
from tests.postgres import Postgres

FILES: Final = kept.versions("sqlite")
DUMPS: Final = kept.versions("sql")
WATCHED: Final = (MESSAGING, PPOI, BROADCASTERS, INDEXER, *(Check(n, 137) for n in ("indexer", "ppoi", "broadcasters")))
TIME_S: Final = 60


def a_copy(folder: Path, version: int) -> Path:
    return Path(shutil.copy(FILES[version], folder / "lookout.db"))


def check_whole(documents: Mapping[DocumentName, Document | None], state: Mapping[str, bytes]) -> None:
    """Hold the documents against their ETags, and go on from the state: nothing that was published changes."""
    live, history = parse(documents["live"]), parse(documents["history"])
    ledger = Ledger(a_plan(*WATCHED, chains=(1, 137)), decode_state(state)[0])
    ledger.start(NOON + 20 * MINUTE)
    ledger.publish(NOON + 20 * MINUTE)
    now_live, now_history = parse(live_document(ledger.report())), parse(history_document(ledger.view()))
    assert len(history["rows"][0]["buckets"]) > 300  # it was filled
    assert now_history["from"] == history["from"]
    for old, new in zip(history["rows"], now_history["rows"], strict=True):
        assert new["buckets"].startswith(old["buckets"][:-1])
        assert new["buckets"][len(old["buckets"]) :].startswith("---")
    assert {row["lastSuccessAt"] for row in live["checks"]} != {None}
    assert now_live["checks"] == live["checks"]


def documents_of(reader: Reader) -> dict[DocumentName, Document | None]:
    return {"live": reader.read("live"), "history": reader.read("history")}


def parse(document: Document | None) -> Any:
    assert document is not None
    assert document.etag == etag(document.body)
    return json.loads(document.body)


def schema_of(path: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
    return [(kind, name, " ".join(sql.split())) for kind, name, sql in found if sql is not None]


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


@pytest.mark.parametrize("version", FILES)
def test_a_file_of_every_version_is_read_and_goes_on(version: int, tmp_path: Path, opened: Opened) -> None:
    path = a_copy(tmp_path, version)
    reader = opened(sqlite.SqliteReader(path))  # a server is upgraded before the monitor is
    before = documents_of(reader)
    with capture_logs() as logs:
        writer = opened(sqlite.open_writer(path))
    assert len(logs) == (version < sqlite.SCHEMA_VERSION)
    assert documents_of(reader) == before
    check_whole(before, writer.load())
    assert version_of(path) == sqlite.SCHEMA_VERSION


@pytest.mark.parametrize("version", DUMPS)
def test_a_database_of_every_version_is_read_and_goes_on(version: int, server: Postgres, opened: Opened) -> None:
    database = kept.load(server, DUMPS[version])
    reader = opened(PostgresReader(server.url(database)))
    before = documents_of(reader)
    writer = opened(postgres.open_writer(server.url(database)))
    assert documents_of(reader) == before
    check_whole(before, writer.load())
    assert server.ask(database, "SELECT version FROM lookout.schema_version") == [(postgres.SCHEMA_VERSION,)]


def test_a_changed_schema_has_a_step_and_a_kept_store(tmp_path: Path) -> None:
    """If this fails, a released step was changed (add one instead), or a step's store was not kept (see kept.py)."""
    assert set(FILES) == set(range(1, sqlite.SCHEMA_VERSION + 1))
    sqlite.open_writer(tmp_path / "new.db").close()
    newest = FILES[sqlite.SCHEMA_VERSION]
    assert schema_of(tmp_path / "new.db") == schema_of(newest)
    assert version_of(newest) == sqlite.SCHEMA_VERSION


def test_a_changed_schema_of_the_database_has_a_step_and_a_kept_store(server: Postgres) -> None:
    """The same."""
    assert set(DUMPS) == set(range(1, postgres.SCHEMA_VERSION + 1))
    new, newest = server.a_database(), kept.load(server, DUMPS[postgres.SCHEMA_VERSION])
    postgres.open_writer(server.url(new)).close()
    assert columns(server, new) == columns(server, newest)
    assert constraints(server, new) == constraints(server, newest)


def columns(server: Postgres, database: str) -> list[tuple[str, ...]]:
    return server.ask(
        database,
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        " WHERE c.relnamespace = 'lookout'::regnamespace AND c.relkind = 'r' ORDER BY c.relname, a.attnum",
    )


def constraints(server: Postgres, database: str) -> list[tuple[str, ...]]:
    return server.ask(
        database,
        "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE connamespace = 'lookout'::regnamespace AND contype <> 'n' ORDER BY 1, 2",
    )


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path, server: Postgres, opened: Opened) -> None:
    path = a_copy(tmp_path, sqlite.SCHEMA_VERSION)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 4")
    before = path.read_bytes()
    database = kept.load(server, DUMPS[postgres.SCHEMA_VERSION])
    server.ask(database, "UPDATE lookout.schema_version SET version = 4")
    lease = server.ask(database, "SELECT * FROM lookout.lease")
    reader = opened(PostgresReader(server.url(database)))
    for use in (
        lambda: sqlite.open_writer(path),
        lambda: postgres.open_writer(server.url(database)),
        reader.changed,
        lambda: reader.read("live"),
    ):
        with pytest.raises(StoreError, match=r"written by a newer version of Lookout \(schema 4, this one knows 3\)"):
            use()
    assert path.read_bytes() == before
    assert server.ask(database, "SELECT * FROM lookout.lease") == lease
