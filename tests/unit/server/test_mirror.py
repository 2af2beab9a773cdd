"""Which documents are served, while the store comes, goes, fails and hangs: A11 and A12, event by event."""

from collections.abc import Iterable
from typing import Final

import pytest

from lookout.documents.document import Document, PlainName, etag
from lookout.server.poller import Forms, Mirror, MirrorEvent, PollBegan, PollEnded, Read, ReadFailed, TimePassed, step
from tests.builders import NOON

UNREADABLE_MS: Final = 300_000
FAILS: Final = ValueError("it fails")  # in the place of a document


def a_poll(at_ms: int, live: str | Exception | None, history: str | Exception | None) -> tuple[MirrorEvent, ...]:
    """One that takes no time. None: the store has no such document."""
    return (PollBegan(at_ms), a_read(at_ms, live), a_read(at_ms, history, is_live=False), PollEnded(at_ms))


def a_read(at_ms: int, found: str | Exception | None, *, is_live: bool = True) -> MirrorEvent:
    name: PlainName = "live" if is_live else "history"
    if isinstance(found, Exception):
        return ReadFailed(at_ms, name, str(found))
    body = (found or "").encode()
    return Read(at_ms, name, None if found is None else Forms(Document(body, etag(body), NOON)))


def play(*polls: Iterable[MirrorEvent]) -> Mirror:
    state = Mirror()
    for event in (event for poll in polls for event in poll):
        state = step(state, event, UNREADABLE_MS)
    return state


def served(state: Mirror) -> list[str | None]:
    return [None if forms is None else forms.plain.body.decode() for forms in (state.live, state.history)]


def passed(at_ms: int) -> tuple[MirrorEvent, ...]:
    return (TimePassed(at_ms),)


