"""Which documents are served, while the store comes, goes, fails and hangs: A11 and A12, event by event."""

from collections.abc import Iterable
from typing import Final

import pytest

from lookout.documents.document import Document, PlainName, etag
from lookout.server.forms import Forms
from lookout.server.mirror import LookBegan, LookEnded, Mirror, MirrorEvent, Read, ReadFailed, TimePassed, step
from tests.builders import NOON, SECOND

UNREADABLE_MS: Final = 300_000
FAILS: Final = ValueError("it fails")  # in the place of a document


def a_look(at_ms: int, live: str | Exception | None, history: str | Exception | None) -> tuple[MirrorEvent, ...]:
    """One that takes no time. None: the store has no such document."""
    return (LookBegan(at_ms), a_read(at_ms, live), a_read(at_ms, history, is_live=False), LookEnded(at_ms))


def a_read(at_ms: int, found: str | Exception | None, *, is_live: bool = True) -> MirrorEvent:
    name: PlainName = "live" if is_live else "history"
    if isinstance(found, Exception):
        return ReadFailed(at_ms, name, str(found))
    body = (found or "").encode()
    return Read(at_ms, name, None if found is None else Forms(Document(body, etag(body), NOON)))


def play(*looks: Iterable[MirrorEvent]) -> Mirror:
    state = Mirror()
    for event in (event for look in looks for event in look):
        state = step(state, event, UNREADABLE_MS)
    return state


def served(state: Mirror) -> list[str | None]:
    return [None if forms is None else forms.plain.body.decode() for forms in (state.live, state.history)]


def passed(at_ms: int) -> tuple[MirrorEvent, ...]:
    return (TimePassed(at_ms),)


