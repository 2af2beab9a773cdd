"""What happens to a PostgreSQL store in use: dropped tables, damaged rows, settings of its role."""

import pytest

from lookout.base.clock import SystemClock
from lookout.base.pieces import Pieces
from lookout.documents.document import paths
from lookout.documents.reports import documents_of
from lookout.server.poller import Poller
from lookout.server.replies import Reply, Site
from lookout.server.responder import respond
from lookout.store.postgres import PostgresReader, open_writer
from lookout.store.protocol import LostStoreError, Reader, StoreError, Writer
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened
from tests.integration.served import a_ledger
from tests.postgres import Postgres
from tests.stores import once_free
from tests.wait import until


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_may_have_any_encoding(encoding: str, server: Postgres, opened: Opened) -> None:
    url = server.url(server.a_database(f"ENCODING {encoding} TEMPLATE template0"))
    writer = opened(open_writer(url))
    writer.write({"live": LIVE}, Pieces({"a": b"1"}))
    reader = opened(PostgresReader(url))
    assert (reader.changed(), reader.read("live")) == (True, LIVE)
    assert writer.load() == {"a": b"1"}


DAMAGE = {
    "text for bytes": "ALTER body TYPE text USING 'x'; UPDATE lookout.documents SET etag = 'x'",
    "text for an instant": "ALTER generated_at TYPE text USING 'soon'",
    "a huge instant": "ALTER generated_at TYPE numeric USING 1e300",
    "no body": "ALTER body DROP NOT NULL; UPDATE lookout.documents SET body = NULL, etag = 'x'",
    "no ETag": "ALTER etag DROP NOT NULL; UPDATE lookout.documents SET etag = NULL",
    "a negative instant": "ALTER etag SET NOT NULL; UPDATE lookout.documents SET generated_at = -1, etag = etag || ' '",
    "nothing in it": "ALTER etag SET NOT NULL; UPDATE lookout.documents SET body = '', etag = ''",
}


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_documents_that_were_damaged_leave_the_last_good_ones_served(
    damage: str, server: Postgres, database: str, writer: Writer, reader: Reader
) -> None:
    def serve() -> list[Reply]:
        return [respond(poller.resources, "GET", path, None) for path in paths("protocol")]

    def counts_it() -> bool:
        poller.poll()
        return poller.state.store_errors > 0

    writer.write(documents_of(a_ledger()), NOTHING)
    poller = Poller(reader, SystemClock(), 20_000, Site(paths("protocol")))
    poller.poll()
    before = serve()
    assert [reply.http_code for reply in before] == [200, 200]
    server.ask(database, f"ALTER TABLE lookout.documents {damage}")
    until(counts_it, "it is counted")
    assert serve() == before


def test_a_store_that_is_dropped_starts_from_scratch(
    server: Postgres, database: str, url: str, writer: Writer, reader: Reader, opened: Opened
) -> None:
    writer.write({"live": LIVE}, Pieces({"a": b"1"}))
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
    writer.write({"live": LIVE}, Pieces({"a": b"1"}))
    server.ask(database, "TRUNCATE lookout.lease")
    for use in (lambda: writer.write({"live": HISTORY}, NOTHING), lambda: open_writer(url)):
        with pytest.raises(StoreError, match=r"lookout\.lease is empty; restore it from a backup"):
            use()
    assert server.ask(database, "SELECT name FROM lookout.pieces") == [("a",)]


def test_documents_that_were_deleted_are_there_again_with_the_next_publication(
    server: Postgres, database: str, writer: Writer, reader: Reader
) -> None:
    writer.write({"live": LIVE}, NOTHING)
    server.ask(database, "TRUNCATE lookout.documents")
    assert reader.read("live") is None
    writer.write({"live": HISTORY}, NOTHING)
    assert reader.read("live") == HISTORY


def test_settings_of_a_role_change_nothing(server: Postgres, database: str, role: str, opened: Opened) -> None:
    for setting in (
        "default_transaction_isolation = 'serializable'",
        "bytea_output = 'escape'",
        "client_encoding = 'LATIN1'",
        "standard_conforming_strings = off",
        "DateStyle = 'German'",
    ):
        server.ask(database, f"ALTER ROLE {role} SET {setting}")
    writer = opened(open_writer(server.url(database, role)))
    reader = opened(PostgresReader(server.url(database, role)))
    for document in (LIVE, HISTORY):
        writer.write({"live": document}, Pieces({"a": b"\\x00'"}, replace_all=True))
        until(reader.changed, "it is noticed")
        assert reader.read("live") == document
    assert writer.load() == {"a": b"\\x00'"}
