"""Databases of no use to Lookout, or not now: the sentence that says so, and that nothing in them is changed."""

from typing import Any

import pytest

from lookout.documents.document import Pieces
from lookout.store.postgres import PostgresReader, open_writer
from lookout.store.protocol import StoreError, StoreUnreachableError
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened, write_again
from tests.postgres import Postgres
from tests.stores import once_free

PLANTED = "xyzzy-planted"
RIGHTS = "; docs/operations.md says which rights are needed"


def everything(server: Postgres, database: str) -> dict[str, Any]:
    """All tables with their columns and rows."""
    columns = server.ask(
        database,
        "SELECT table_schema || '.' || table_name, array_agg(column_name || ' ' || data_type ORDER BY ordinal_position)"
        " FROM information_schema.columns WHERE table_schema IN ('lookout', 'public') GROUP BY 1",
    )
    return {name: (of, server.ask(database, f"TABLE {name}")) for name, of in columns}


def test_a_role_needs_no_more_rights_than_documented(server: Postgres, database: str, opened: Opened) -> None:
    monitor, reading = f"{database}_monitor", f"{database}_server"
    for role in (monitor, reading):
        server.ask(database, f"CREATE ROLE {role} LOGIN")
    place = f"PostgreSQL {database} on {server.folder}"
    with pytest.raises(StoreError) as caught:
        open_writer(server.url(database, monitor))
    assert str(caught.value) == f"{place}: permission denied for database {database}{RIGHTS}"
    assert everything(server, database) == {}
    server.ask(database, f"CREATE SCHEMA lookout AUTHORIZATION {monitor}")
    writer = opened(once_free(lambda: open_writer(server.url(database, monitor))))
    writer.write({"live": LIVE}, NOTHING)
    reader = opened(PostgresReader(server.url(database, reading)))
    with pytest.raises(StoreError) as caught:
        reader.read("live")
    assert str(caught.value) == f"{place}: permission denied for schema lookout{RIGHTS}"
    server.ask(database, f"GRANT USAGE ON SCHEMA lookout TO {reading}")
    with pytest.raises(StoreError) as caught:
        reader.read("live")
    assert str(caught.value) == f"{place}: permission denied for table schema_version{RIGHTS}"
    server.ask(database, f"GRANT SELECT ON lookout.schema_version, lookout.documents TO {reading}")
    assert reader.read("live") == LIVE
    assert reader.changed()


def test_a_monitor_without_rights_in_anothers_store_is_refused(server: Postgres, database: str, url: str) -> None:
    open_writer(url).close()
    server.ask(database, f"CREATE ROLE {database}_guest LOGIN")
    before = everything(server, database)
    with pytest.raises(StoreError, match=f"permission denied for schema lookout{RIGHTS}"):
        once_free(lambda: open_writer(server.url(database, f"{database}_guest")))
    server.ask(database, f"GRANT USAGE ON SCHEMA lookout TO {database}_guest")
    server.ask(database, f"GRANT SELECT ON ALL TABLES IN SCHEMA lookout TO {database}_guest")
    with pytest.raises(StoreError, match=f"permission denied for table lease{RIGHTS}"):
        once_free(lambda: open_writer(server.url(database, f"{database}_guest")))
    assert everything(server, database) == before


def test_a_database_that_is_read_only_for_a_while_is_waited_for(
    server: Postgres, database: str, url: str, opened: Opened
) -> None:
    """As a provider makes it when its disk is full."""

    def make(read_only: str) -> None:
        server.ask("postgres", f"ALTER DATABASE {database} SET default_transaction_read_only = {read_only}")
        server.end_session(database)

    make("on")
    with pytest.raises(StoreUnreachableError, match="cannot execute CREATE SCHEMA in a read-only transaction"):
        open_writer(url)
    make("off")
    writer = opened(once_free(lambda: open_writer(url)))
    writer.write({"live": LIVE}, Pieces({"a": b"1"}))
    make("on")
    for _ in range(3):
        with pytest.raises(StoreUnreachableError):
            writer.write({"live": HISTORY}, NOTHING)
    make("off")
    write_again(writer)
    assert writer.load() == {"a": b"1"}
