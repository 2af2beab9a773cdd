"""A store that was damaged under running servers: they serve what they had, say why, and recover."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lookout.base.clock import SystemClock
from lookout.core.ledger import Ledger
from lookout.documents.reports import documents_of, history_document, live_document
from lookout.documents.routes import paths
from lookout.server.poller import Poller, Site
from lookout.server.responder import respond
from lookout.state.pieces import Pieces
from lookout.store.postgres.reader import PostgresReader
from lookout.store.postgres.writer import open_writer as open_postgres_writer
from tests.integration.raw import RawServer, a_raw_server
from tests.integration.served import HISTORY, LIVE, a_ledger, publish
from tests.leases import or_skipped
from tests.postgres import Postgres, a_postgres, from_a_wheel
from tests.stores import once_free
from tests.untyped import untyped_documents
from tests.wait import until

TEXT_FOR_BYTES = "UPDATE untyped SET body = CAST(body AS TEXT), generated_at = 'soon'"
NOTHING = "UPDATE untyped SET body = NULL, etag = NULL, generated_at = NULL"
OTHER_BYTES = "UPDATE untyped SET body = x'00'"


def damage(folder: Path, statement: str) -> None:
    """Past the types of the table, as a flipped bit in the file is."""
    with untyped_documents(folder / "lookout.db") as connection:
        connection.execute(statement)


def publish_again(folder: Path, ledger: Ledger) -> None:
    """As a monitor does once the damaged file was moved away."""
    (folder / "lookout.db").unlink()
    publish(folder, ledger)


def codes(server: RawServer) -> list[int]:
    return [server.ask("GET", path).http_code for path in (LIVE, HISTORY)]


@pytest.mark.clause("A11", "A12")
def test_a_server_serves_what_it_had_while_its_store_is_damaged_and_recovers(tmp_path: Path) -> None:
    ledger = a_ledger()
    publish(tmp_path, ledger)
    before = {LIVE: live_document(ledger.report()).body, HISTORY: history_document(ledger.view()).body}
    with a_raw_server(tmp_path) as server:
        workers = server.workers()
        for number, statement in enumerate((TEXT_FOR_BYTES, NOTHING, OTHER_BYTES), 1):
            damage(tmp_path, statement)
            until(lambda: server.logged("the store cannot be read; serving what was read last") == number, "it is told")  # noqa: B023
            assert {path: server.ask("GET", path).body for path in before} == before
            publish_again(tmp_path, ledger)
            until(lambda: server.logged("the store can be read again") == number, "it recovers")  # noqa: B023
        ledger.publish((ledger.published_at or 0) + 60_000)
        publish(tmp_path, ledger)
        until(lambda: server.ask("GET", LIVE).body == live_document(ledger.report()).body, "the new report is served")
        assert codes(server) == [200, 200]
        assert server.workers() == workers


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("statement", [TEXT_FOR_BYTES, NOTHING], ids=["text for bytes", "nothing"])
def test_a_server_that_starts_on_a_damaged_store_answers_503_and_lives(tmp_path: Path, statement: str) -> None:
    publish(tmp_path, a_ledger())
    damage(tmp_path, statement)
    with a_raw_server(tmp_path) as server:
        assert codes(server) == [503, 503]
        publish_again(tmp_path, a_ledger())
        until(lambda: codes(server) == [200, 200], "it recovers")


@pytest.fixture(scope="module", params=[from_a_wheel()])
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with or_skipped(a_postgres(request.param)) as running:
        yield running


def written(postgres: Postgres, database: str) -> None:
    ledger = a_ledger()
    writer = once_free(lambda: open_postgres_writer(postgres.url(database)))
    try:
        writer.write(
            documents_of(ledger),
            Pieces({}),
        )
    finally:
        writer.close()


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(
            "ALTER TABLE lookout.documents ALTER body TYPE text USING 'x'; UPDATE lookout.documents SET etag = 'x'",
            id="text for bytes",
        ),
        pytest.param(
            "ALTER TABLE lookout.documents ALTER generated_at TYPE text USING 'soon'", id="text for an instant"
        ),
        pytest.param("ALTER TABLE lookout.documents ALTER generated_at TYPE numeric USING 1e300", id="a huge instant"),
        pytest.param("UPDATE lookout.documents SET generated_at = -1, etag = etag || ' '", id="a negative instant"),
        pytest.param("UPDATE lookout.documents SET body = '', etag = ''", id="empty"),
        pytest.param(
            "ALTER TABLE lookout.documents ALTER body DROP NOT NULL; "
            "UPDATE lookout.documents SET body = NULL, etag = 'x'",
            id="no body",
        ),
        pytest.param(
            "ALTER TABLE lookout.documents ALTER etag DROP NOT NULL; UPDATE lookout.documents SET etag = NULL",
            id="no ETag",
        ),
    ],
)
def test_documents_that_were_damaged_in_postgresql_leave_the_last_good_ones_served(
    postgres: Postgres, damage: str
) -> None:
    database = postgres.a_database()
    written(postgres, database)
    live, history = paths("protocol")
    with closing(PostgresReader(postgres.url(database))) as reader:
        poller = Poller(reader, SystemClock(), 20_000, Site(paths("protocol")))
        poller.look()
        before = [respond(poller.resources, "GET", path, None) for path in (live, history)]
        assert [reply.http_code for reply in before] == [200, 200]
        for statement in damage.split("; "):
            postgres.ask(database, statement)
        until(_looking(poller, lambda: poller.store_errors > 0), "it is told")
        assert [respond(poller.resources, "GET", path, None) for path in (live, history)] == before


def _looking(poller: Poller, holds: Callable[[], bool]) -> Callable[[], bool]:
    def look() -> bool:
        poller.look()
        return holds()

    return look
