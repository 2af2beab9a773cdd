"""A server follows its store: how often it reads, what it takes over, what it logs, and the replies it makes."""

from typing import Any, Final

import pytest

from lookout.documents.api import paths
from lookout.documents.document import COMPRESSED, Document, PlainName, compress, etag
from lookout.server.poller import Poller, polling
from lookout.server.replies import Counts, convenience_resource, respond
from lookout.server.site import Site
from lookout.store.protocol import StoreError
from tests.builders import NOON, SECOND
from tests.logs import capture_logs
from tests.unit.server.fakes import FakeReader, SetClock, a_poller
from tests.wait import until

UNREADABLE_MS: Final = 300_000
NAMES: Final[tuple[PlainName, ...]] = ("live", "history")
POLL_MS: Final = 250
OWN: Final = {"/own": convenience_resource("text/plain", b"own")}
FAILS: Final = "the store cannot be read; serving what was read last"
NOTHING_READ: Final = "the store cannot be read; answering 503"
WORKS: Final = "the store can be read again"
TOO_LONG: Final = "the history has been unreadable for too long; answering 503"


class Followed:
    """A poller of a fake store, on a clock that each poll moves on."""

    def __init__(self, unreadable_ms: int = UNREADABLE_MS) -> None:
        self.clock = SetClock()
        self.store = FakeReader()
        self.poller = a_poller(self.store, self.clock, unreadable_ms, others=OWN)

    def poll(self) -> None:
        self.clock.elapsed += POLL_MS
        self.can_be_read = self.poller.poll()
        self.poller.check_time()

    def poll_for(self, duration_ms: int) -> None:
        for _ in range(duration_ms // POLL_MS):
            self.poll()

    @property
    def live(self) -> tuple[int, bytes]:
        return self._answer(self.poller.site.paths[0])

    @property
    def history(self) -> tuple[int, bytes]:
        return self._answer(self.poller.site.paths[1])

    def _answer(self, path: str) -> tuple[int, bytes]:
        reply = respond(self.poller.resources, "GET", path, None)
        return (reply.http_code, reply.body if reply.http_code == 200 else b"")


def events(log: list[Any]) -> list[str]:
    return [line["event"] for line in log]


def with_both() -> Followed:
    followed = Followed()
    followed.store.publish("live", b"live 1")
    followed.store.publish("history", b"history 1")
    followed.poll()
    assert (followed.live, followed.history) == ((200, b"live 1"), (200, b"history 1"))
    return followed


Content = str | None | StoreError
FAILURE: Final = StoreError("it fails")
LIMIT: Final = UNREADABLE_MS
# Polls, as what they find: the live report and the history; and what is served after the last one.
CASES: Final[dict[str, tuple[list[tuple[int, Content, Content]], list[str | None]]]] = {
    "nothing until something was written": ([(0, None, None), (2 * LIMIT, None, None)], [None, None]),
    "a report without a history": ([(0, "L1", None)], ["L1", None]),
    "a history without a report": ([(0, None, "H1")], [None, "H1"]),
    "a report that was loaded once, whatever fails": ([(0, "L1", "H1"), (10 * LIMIT, FAILURE, "H1")], ["L1", "H1"]),
    "the next report after a failure": ([(0, "L1", "H1"), (1, FAILURE, FAILURE), (2, "L2", "H1")], ["L2", "H1"]),
    "the first report, though the history fails": ([(0, "L1", FAILURE)], ["L1", None]),
    "a history for all of its time": (
        [(0, "L1", "H1"), (1, FAILURE, FAILURE), (LIMIT + 1, FAILURE, FAILURE)],
        ["L1", "H1"],
    ),
    "and not for longer": ([(0, "L1", "H1"), (1, FAILURE, FAILURE), (LIMIT + 2, FAILURE, FAILURE)], ["L1", None]),
    "until it can be read": (
        [(0, "L1", "H1"), (1, FAILURE, FAILURE), (LIMIT + 2, FAILURE, FAILURE), (LIMIT + 3, FAILURE, "H1")],
        ["L1", "H1"],
    ),
    "one good read gives it its whole time again": (
        [(0, "L1", "H1"), (1, FAILURE, FAILURE), (2, "L1", "H1"), (LIMIT + 2, "L1", FAILURE)],
        ["L1", "H1"],
    ),
    "an unreadable history, and new reports": (
        [(0, "L1", "H1"), (1, "L2", FAILURE), (LIMIT + 2, "L3", FAILURE)],
        ["L3", None],
    ),
    "an unreadable report, and a new history": ([(0, "L1", "H1"), (1, FAILURE, "H2")], ["L1", "H2"]),
}


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("name", CASES)
def test_is_served(name: str) -> None:
    polls, expected = CASES[name]
    followed = Followed()
    start_ms = followed.clock.elapsed
    for at_ms, *found in polls:
        followed.store.unreadable = set()
        for which, content in zip(NAMES, found, strict=True):
            if isinstance(content, StoreError):
                followed.store.unreadable |= {which, "changed"}
            elif content is not None:
                followed.store.put(which, content.encode())
        followed.clock.elapsed = start_ms + at_ms - POLL_MS
        followed.poll()
    answers = (followed.live, followed.history)
    assert [body.decode() if http_code == 200 else None for http_code, body in answers] == expected


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("hangs", ["changed", "live", "history"])
def test_a_store_that_hangs_costs_the_history_after_its_time_and_gives_it_back(hangs: str) -> None:
    followed = with_both()
    seen: list[tuple[int, int]] = []

    def pass_time() -> None:
        for hung_ms in (UNREADABLE_MS, 1):
            followed.clock.elapsed += hung_ms
            followed.poller.check_time()  # by the other thread
            seen.append((followed.live[0], followed.history[0]))

    followed.store.publish("live", b"live 2")
    followed.store.hangs = {hangs: pass_time}
    followed.poll()
    assert seen == [(200, 200), (200, 503)]
    assert (followed.live, followed.history) == ((200, b"live 2"), (200, b"history 1"))


@pytest.mark.clause("A11")
def test_a_store_replaced_by_an_empty_one_keeps_the_last_report_and_the_history_for_its_time() -> None:
    followed = with_both()
    followed.store.documents = {}
    with capture_logs() as log:
        followed.poll_for(15 * SECOND)  # nothing says that it changed
        followed.poll_for(UNREADABLE_MS)
        assert (followed.live, followed.history) == ((200, b"live 1"), (200, b"history 1"))
        followed.poll()
        assert (followed.live, followed.history) == ((200, b"live 1"), (503, b""))
        followed.poll_for(UNREADABLE_MS)
        followed.store.publish("live", b"live 1")
        followed.store.publish("history", b"history 2")
        followed.poll()
        assert (followed.live, followed.history) == ((200, b"live 1"), (200, b"history 2"))
    assert events(log) == [FAILS, TOO_LONG, WORKS]
    assert log[0]["error"] == "the live document is gone"


@pytest.mark.clause("A11")
@pytest.mark.parametrize("name", ["live", "history", "changed"])
@pytest.mark.parametrize("loaded", [True, False], ids=["after a first load", "before any"])
def test_a_failure_is_logged_when_it_begins_and_when_it_ends(name: str, loaded: bool) -> None:
    followed = with_both() if loaded else Followed()
    unreadable = {"changed", "live", "history"} if name == "changed" else {name}
    first = FAILS if loaded or name == "history" else NOTHING_READ
    with capture_logs() as log:
        for _ in range(2):
            followed.store.unreadable = unreadable
            followed.store.put("live", b"live 2")
            followed.poll_for(UNREADABLE_MS // 2)
            assert followed.live[0] == (200 if loaded or name == "history" else 503)
            followed.store.unreadable = set()
            followed.poll_for(UNREADABLE_MS // 2)
            assert followed.live == (200, b"live 2")
            loaded = True
    assert events(log) == [first, WORKS, FAILS, WORKS]


@pytest.mark.clause("M4")
def test_a_store_that_does_not_change_is_read_every_fifteen_seconds_and_by_no_request() -> None:
    followed = with_both()
    followed.store.reads = 0
    for _ in range(1_000):
        assert followed.live == (200, b"live 1")
    assert followed.store.reads == 0
    followed.poll_for(60 * SECOND)
    assert followed.store.reads == 3 * 4  # both documents and the description


def described(followed: Followed) -> bytes | None:
    followed.poll()
    reply = respond(followed.poller.resources, "GET", "/about", None)
    return reply.body if reply.http_code == 200 else None


@pytest.mark.clause("C11")
def test_the_stored_description_is_used_and_what_cannot_be_read_changes_none() -> None:
    followed = with_both()
    assert described(followed) is None
    followed.store.put("about", b"about 1")
    assert described(followed) == b"about 1"
    followed.store.unreadable = {"about"}
    followed.store.put("about", b"about 2")
    assert described(followed) == b"about 1"
    followed.store.unreadable = set()
    followed.poll_for(15 * SECOND)
    assert described(followed) == b"about 2"
    followed.store.documents["about"] = Document(b"about 3", etag(b"about 2"), NOON)
    followed.poll_for(15 * SECOND)
    assert described(followed) == b"about 2", "damaged"


def test_the_report_that_is_served_has_its_instant_and_the_operators_routes_stay() -> None:
    followed = Followed()
    before = followed.poller.generated_at
    followed.store.put("live", b"live 1", NOON + 1)
    followed.poll()
    assert (before, followed.poller.generated_at) == (None, NOON + 1)
    assert followed.poller.resources["/own"] is OWN["/own"]


@pytest.mark.clause("A11", "A12")
def test_a_damaged_document_is_not_served() -> None:
    followed = with_both()
    good = followed.store.put("history", b"history 2")
    followed.store.documents["history"] = Document(b"history X", good.etag, good.generated_at)
    with capture_logs() as log:
        followed.poll()
        assert followed.history == (200, b"history 1")
    assert events(log) == [FAILS]
    assert "damaged" in log[0]["error"]


def gzip_of(followed: Followed, path: str) -> bytes | None:
    """The body for a client that accepts gzip, if it is gzip."""
    reply = respond(followed.poller.resources, "GET", path, None, prefers_gzip=True)
    assert (reply.http_code, dict(reply.headers)["etag"]) == (200, etag(reply.body))
    return reply.body if ("content-encoding", "gzip") in reply.headers else None


@pytest.mark.clause("A15")
def test_the_stored_gzip_form_is_served_byte_for_byte() -> None:
    followed = with_both()
    for path, name in zip(followed.poller.site.paths, COMPRESSED.values(), strict=True):
        assert gzip_of(followed, path) == followed.store.documents[name].body
    followed.store.publish("live", b"live 2")
    followed.poll()
    assert gzip_of(followed, followed.poller.site.paths[0]) == compress(b"live 2")
    assert gzip_of(followed, followed.poller.site.paths[1]) == compress(b"history 1")


def packed(body: bytes, at: int = NOON) -> Document:
    return Document(body, etag(body), at)


UNUSABLE: Final = [
    pytest.param(None, id="none, as in a store of 0.1.0"),
    pytest.param(packed(compress(b"live 1"), NOON - 1), id="that of another instant"),
    pytest.param(Document(compress(b"live 1"), etag(b"x"), NOON), id="one that is not what its ETag was made of"),
    pytest.param(Document("text", etag(b"text"), NOON), id="a text in the place of bytes"),  # type: ignore[arg-type]
]


@pytest.mark.clause("A15")
@pytest.mark.parametrize("stored", UNUSABLE)
def test_a_gzip_form_that_is_not_that_of_the_report_is_not_served(stored: Document | None) -> None:
    followed = Followed()
    followed.store.put("live", b"live 1")
    if stored is not None:
        followed.store.documents["live.gzip"] = stored
    with capture_logs() as log:
        followed.poll()
    assert (gzip_of(followed, followed.poller.site.paths[0]), followed.live) == (None, (200, b"live 1"))
    assert (followed.can_be_read, events(log)) == (True, [])
    followed.store.publish("live", b"live 2")
    followed.poll()
    assert gzip_of(followed, followed.poller.site.paths[0]) == compress(b"live 2")


class BrokenPoller(Poller):
    def poll(self) -> bool:
        raise ValueError("of the store")

    def check_time(self) -> None:
        raise TypeError("of the time")


def test_a_bug_does_not_end_a_thread_and_is_logged_with_its_name() -> None:
    site = Site(paths("protocol"))
    poller = BrokenPoller(FakeReader(), SetClock(), 300_000, site, lambda _: site)
    names = ("poll the store", "watch the time")
    with capture_logs() as log, polling(poller, Counts()):
        until(
            lambda: min([line["thread"] for line in list(log)].count(name) for name in names) >= 2, "both crash twice"
        )
    assert {entry["event"] for entry in log} == {"a thread of the server crashed; it goes on"}


@pytest.mark.clause("A12")
def test_a_history_that_becomes_unreadable_without_a_change_is_noticed_in_time() -> None:
    followed = Followed(unreadable_ms=4 * SECOND)
    followed.store.put("history", b"history 1")
    followed.poll()
    followed.store.unreadable = {"history"}
    followed.poll_for(4 * SECOND)
    assert followed.history == (200, b"history 1")
    followed.poll_for(SECOND + POLL_MS)
    assert followed.history == (503, b"")
