"""What PostgreSQL adds to the behaviour of every store: sessions that are lost, rights, tables that are gone."""

import subprocess
import sys
import traceback
from typing import Any

import pytest

from lookout.store.postgres import DatabaseAddress, PostgresReader, open_writer
from lookout.store.protocol import LostStoreError, Reader, StoreError, StoreUnreachableError, Writer
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened, write_again
from tests.postgres import Postgres
from tests.stores import once_free
from tests.wait import until


def position(server: Postgres, database: str) -> tuple[int, int]:
    ((epoch, writes),) = server.ask(database, "SELECT epoch, writes FROM lookout.lease")
    return epoch, writes


def test_a_writer_whose_session_was_ended_goes_on_in_its_epoch(
    server: Postgres, database: str, writer: Writer, reader: Reader
) -> None:
    writer.write({"live": LIVE}, {"a": b"1"})
    epoch, writes = position(server, database)
    assert (epoch > 0, writes) == (True, 1)
    assert server.end_session(database) == 1
    write_again(writer, {"a": b"1"})
    assert position(server, database) == (epoch, 2)
    assert reader.read("live") == HISTORY
    assert writer.load() == {"a": b"1"}


def test_a_database_that_is_gone_before_the_state_was_loaded_is_lost(
    server: Postgres, database: str, writer: Writer
) -> None:
    server.ask("postgres", f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    server.end_session(database)
    with pytest.raises(LostStoreError):
        writer.load()
    server.ask("postgres", f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
    with pytest.raises(LostStoreError):
        writer.write({"live": LIVE}, NOTHING)


@pytest.mark.parametrize("stored", [True, False], ids=["was stored", "was not stored"])
def test_a_write_whose_answer_was_lost_is_made_again(
    stored: bool, server: Postgres, database: str, writer: Writer, reader: Reader
) -> None:
    writer.write({"live": LIVE}, NOTHING)
    server.ask(
        database,
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'",
    )
    server.ask(database, "CREATE TRIGGER die BEFORE UPDATE ON lookout.documents FOR EACH ROW EXECUTE FUNCTION die()")
    with pytest.raises(StoreUnreachableError):
        writer.write({"live": HISTORY}, NOTHING)
    server.ask(database, "DROP FUNCTION die CASCADE")
    assert reader.read("live") == LIVE
    if stored:
        server.ask(database, "UPDATE lookout.lease SET writes = writes + 1")
    write_again(writer)
    assert reader.read("live") == HISTORY


def test_a_reader_goes_on_when_its_session_was_ended(
    server: Postgres, database: str, writer: Writer, reader: Reader
) -> None:
    writer.write({"live": LIVE}, NOTHING)
    assert reader.read("live") == LIVE
    assert server.end_session(database, "lookout server") == 1
    with pytest.raises(StoreError):
        reader.changed()
    assert reader.read("live") == LIVE
    writer.write({"live": HISTORY}, NOTHING)
    assert (reader.changed(), reader.read("live")) == (True, HISTORY)


def test_a_body_is_read_once_for_each_etag(server: Postgres, database: str, writer: Writer, reader: Reader) -> None:
    writer.write({"live": LIVE}, NOTHING)
    assert reader.read("live") == LIVE
    server.ask(database, "UPDATE lookout.documents SET body = 'not read'")
    assert reader.read("live") == LIVE
    writer.write({"live": HISTORY}, NOTHING)
    assert reader.read("live") == HISTORY


def test_a_reader_waits_for_a_store_that_is_not_there_yet(url: str, reader: Reader, opened: Opened) -> None:
    assert (reader.changed(), reader.read("live")) == (False, None)
    writer = opened(open_writer(url))
    writer.write({"live": LIVE}, NOTHING)
    assert reader.read("live") == LIVE
    until(reader.changed, "it is noticed")


PLANTED = "xyzzy-planted"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://me:{PLANTED}@127.0.0.1:1/lookout", "Connection refused"),
        (f"postgresql://me:{PLANTED}@no.such.host.invalid/lookout?connect_timeout=2", "no.such.host.invalid"),
        (f"postgresql://me:{PLANTED}@/lookout?host=/no/such/folder&sslpassword=more-{PLANTED}", "No such file"),
        (f"postgresql://me:p@{PLANTED}@host/lookout", "write @ as %40"),
        (f"postgresql://me:{PLANTED}/{PLANTED}@host/lookout", "write @ as %40"),
        (f"postgresql://me:%zz{PLANTED}@host/lookout", "not an address that PostgreSQL's clients understand"),
        (f"postgresql://me@host/lookout?password={PLANTED}&nonsense=1", "not an address"),
        (f"postgresql://me@host:{PLANTED}/lookout", "the port is not a number"),
    ],
)
def test_no_failure_shows_the_password(url: str, said: str) -> None:
    def read() -> None:
        PostgresReader(url).read("live")

    for attempt in (lambda: open_writer(url), read):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert PLANTED not in "".join(traceback.format_exception(caught.value))
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_address_shows_its_host_and_database_alone() -> None:
    assert repr(DatabaseAddress.of(f"postgresql://me:{PLANTED}@host/lookout")) == "PostgreSQL lookout on host"


