"""The threads that keep a process's replies up to date."""

from structlog.testing import capture_logs

from lookout.api.callers import Callers
from lookout.api.counting import Counts
from lookout.api.following import Follower
from lookout.api.front import Front
from lookout.api.mirror import Mirror
from tests.unit.api.fakes import FakeReader, SetClock
from tests.waiting import until


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
