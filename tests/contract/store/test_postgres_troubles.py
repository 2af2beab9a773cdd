"""What happens to a PostgreSQL store in use: dropped tables, damaged rows, settings of its role."""

import pytest

from lookout.documents.document import Pieces
from lookout.store.postgres import PostgresReader, open_writer
from lookout.store.protocol import LostStoreError, Reader, StoreError, Writer
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened
from tests.postgres import Postgres
from tests.stores import once_free


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_may_have_any_encoding(encoding: str, server: Postgres, opened: Opened) -> None:
    url = server.url(server.a_database(f"ENCODING {encoding} TEMPLATE template0"))
    writer = opened(open_writer(url))
    writer.write({"live": LIVE}, Pieces({"a": b"1"}))
    reader = opened(PostgresReader(url))
    assert (reader.changed(), reader.read("live")) == (True, LIVE)
    assert writer.load() == {"a": b"1"}


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
