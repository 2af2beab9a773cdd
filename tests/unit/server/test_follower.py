"""The threads that keep a process's replies up to date."""

from structlog.testing import capture_logs

from lookout.server.callers import Callers
from lookout.server.counts import Counts
from lookout.server.follower import Follower
from lookout.server.front import Front
from lookout.server.mirror import Mirror
from tests.unit.server.fakes import FakeReader, SetClock
from tests.wait import until


class BrokenMirror(Mirror):
    def look(self) -> None:
        raise ValueError("of the store")

    def look_at_the_time(self) -> None:
        raise TypeError("of the time")


def test_a_bug_does_not_end_a_look_and_is_told_with_what_was_looked_at() -> None:
    clock = SetClock()
    front = Front(BrokenMirror(FakeReader(), clock, "protocol", 300_000, {}), Callers(()), None, Counts(1).own(), clock)
    follower = Follower(front)
    with capture_logs() as told:
        follower.start()
        until(lambda: len(told) >= 4, "each look died twice")
        follower.stop()
    assert {entry["event"] for entry in told} == {"a look died of a bug"}
    assert sorted(entry["look"] for entry in told[:4]) == ["the store", "the store", "the time", "the time"]
