"""The threads that keep a process's replies up to date."""

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName, etag, paths
from lookout.server.poller import Follower, Poller
from lookout.server.replies import Site
from lookout.server.responder import respond
from lookout.server.shared import Counts
from lookout.store.sqlite import SqliteReader, open_writer
from tests.builders import NOON, SECOND
from tests.logs import capture_logs
from tests.unit.server.fakes import FakeReader, SetClock
from tests.wait import until


class BrokenPoller(Poller):
    def poll(self) -> None:
        raise ValueError("of the store")

    def check_time(self) -> None:
        raise TypeError("of the time")


def test_a_bug_does_not_end_a_thread_and_is_logged_with_its_name() -> None:
    clock = SetClock()
    poller = BrokenPoller(FakeReader(), clock, 300_000, Site(paths("protocol")))
    follower = Follower(poller, Counts(1).attach(), clock)
    with capture_logs() as log:
        follower.start()
        until(lambda: min(map(threads(log).count, ("poll the store", "watch the time"))) >= 2, "each crashed twice")
        follower.stop()
    assert {entry["event"] for entry in log} == {"a thread of the server crashed; it goes on"}
    assert set(threads(log)) == {"poll the store", "watch the time"}


def threads(log: list[dict[str, Any]]) -> list[str]:
    return [entry["thread"] for entry in list(log)]


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
    follower = Follower(poller, Counts(1).attach(), clock)
    follower.start()
    assert reader.is_stuck.wait(10)
    assert codes() == [200, 200]
    clock.elapsed += 300 * SECOND + 1
    until(lambda: codes() == [200, 503], "the history is given up")
    reader.ends.set()
    until(lambda: codes() == [200, 200], "the history is read again")
    follower.stop()
    reader.close()
