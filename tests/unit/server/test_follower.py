"""The threads that keep a process's replies up to date."""

import threading
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName, etag, paths
from lookout.server.callers import Callers
from lookout.server.follower import Follower
from lookout.server.poller import Poller
from lookout.server.responder import Responder, respond
from lookout.server.shared import Counts
from lookout.server.site import Site
from lookout.store.sqlite.writer import SqliteReader, open_writer
from tests.builders import NOON, SECOND
from tests.unit.server.fakes import FakeReader, SetClock
from tests.wait import until


class BrokenPoller(Poller):
    def look(self) -> None:
        raise ValueError("of the store")

    def check_time(self) -> None:
        raise TypeError("of the time")


def test_a_bug_does_not_end_a_look_and_is_logged_with_what_was_looked_at() -> None:
    clock = SetClock()
    poller = BrokenPoller(FakeReader(), clock, 300_000, Site(paths("protocol")))
    responder = Responder(poller, Callers(()), None, Counts(1).attach(), clock)
    follower = Follower(responder)
    with capture_logs() as log:
        follower.start()
        until(lambda: min(map(looks(log).count, ("the store", "the time"))) >= 2, "each look died twice")
        follower.stop()
    assert {entry["event"] for entry in log} == {"a look died of a bug"}
    assert set(looks(log)) == {"the store", "the time"}


def looks(log: list[EventDict]) -> list[str]:
    return [entry["look"] for entry in list(log)]


class StuckReader(SqliteReader):
    """Reads a real file, until the description hangs: the thread that reads it does not come back."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_stuck = threading.Event()
        self.ends = threading.Event()

    def read(self, name: DocumentName) -> Document | None:
        if name == "about":
            self.is_stuck.set()
            self.ends.wait()
        return super().read(name)


@pytest.mark.clause("A12")
def test_a_history_is_given_up_while_the_thread_that_reads_the_store_is_stuck_after_it(tmp_path: Path) -> None:
    path, clock = tmp_path / "lookout.db", SetClock()
    with closing(open_writer(path)) as writer:
        writer.write({name: Document(b"{}", etag(b"{}"), NOON) for name in ("live", "history", "about")}, Pieces({}))

    def codes() -> list[int]:
        return [respond(poller.resources, "GET", route, None).http_code for route in poller.site.paths]

    reader = StuckReader(path)
    poller = Poller(reader, clock, 300 * SECOND, Site(paths("protocol")))
    follower = Follower(Responder(poller, Callers(()), None, Counts(1).attach(), clock))
    follower.start()
    assert reader.is_stuck.wait(10)
    assert codes() == [200, 200]
    clock.elapsed += 300 * SECOND + 1
    until(lambda: codes() == [200, 503], "the history is given up")
    reader.ends.set()
    until(lambda: codes() == [200, 200], "the history is read again")
    follower.stop()
    reader.close()