def check_read(reader: Reader, writer: Writer) -> None:
    assert (reader.changed(), reader.read("live")) == (True, LIVE)
    writer.write({"live": HISTORY}, NOTHING)
    until(reader.changed, "it is noticed")
    assert reader.read("live") == HISTORY
    reader.close()


def test_a_replica_is_read_and_never_written(server: Postgres, database: str, writer: Writer, opened: Opened) -> None:
    writer.write({"live": LIVE}, NOTHING)
    with server.a_replica() as replica:
        url = replica.url(database)
        with pytest.raises(StoreError, match="cannot execute UPDATE in a read-only transaction"):
            open_writer(url)
        check_read(opened(PostgresReader(url)), writer)


def test_its_driver_is_not_loaded_without_need() -> None:
    program = "import sys, lookout.cli; print('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"


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
    writer.write({"live": LIVE}, {"a": b"1"})
    make("on")
    for _ in range(3):
        with pytest.raises(StoreUnreachableError):
            writer.write({"live": HISTORY}, NOTHING)
    make("off")
    write_again(writer, {"a": b"1"})
    assert writer.load() == {"a": b"1"}


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_may_have_any_encoding(encoding: str, server: Postgres, opened: Opened) -> None:
    url = server.url(server.a_database(f"ENCODING {encoding} TEMPLATE template0"))
    writer = opened(open_writer(url))
    writer.write({"live": LIVE}, {"a": b"1"})
    reader = opened(PostgresReader(url))
    assert (reader.changed(), reader.read("live")) == (True, LIVE)
    assert writer.load() == {"a": b"1"}


def test_a_store_that_is_dropped_starts_from_scratch(
    server: Postgres, database: str, url: str, writer: Writer, reader: Reader, opened: Opened
) -> None:
    writer.write({"live": LIVE}, {"a": b"1"})
    assert reader.changed()
    server.ask(database, "DROP SCHEMA lookout CASCADE")
    with pytest.raises(LostStoreError) as caught:
        writer.write({"live": LIVE}, NOTHING)
    assert str(caught.value) == f"PostgreSQL {database} on {server.folder}: its tables are gone"
    assert (reader.changed(), reader.read("live")) == (False, None)
    another = opened(once_free(lambda: open_writer(url)))
    assert another.load() == {}
    another.write({"live": HISTORY}, NOTHING)
    assert reader.read("live") == HISTORY


def test_a_store_without_a_lease_is_refused(server: Postgres, database: str, url: str, writer: Writer) -> None:
    writer.write({"live": LIVE}, {"a": b"1"})
    server.ask(database, "TRUNCATE lookout.lease")
    for use in (lambda: writer.write({"live": HISTORY}, NOTHING), lambda: open_writer(url)):
        with pytest.raises(StoreError, match=r"lookout\.lease is empty; restore it from a backup"):
            use()
    assert server.ask(database, "SELECT name FROM lookout.pieces") == [("a",)]
