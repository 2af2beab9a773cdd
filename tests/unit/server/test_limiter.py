"""The rate limit: the rule, the table that remembers, and several processes at once."""

import multiprocessing
import os
import signal
from multiprocessing.synchronize import Barrier, Event
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.server.shared import CallerOnPath, Limiter

LIMIT: Final = 120
BAN_MS: Final = 60_000
BEGIN: Final = 1_000_000
SPAWN: Final = multiprocessing.get_context("spawn")


def ask(limiter: Limiter, caller: bytes, path: str, now_ms: int) -> int:
    """As one that was not seen before: where its entry was, is not known."""
    return limiter.count_request(limiter.locate_caller(path, caller), now_ms)


@pytest.mark.clause("E2")
@pytest.mark.parametrize(
    ("before", "now_ms", "expected"),
    [
        pytest.param([], BEGIN, 0, id="the first request passes"),
        pytest.param([BEGIN] * 119, BEGIN + 59_999, 0, id="the 120th passes"),
        pytest.param([BEGIN] * 120, BEGIN + 59_999, BAN_MS, id="the 121st starts the ban"),
        pytest.param([BEGIN] * 120, BEGIN + 60_000, 0, id="a minute later it passes"),
        pytest.param([BEGIN] + [BEGIN + 59_000] * 119, BEGIN + 60_000, 0, id="the first one opened the minute"),
        pytest.param([BEGIN] * 121, BEGIN + 59_999, 1, id="the ban goes on to its last moment"),
        pytest.param([BEGIN] * 121, BEGIN + 60_000, 0, id="and no longer"),
        pytest.param(
            [*[BEGIN] * 120, BEGIN + 50_000, *[BEGIN + 70_000] * 9],
            BEGIN + 80_000,
            30_000,
            id="asking on does not prolong the ban",
        ),
        pytest.param(
            [*[BEGIN] * 121, *[BEGIN + 60_000] * 119], BEGIN + 119_999, 0, id="after the ban there is a new minute"
        ),
        pytest.param(
            [*[BEGIN] * 121, *[BEGIN + 60_000] * 120], BEGIN + 119_999, BAN_MS, id="in which no more pass than in any"
        ),
        pytest.param([BEGIN] * 120, BEGIN - 1, BAN_MS, id="a process whose clock reading is a little older"),
    ],
)
def test_one_more_request(before: list[int], now_ms: int, expected: int) -> None:
    limiter = Limiter(LIMIT, BAN_MS)
    for at_ms in before:
        ask(limiter, b"caller", "/path", at_ms)
    assert ask(limiter, b"caller", "/path", now_ms) == expected


@pytest.mark.clause("E2")
def test_a_ban_that_is_shorter_than_a_minute_ends_with_the_minute_it_was_in() -> None:
    limiter = Limiter(1, 1_000)
    assert [ask(limiter, b"caller", "/", BEGIN + wait) for wait in (0, 10, 1_009, 1_010, 1_011)] == [
        0,
        1_000,
        1,
        0,
        1_000,
    ]


def passes_slowly(instants: list[int], limit: int, ban_ms: int) -> list[bool]:
    """Which requests pass, from the whole list of those before."""
    outcomes: list[bool] = []
    minute: list[int] = []  # of those that passed in it
    banned_at: int | None = None
    for now in instants:
        if banned_at is not None and now >= banned_at + ban_ms:
            banned_at, minute = None, []
        if minute and now >= minute[0] + 60_000 and banned_at is None:
            minute = []
        if banned_at is None and len(minute) < limit:
            minute.append(now)
            outcomes.append(True)
        else:
            banned_at = now if banned_at is None else banned_at
            outcomes.append(False)
    return outcomes


@pytest.mark.clause("E2")
@given(
    st.lists(st.integers(0, 25_000) | st.just(0), max_size=60),
    st.integers(1, 5),
    st.sampled_from([1, 1_000, 60_000, 90_000]),
)
def test_any_requests_pass_as_an_independent_count_has_it(waits: list[int], limit: int, ban_ms: int) -> None:
    limiter = Limiter(limit, ban_ms, sets=1)
    instants = [BEGIN + sum(waits[: n + 1]) for n in range(len(waits))]
    passed = [ask(limiter, b"caller", "/path", now) == 0 for now in instants]
    assert passed == passes_slowly(instants, limit, ban_ms)