BOTH: Final = a_look(0, "L1", "H1")
FAILING: Final = a_look(1, FAILS, FAILS)
LIMIT: Final = UNREADABLE_MS
# The looks and the passing of time, and what is served after them: the live report and the history.
CASES: Final[dict[str, tuple[list[Iterable[MirrorEvent]], list[str | None]]]] = {
    "A11 A12: nothing until something was written": (
        [a_look(0, None, None), a_look(LIMIT * 2, None, None)],
        [None, None],
    ),
    "A11 A12: a report without a history": ([a_look(0, "L1", None)], ["L1", None]),
    "A11 A12: a history without a report": ([a_look(0, None, "H1")], [None, "H1"]),
    "A11: a report that was loaded once, whatever fails": ([BOTH, a_look(10 * LIMIT, FAILS, "H1")], ["L1", "H1"]),
    "A11: the next report after a failure": ([BOTH, FAILING, a_look(2, "L2", "H1")], ["L2", "H1"]),
    "A11: the first report, though the history fails": ([a_look(0, "L1", FAILS)], ["L1", None]),
    "A11: a report of a store that was replaced by an empty one": ([BOTH, a_look(1, None, None)], ["L1", "H1"]),
    "A11: and for ever": ([BOTH, a_look(1, None, None), a_look(LIMIT + 2, None, None)], ["L1", None]),
    "A12: a history for all of its time": ([BOTH, FAILING, a_look(LIMIT + 1, FAILS, FAILS)], ["L1", "H1"]),
    "A12: and not for longer": ([BOTH, FAILING, a_look(LIMIT + 2, FAILS, FAILS)], ["L1", None]),
    "A12: nor later": ([BOTH, FAILING, a_look(LIMIT + 2, FAILS, FAILS), a_look(2 * LIMIT, "L1", FAILS)], ["L1", None]),
    "A12: until it can be read": (
        [BOTH, FAILING, a_look(LIMIT + 2, FAILS, FAILS), a_look(LIMIT + 3, FAILS, "H1")],
        ["L1", "H1"],
    ),
    "A12: one good read gives it its whole time again": (
        [BOTH, FAILING, a_look(LIMIT, "L1", "H1"), a_look(LIMIT + 2, "L1", FAILS), a_look(2 * LIMIT, "L1", FAILS)],
        ["L1", "H1"],
    ),
    "A12: the sleep of a process is no time": ([BOTH, a_look(10 * LIMIT, FAILS, FAILS)], ["L1", "H1"]),
    "A12: its time ends between two looks": ([BOTH, a_look(1, "L1", FAILS), passed(LIMIT + 2)], ["L1", None]),
    "A11 A12: an unreadable history, and a new report": ([BOTH, a_look(1, "L2", FAILS)], ["L2", "H1"]),
    "A11 A12: for long": ([BOTH, a_look(1, "L2", FAILS), a_look(LIMIT + 2, "L2", FAILS)], ["L2", None]),
    "A11 A12: an unreadable report, and a new history": ([BOTH, a_look(1, FAILS, "H2")], ["L1", "H2"]),
    # A look that began hangs until its documents are there.
    "A11 A12: a store that hangs": ([BOTH, [LookBegan(1)], passed(LIMIT + 1)], ["L1", "H1"]),
    "A11 A12: for too long": ([BOTH, [LookBegan(1)], passed(LIMIT + 2)], ["L1", None]),
    "A11 A12: and then answers": (
        [BOTH, a_look(1, "L1", "H2")[:1], passed(LIMIT + 2), a_look(1, "L1", "H2")[1:]],
        ["L1", "H2"],
    ),
    "A11: a report is there at once, though the history hangs": ([BOTH, a_look(1, "L2", FAILS)[:2]], ["L2", "H1"]),
    "A12: a history that was given up while it hung is not put back by its failure": (
        [
            BOTH,
            a_look(1, "L2", FAILS)[:2],
            passed(LIMIT + 2),
            a_look(1, "L2", FAILS)[2:],
            a_look(2 * LIMIT, "L2", FAILS),
        ],
        ["L2", None],
    ),
    "A12: one that was unreadable before the store hung, for all of its time": (
        [BOTH, FAILING, [LookBegan(LIMIT)], passed(LIMIT + 1)],
        ["L1", "H1"],
    ),
    "A12: one that was unreadable before the store hung, and not for longer": (
        [BOTH, FAILING, [LookBegan(LIMIT)], passed(LIMIT + 2), a_look(LIMIT, FAILS, FAILS)[1:]],
        ["L1", None],
    ),
    "A12: a history for all of its time since it was read, while the description hangs": (
        [BOTH, [LookBegan(1)], a_look(9, "L1", "H2")[1:3], passed(LIMIT + 9)],
        ["L1", "H2"],
    ),
    "A11 A12: and not for longer": (
        [BOTH, [LookBegan(1)], a_look(9, "L1", "H2")[1:3], passed(LIMIT + 10)],
        ["L1", None],
    ),
    "A12: a read that took long, and ended, is no reason to give it up": (
        [BOTH, [LookBegan(1)], a_look(1, "L1", "H2")[1:], passed(2 * LIMIT)],
        ["L1", "H2"],
    ),
}


@pytest.mark.clause("A11", "A12")
@pytest.mark.parametrize("name", CASES)
def test_is_served(name: str) -> None:
    looks, expected = CASES[name]
    assert served(play(*looks)) == expected


def test_a_failure_is_counted_once_for_each_look_that_met_it_and_once_for_a_look_that_hangs() -> None:
    assert play(BOTH, *(a_look(at_ms, FAILS, FAILS) for at_ms in range(1, 5)), a_look(9, "L1", "H1")).store_errors == 4
    hangs = [passed(at_ms) for at_ms in range(0, 20 * SECOND, SECOND)]
    assert play(BOTH, [LookBegan(0)], *hangs[:5]).store_errors == 0
    assert play(BOTH, [LookBegan(0)], *hangs).store_errors == 1


def test_a_report_arrives_when_it_is_read_and_only_once() -> None:
    assert play(a_look(7, "L1", None), a_look(8, "L1", "H1")).live_arrived_ms == 7
    assert play(a_look(7, "L1", None), a_look(8, "L2", None)).live_arrived_ms == 8
