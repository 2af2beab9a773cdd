"""Databases of no use to Lookout, or not now: the sentence that says so, and that nothing in them is changed."""

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lookout.base.pieces import Pieces
from lookout.store.postgres import PostgresReader, open_writer
from lookout.store.protocol import StoreError, StoreUnreachableError
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened, write_again
from tests.postgres import Postgres
from tests.stores import once_free
from tests.wait import until

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


def test_an_empty_schema_is_used_and_other_tables_in_it_are_let_be(
    server: Postgres, database: str, url: str, opened: Opened
) -> None:
    server.ask(database, "CREATE SCHEMA lookout")
    server.ask(database, "CREATE TABLE lookout.notes AS SELECT 'mine' AS note")
    writer = opened(open_writer(url))
    writer.write({"live": LIVE}, NOTHING)
    assert server.ask(database, "SELECT note FROM lookout.notes") == [("mine",)]


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


def test_an_unknown_database_or_role_may_come_yet(server: Postgres, database: str) -> None:
    for url, what in (
        (server.url("nowhere"), 'database "nowhere" does not exist'),
        (server.url(database, "nobody"), 'role "nobody" does not exist'),
    ):
        for attempt in (lambda url=url: open_writer(url), lambda url=url: PostgresReader(url).read("live")):
            with pytest.raises(StoreUnreachableError) as caught:
                attempt()
            assert str(caught.value).endswith(f"failed: FATAL: {what}")


@contextmanager
def asking_for_a_password(server: Postgres, role: str) -> Iterator[None]:
    rules = server.folder / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all {role} scram-sha-256\n{before}")
    try:
        server.ask("postgres", "SELECT pg_reload_conf()")
        there = "SELECT true FROM pg_hba_file_rules WHERE user_name = ARRAY[%s]"
        until(lambda: bool(server.ask("postgres", there, role)), "the new rules are read")
        yield
    finally:
        rules.write_text(before)
        server.ask("postgres", "SELECT pg_reload_conf()")


def read_refusal(url: str) -> str:
    """What is said of a password that does not do. The server may take a moment to know its new rules."""
    until = time.monotonic() + 10
    while True:
        try:
            once_free(lambda: open_writer(url)).close()
        except StoreUnreachableError as error:
            return "".join(traceback.format_exception(error)).strip()
        assert time.monotonic() < until


def test_a_password_that_is_wrong_or_expires_is_not_shown_and_may_be_right_later(
    server: Postgres, database: str, role: str, opened: Opened
) -> None:
    server.ask(database, f"ALTER ROLE {role} PASSWORD '{PLANTED}'")
    said = f'FATAL: password authentication failed for user "{role}"'
    with asking_for_a_password(server, role):
        refusal = read_refusal(server.url(database, role, f"not-{PLANTED}"))
        assert refusal.endswith(said)
        assert PLANTED not in refusal
        writer = opened(once_free(lambda: open_writer(server.url(database, role, PLANTED))))
        server.ask(database, f"ALTER ROLE {role} VALID UNTIL '2020-01-01'")
        writer.write({"live": LIVE}, NOTHING)  # a session that there is goes on
        server.end_session(database)
        with pytest.raises(StoreUnreachableError):
            writer.write({"live": LIVE}, NOTHING)
        with pytest.raises(StoreUnreachableError) as caught:
            writer.write({"live": LIVE}, NOTHING)
        assert str(caught.value).endswith(said)
        server.ask(database, f"ALTER ROLE {role} VALID UNTIL 'infinity'")
        write_again(writer)


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


def test_a_role_with_no_connection_left_is_waited_for(
    server: Postgres, database: str, role: str, opened: Opened
) -> None:
    server.ask(database, f"ALTER ROLE {role} CONNECTION LIMIT 1")
    writer = opened(open_writer(server.url(database, role)))
    reader = opened(PostgresReader(server.url(database, role)))
    with pytest.raises(StoreUnreachableError, match="FATAL: too many connections for role"):
        reader.read("live")
    writer.write({"live": LIVE}, NOTHING)
    server.ask(database, f"ALTER ROLE {role} CONNECTION LIMIT 2")
    time.sleep(1.1)  # between two attempts
    assert reader.read("live") == LIVE
