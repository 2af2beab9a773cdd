"""The threads that keep a process's replies up to date."""

from structlog.testing import capture_logs
from structlog.typing import EventDict

from lookout.documents.routes import paths
from lookout.server.callers import Callers
from lookout.server.follower import Follower
from lookout.server.poller import Poller
from lookout.server.responder import Responder
from lookout.server.shared import Counts
from lookout.server.site import Site
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
