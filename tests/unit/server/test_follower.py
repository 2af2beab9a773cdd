"""The threads that keep a process's replies up to date."""

from typing import Any

from lookout.documents.document import paths
from lookout.server.poller import Follower, Poller
from lookout.server.shared import Counts
from lookout.server.site import Site
from tests.logs import capture_logs
from tests.unit.server.fakes import FakeReader, SetClock
from tests.wait import until


class BrokenPoller(Poller):
    def poll(self) -> bool:
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
