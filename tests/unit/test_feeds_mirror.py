"""A server's own routes follow the documents and the time, on a clock that is set."""

import json
from typing import Any

import pytest

from lookout.public.feeds import make_feed_files
from lookout.public.picture import Names
from lookout.server.replies import Reply, respond
from lookout.server.site import TimedReplies, make_timed_replies
from tests.builders import HOUR, NOON, SECOND
from tests.unit.feeds import NAMES, a_check, a_report, all_current
from tests.unit.server.fakes import FakeReader, SetClock, a_poller

TICK = 250


class Followed:
    """A poller that looks at a fake store and at the time at each step of a clock."""

    def __init__(self, names: Names = NAMES) -> None:
        self.clock, self.store, self.made, self.names = SetClock(), FakeReader(), 0, names
        self.poller = a_poller(self.store, self.clock, feeds=self._make)

    def _make(self, live: bytes | None, history: bytes | None, now: int, received_ago_ms: int) -> TimedReplies:
        self.made += 1
        return make_timed_replies(make_feed_files(self.names, live, history, now, received_ago_ms))

    def publish(self, live: bytes, history: bytes | None = None) -> None:
        self.store.put("live", live)
        if history is not None:
            self.store.put("history", history)
        self.tick()

    def tick(self, *, wall: bool = True) -> None:
        self.clock.elapsed += TICK
        self.clock.wall += TICK if wall else 0
        self.poller.poll()
        self.poller.check_time()

    def pass_by(self, duration_ms: int) -> None:
        for _ in range(duration_ms // TICK):
            self.tick()

    def ask(self, path: str) -> Reply:
        return respond(self.poller.resources, "GET", path, None)

    def json(self, path: str) -> Any:
        return json.loads(self.ask(path).body)

    def message(self, stem: str = "/badge") -> str:
        message: str = self.json(f"{stem}.json")["message"]
        assert f">{message}</text>" in self.ask(f"{stem}.svg").body.decode()
        return message


def max_age_s(reply: Reply) -> int:
    caching = dict(reply.headers)["cache-control"]
    public, max_age, must = caching.split(", ")
    assert (public, must) == ("public", "must-revalidate")
    return int(max_age.removeprefix("max-age="))


def test_before_the_first_report_nothing_is_known_and_nothing_is_kept() -> None:
    followed = Followed()
    assert followed.message() == followed.message("/badge/indexer") == "unknown"
    assert max_age_s(followed.ask("/badge.svg")) == 0
    for path in ("/feed.atom", "/summary.json", "/status.json"):
        assert followed.ask(path).http_code == 503
        assert "error" in followed.json(path)
    assert followed.ask("/badge/indexer/1.svg").http_code == 404


@pytest.mark.clause("C3", "C4", "M14")
def test_rows_turn_grey_at_their_instant_though_nothing_is_published_any_more() -> None:
    followed = Followed()
    followed.publish(a_report(*all_current(a_check("current", "ppoi", 1, lifetime=100 * SECOND))))
    assert [followed.message(stem) for stem in ("/badge", "/badge/ppoi/1", "/badge/indexer/1")] == [
        "no problem seen"
    ] * 3
    assert followed.json("/status.json")["status"]["indicator"] == "none"
    followed.pass_by(100 * SECOND - 2 * TICK)
    assert [followed.message(stem) for stem in ("/badge", "/badge/ppoi/1", "/badge/indexer/1")] == [
        "no problem seen"
    ] * 3
    followed.tick()
    assert followed.clock.wall == NOON + 100 * SECOND
    assert [followed.message(stem) for stem in ("/badge", "/badge/ppoi/1")] == ["too old to say"] * 2
    assert followed.message("/badge/indexer/1") == followed.message("/badge/indexer") == "no problem seen"
    assert followed.json("/status.json")["status"]["indicator"] == "minor"
    components = {component["id"]: component["status"] for component in followed.json("/summary.json")["components"]}
    assert (components["ppoi-1"], components["indexer-1"]) == ("degraded_performance", "operational")
    followed.pass_by(50 * SECOND)
    assert followed.message("/badge/indexer/1") == "too old to say"
    assert b"silent" not in followed.ask("/feed.atom").body
    followed.pass_by(150 * SECOND)
    assert b"silent since" in followed.ask("/feed.atom").body


def test_they_are_made_when_something_is_published_or_ends_and_not_each_time_or_by_requests() -> None:
    followed = Followed()
    followed.publish(a_report(*all_current()))
    made = followed.made
    followed.pass_by(60 * SECOND)
    for _ in range(100):
        followed.message("/badge/ppoi/1")
    assert followed.made == made
    followed.pass_by(40 * SECOND)
    assert followed.made == made + 6  # a shorter time five times, and then there is no new report
    followed.publish(a_report(*all_current(), at=NOON + 100 * SECOND))
    assert followed.made == made + 7


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["forward", "back"])
@pytest.mark.clause("C2", "C3")
def test_a_clock_that_is_set_is_noticed_at_once(by: int) -> None:
    followed = Followed()
    followed.publish(a_report(*all_current()))
    followed.clock.wall += by
    followed.tick()
    assert followed.message() == ("too old to say" if by > 0 else "unknown")
    followed.clock.wall -= by
    followed.tick()
    assert followed.message() == "no problem seen"


@pytest.mark.clause("C3")
def test_a_clock_that_stands_still_makes_no_row_immortal() -> None:
    followed = Followed()
    followed.publish(a_report(*all_current()))
    for _ in range(150 * SECOND // TICK):
        followed.tick(wall=False)
    assert followed.message() == "too old to say"


def test_after_a_bug_nothing_is_known_and_no_document_is_kept_back() -> None:
    store, clock = FakeReader(), SetClock()
    calls = []

    def feeds(live: bytes | None, history: bytes | None, now: int, received_ago_ms: int) -> TimedReplies:
        calls.append(now)
        if live == b"live 2":
            raise RuntimeError("a bug")
        return make_timed_replies(make_feed_files(NAMES, live, history, now, received_ago_ms))

    poller = a_poller(store, clock, feeds=feeds)
    store.put("live", a_report(*all_current()))
    poller.poll()
    assert b"unknown" not in respond(poller.resources, "GET", "/badge.svg", None).body
    store.put("live", b"live 2")
    poller.poll()
    with pytest.raises(RuntimeError, match="a bug"):
        poller.check_time()
    assert respond(poller.resources, "GET", poller.site.paths[0], None).body == b"live 2"
    assert b"unknown" in respond(poller.resources, "GET", "/badge.svg", None).body
    tried = len(calls)
    poller.check_time()  # once is enough
    assert len(calls) == tried
