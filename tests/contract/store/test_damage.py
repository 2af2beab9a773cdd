"""Documents that are damaged in either store, under a server that has read good ones, and under one that starts on
them: the good ones stay, the failure is counted, and the next good document is taken over."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.base.clock import SystemClock
from lookout.documents.document import Document, DocumentName, paths
from lookout.documents.reports import documents_of
from lookout.server.poller import Poller
from lookout.server.replies import Reply, Site
from lookout.server.responder import respond
from lookout.store.protocol import Reader, Writer
from lookout.store.sqlite import SqliteReader, open_writer
from tests.contract.store.stores import NOTHING, Opened
from tests.integration.served import a_ledger
from tests.postgres import Postgres
from tests.untyped import untyped_documents
from tests.wait import until

GOOD: dict[DocumentName, Document] = {
    name: document for name, document in documents_of(a_ledger()).items() if name in ("live", "history")
}
ODD: list[Any] = [
    *(None, 0, -1, 2**63 - 1, 1.5, 1e300, "", "x", "\x00", '"0000000000000000"', '""', "*", "12", "\u0130" * 20),
    *('"a"\r\nX-Injected: yes', "2026-11-15T12:00:00.000Z", b"", b"\x00", b"\xff" * 50, b"{}", b"\xef\xbb\xbf{}"),
]


def a_poller(reader: Reader) -> Poller:
    poller = Poller(reader, SystemClock(), 300_000, Site(paths("protocol")))
    poller.poll()
    return poller


def served(poller: Poller) -> list[Reply]:
    return [respond(poller.resources, "GET", path, None) for path in paths("protocol")]


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("name", ["live", "history"])
@pytest.mark.parametrize("column", ["body", "etag", "generated_at"])
def test_a_document_of_any_wrong_type_in_a_file_leaves_the_last_good_ones_served(
    name: str, column: str, path: Path, opened: Opened
) -> None:
    writer = opened(open_writer(path))
    writer.write(GOOD, NOTHING)
    poller = a_poller(opened(SqliteReader(path)))
    before = served(poller)
    assert [reply.http_code for reply in before] == [200, 200]
    for odd in ODD:
        with untyped_documents(path) as connection:
            connection.execute(f"UPDATE untyped SET {column} = ? WHERE name = ?", (odd, name))  # noqa: S608
        can_be_read = poller.poll()
        started = a_poller(opened(SqliteReader(path)))
        codes = [reply.http_code for reply in served(started)]
        if column == "generated_at":  # nothing but the monitor needs the instant
            assert 200 in codes
        else:
            assert served(poller) == before, odd
            assert (can_be_read, started.poll()) == (False, False), odd
            assert codes == [503 if each == name else 200 for each in GOOD], odd
        with untyped_documents(path) as connection:
            connection.execute("DELETE FROM untyped")
            rows = [(each, *(of.body, of.etag, of.generated_at)) for each, of in GOOD.items()]
            connection.executemany("INSERT INTO untyped VALUES (?, ?, ?, ?)", rows)
        poller.poll()
        assert served(poller) == before


@pytest.mark.clause("A11", "A12")
@given(bits=st.lists(st.integers(0), min_size=1, max_size=100))
def test_a_file_with_flipped_bits_leaves_the_last_good_documents_served(
    bits: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("flipped") / "lookout.db"
    with closing(open_writer(path)) as writer:
        writer.write(GOOD, NOTHING)
    damaged = bytearray(path.read_bytes())
    with closing(SqliteReader(path)) as reader, closing(SqliteReader(path)) as other:
        poller = a_poller(reader)
        before = served(poller)
        for bit in bits:
            damaged[bit // 8 % len(damaged)] ^= 1 << bit % 8
        path.unlink()
        path.write_bytes(damaged)
        poller.poll()
        assert served(poller) == before
        for good, late in zip(before, served(a_poller(other)), strict=True):
            assert late.http_code == 503 or late == good


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
def test_documents_that_were_damaged_in_a_database_leave_the_last_good_ones_served(
    damage: str, server: Postgres, database: str, writer: Writer, reader: Reader
) -> None:
    writer.write(GOOD, NOTHING)
    poller = a_poller(reader)
    before = served(poller)
    assert [reply.http_code for reply in before] == [200, 200]
    server.ask(database, f"ALTER TABLE lookout.documents {damage}")
    until(lambda: not poller.poll(), "it is noticed")
    assert served(poller) == before