class SlowTable:
    """What eight entries remember, as a dictionary of all that their callers asked."""

    def __init__(self, limit: int, ban_ms: int) -> None:
        self._limit = limit
        self._ban_ms = ban_ms
        self._asked: dict[bytes, list[int]] = {}
        self._ends_ms: dict[bytes, int] = {}

    def passes(self, caller: bytes, now_ms: int) -> bool:
        if caller not in self._asked and len(self._asked) == 8:
            del self._asked[min(self._asked, key=lambda other: self._ends_ms[other])]
        asked = self._asked.setdefault(caller, [])
        if not asked or now_ms >= self._ends_ms[caller]:
            asked.clear()
            self._ends_ms[caller] = now_ms + 60_000
        asked.append(now_ms)
        if len(asked) == self._limit + 1:
            self._ends_ms[caller] = now_ms + self._ban_ms
        return passes_slowly(asked, self._limit, self._ban_ms)[-1]


@pytest.mark.clause("E2")
@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 1), st.integers(1, 9_000)), max_size=80),
    st.integers(1, 3),
    st.sampled_from([1_000, 60_000, 90_000]),
)
def test_callers_who_push_each_other_out_pass_as_an_independent_table_has_it(
    requests: list[tuple[int, int, int]], limit: int, ban_ms: int
) -> None:
    limiter, slow = Limiter(limit, ban_ms, sets=1, processes=2), SlowTable(limit, ban_ms)
    # Both remember where each caller's entry was, and neither is told when the other one gives it away.
    processes = [limiter, limiter]
    known: dict[tuple[int, int], CallerOnPath] = {}
    now_ms = BEGIN
    for number, process, wait_ms in requests:
        now_ms += wait_ms
        counting = processes[process]
        caller = known.setdefault((number, process), counting.locate_caller("/", b"%d" % number))
        assert (counting.count_request(caller, now_ms) == 0) == slow.passes(b"%d" % number, now_ms)


def test_any_number_of_callers_fits_into_the_same_memory() -> None:
    limiter = Limiter(1, BAN_MS, sets=4)
    size = limiter.table.size
    for number in range(5_000):
        assert ask(limiter, number.to_bytes(4, "big"), "/", BEGIN + number) == 0
    assert limiter.table.size == len(limiter.table.numbers) == size


def test_two_limiters_put_the_same_caller_in_different_places() -> None:
    tables = set()
    for _ in range(3):
        limiter = Limiter(1, BAN_MS, sets=64)
        ask(limiter, b"caller", "/", BEGIN)
        tables.add(bytes(limiter.table.numbers))
    assert len(tables) == 3, "or a caller could aim at another's set"


def ask_often(limiter: Limiter, together: Barrier, times: int, passed: "multiprocessing.Queue[int]") -> None:
    caller = limiter.locate_caller("/", b"caller")
    together.wait()
    passed.put(sum(limiter.count_request(caller, BEGIN) == 0 for _ in range(times)))


@pytest.mark.clause("E2")
def test_several_processes_that_count_at_once_let_exactly_the_limit_pass() -> None:
    limit, processes = 30_000, 3
    limiter = Limiter(limit, BAN_MS, sets=4, processes=processes)
    together, passed = SPAWN.Barrier(processes), SPAWN.Queue()
    arguments = (limiter, together, 20_000, passed)
    started = [SPAWN.Process(target=ask_often, args=arguments, daemon=True) for _ in range(processes)]
    for process in started:
        process.start()
    each = [passed.get(timeout=120) for _ in started]
    for process in started:
        process.join(10)
        assert process.exitcode == 0
    assert sum(each) == limit
    assert ask(limiter, b"caller", "/", BEGIN + 1) == BAN_MS - 1


def ask_for_ever(limiter: Limiter, asking: Event) -> None:
    while True:
        ask(limiter, b"caller", "/", BEGIN)
        asking.set()


def hold(limiter: Limiter, holding: Event) -> None:
    limiter.table.lock(0)
    holding.set()
    signal.pause()


@pytest.mark.parametrize("deed", [ask_for_ever, hold], ids=["while it counts", "while it holds the lock"])
def test_a_process_that_is_killed_does_not_keep_others_from_counting(deed: object) -> None:
    limiter = Limiter(LIMIT, BAN_MS, sets=1, processes=2)
    busy = SPAWN.Event()
    process = SPAWN.Process(target=ask_for_ever if deed is ask_for_ever else hold, args=(limiter, busy), daemon=True)
    process.start()
    assert busy.wait(30)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(10)
    assert ask(limiter, b"another", "/", BEGIN) == 0