BOTH: Final = a_poll(0, "L1", "H1")
FAILING: Final = a_poll(1, FAILS, FAILS)
LIMIT: Final = UNREADABLE_MS
# The polls and the passing of time, and what is served after them: the live report and the history.
CASES: Final[dict[str, tuple[list[Iterable[MirrorEvent]], list[str | None]]]] = {
    "A11 A12: nothing until something was written": (
        [a_poll(0, None, None), a_poll(LIMIT * 2, None, None)],
        [None, None],
    ),
    "A11 A12: a report without a history": ([a_poll(0, "L1", None)], ["L1", None]),
    "A11 A12: a history without a report": ([a_poll(0, None, "H1")], [None, "H1"]),
    "A11: a report that was loaded once, whatever fails": ([BOTH, a_poll(10 * LIMIT, FAILS, "H1")], ["L1", "H1"]),
    "A11: the next report after a failure": ([BOTH, FAILING, a_poll(2, "L2", "H1")], ["L2", "H1"]),
    "A11: the first report, though the history fails": ([a_poll(0, "L1", FAILS)], ["L1", None]),
    "A11: a report of a store that was replaced by an empty one": ([BOTH, a_poll(1, None, None)], ["L1", "H1"]),
    "A11: and for ever": ([BOTH, a_poll(1, None, None), a_poll(LIMIT + 2, None, None)], ["L1", None]),
    "A12: a history for all of its time": ([BOTH, FAILING, a_poll(LIMIT + 1, FAILS, FAILS)], ["L1", "H1"]),
    "A12: and not for longer": ([BOTH, FAILING, a_poll(LIMIT + 2, FAILS, FAILS)], ["L1", None]),
    "A12: nor later": ([BOTH, FAILING, a_poll(LIMIT + 2, FAILS, FAILS), a_poll(2 * LIMIT, "L1", FAILS)], ["L1", None]),
    "A12: until it can be read": (
        [BOTH, FAILING, a_poll(LIMIT + 2, FAILS, FAILS), a_poll(LIMIT + 3, FAILS, "H1")],
        ["L1", "H1"],
    ),
    "A12: one good read gives it its whole time again": (
        [BOTH, FAILING, a_poll(LIMIT, "L1", "H1"), a_poll(LIMIT + 2, "L1", FAILS), a_poll(2 * LIMIT, "L1", FAILS)],
        ["L1", "H1"],
    ),
    "A12: the sleep of a process is no time": ([BOTH, a_poll(10 * LIMIT, FAILS, FAILS)], ["L1", "H1"]),
    "A12: its time ends between two polls": ([BOTH, a_poll(1, "L1", FAILS), passed(LIMIT + 2)], ["L1", None]),
    "A11 A12: an unreadable history, and a new report": ([BOTH, a_poll(1, "L2", FAILS)], ["L2", "H1"]),
    "A11 A12: for long": ([BOTH, a_poll(1, "L2", FAILS), a_poll(LIMIT + 2, "L2", FAILS)], ["L2", None]),
    "A11 A12: an unreadable report, and a new history": ([BOTH, a_poll(1, FAILS, "H2")], ["L1", "H2"]),
    # A poll that began hangs until its documents are there.
    "A11 A12: a store that hangs": ([BOTH, [PollBegan(1)], passed(LIMIT + 1)], ["L1", "H1"]),
    "A11 A12: for too long": ([BOTH, [PollBegan(1)], passed(LIMIT + 2)], ["L1", None]),
    "A11 A12: and then answers": (
        [BOTH, a_poll(1, "L1", "H2")[:1], passed(LIMIT + 2), a_poll(1, "L1", "H2")[1:]],
        ["L1", "H2"],
    ),
    "A11: a report is there at once, though the history hangs": ([BOTH, a_poll(1, "L2", FAILS)[:2]], ["L2", "H1"]),
    "A12: a history that was given up while it hung is not put back by its failure": (
        [
            BOTH,
            a_poll(1, "L2", FAILS)[:2],
            passed(LIMIT + 2),
            a_poll(1, "L2", FAILS)[2:],
            a_poll(2 * LIMIT, "L2", FAILS),
        ],
        ["L2", None],
    ),
    "A12: one that was unreadable before the store hung, for all of its time": (
        [BOTH, FAILING, [PollBegan(LIMIT)], passed(LIMIT + 1)],
        ["L1", "H1"],
    ),
    "A12: one that was unreadable before the store hung, and not for longer": (
        [BOTH, FAILING, [PollBegan(LIMIT)], passed(LIMIT + 2), a_poll(LIMIT, FAILS, FAILS)[1:]],
        ["L1", None],
    ),
    "A12: a history for all of its time since it was read, while the description hangs": (
        [BOTH, [PollBegan(1)], a_poll(9, "L1", "H2")[1:3], passed(LIMIT + 9)],
        ["L1", "H2"],
    ),
    "A11 A12: and not for longer": (
        [BOTH, [PollBegan(1)], a_poll(9, "L1", "H2")[1:3], passed(LIMIT + 10)],
        ["L1", None],
    ),
    "A12: a read that took long, and ended, is no reason to give it up": (
        [BOTH, [PollBegan(1)], a_poll(1, "L1", "H2")[1:], passed(2 * LIMIT)],
        ["L1", "H2"],
    ),
}


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("name", CASES)
def test_is_served(name: str) -> None:
    polls, expected = CASES[name]
    assert served(play(*polls)) == expected


def test_a_failure_is_counted_once_for_each_poll_that_met_it() -> None:
    assert play(BOTH, *(a_poll(at_ms, FAILS, FAILS) for at_ms in range(1, 5)), a_poll(9, "L1", "H1")).store_errors == 4


def test_a_report_arrives_when_it_is_read_and_only_once() -> None:
    assert play(a_poll(7, "L1", None), a_poll(8, "L1", "H1")).live_arrived_ms == 7
    assert play(a_poll(7, "L1", None), a_poll(8, "L2", None)).live_arrived_ms == 8
