"""The rate limit: the rule, the table that remembers, and several processes at once."""

import multiprocessing
import os
import signal
from multiprocessing.synchronize import Barrier, Event
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.api.limiting import Entry, Limiter, judge

LIMIT: Final = 120
BAN_MS: Final = 60_000
BEGIN: Final = 1_000_000
SPAWN: Final = multiprocessing.get_context("spawn")


@pytest.mark.clause("E2")
@pytest.mark.parametrize(
    ("entry", "now_ms", "expected"),
    [
        pytest.param(None, BEGIN, Entry(BEGIN, 1, 0), id="the first request begins the minute"),
        pytest.param(Entry(BEGIN, 1, 0), BEGIN, Entry(BEGIN, 2, 0), id="the second counts in it"),
        pytest.param(Entry(BEGIN, 119, 0), BEGIN + 59_999, Entry(BEGIN, 120, 0), id="the 120th passes"),
        pytest.param(
            Entry(BEGIN, 120, 0), BEGIN + 59_999, Entry(BEGIN, 120, BEGIN + 119_999), id="the 121st starts the ban"
        ),
        pytest.param(Entry(BEGIN, 120, 0), BEGIN + 60_000, Entry(BEGIN + 60_000, 1, 0), id="a minute later it passes"),
        pytest.param(
            Entry(BEGIN, 120, BEGIN + 70_000),
            BEGIN + 69_999,
            Entry(BEGIN, 120, BEGIN + 70_000),
            id="asking on does not prolong the ban",
        ),
        pytest.param(
            Entry(BEGIN, 120, BEGIN + 70_000),
            BEGIN + 70_000,
            Entry(BEGIN + 70_000, 1, 0),
            id="after the ban there is a new minute",
        ),
        pytest.param(
            Entry(BEGIN, 120, BEGIN + 11_000),
            BEGIN + 11_000,
            Entry(BEGIN + 11_000, 1, 0),
            id="also if the old minute is not over",
        ),
        pytest.param(
            Entry(BEGIN, 5, 0), BEGIN - 1, Entry(BEGIN, 6, 0), id="a process whose clock reading is a little older"
        ),
    ],
)
def test_one_more_request(entry: Entry | None, now_ms: int, expected: Entry) -> None:
    assert judge(entry, now_ms, LIMIT, BAN_MS) == expected


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
    passed = [limiter.banned_ms(b"caller", "/path", now) == 0 for now in instants]
    assert passed == passes_slowly(instants, limit, ban_ms)


@pytest.mark.clause("E2")
def test_the_launch_values_over_two_minutes_of_a_request_each_hundred_milliseconds() -> None:
    limiter = Limiter(LIMIT, BAN_MS)
    told = [limiter.banned_ms(b"caller", "/path", BEGIN + 100 * n) for n in range(1_200)]
    assert told[:120] == [0] * 120
    assert told[120:720] == [60_000 - 100 * n for n in range(600)]  # how much longer, down to the last moment
    assert told[720:840] == [0] * 120
    assert told[840] == 60_000


@pytest.mark.clause("E2")
def test_callers_and_paths_are_counted_apart() -> None:
    limiter = Limiter(1, BAN_MS)
    for caller, path in ((b"a", "/1"), (b"a", "/2"), (b"b", "/1"), (b"b", "/2")):
        assert limiter.banned_ms(caller, path, BEGIN) == 0
    for caller, path in ((b"a", "/1"), (b"a", "/2"), (b"b", "/1"), (b"b", "/2")):
        assert limiter.banned_ms(caller, path, BEGIN + 1) == BAN_MS


def test_in_a_full_set_the_oldest_goes_and_the_others_stay() -> None:
    limiter = Limiter(1, BAN_MS, sets=1)
    for number in range(8):
        assert limiter.banned_ms(b"%d" % number, "/", BEGIN + number) == 0
    assert limiter.banned_ms(b"new", "/", BEGIN + 10) == 0
    for number in range(1, 8):
        assert limiter.banned_ms(b"%d" % number, "/", BEGIN + 11) == BAN_MS, number
    assert limiter.banned_ms(b"0", "/", BEGIN + 12) == 0, "it was forgotten"


def test_any_number_of_callers_fits_into_the_same_memory() -> None:
    limiter = Limiter(1, BAN_MS, sets=4)
    size = limiter._table.size
    for number in range(5_000):
        assert limiter.banned_ms(number.to_bytes(4, "big"), "/", BEGIN + number) == 0
    assert limiter._table.size == len(limiter._table.view) == size


def test_two_limiters_put_the_same_caller_in_different_places() -> None:
    tables = set()
    for _ in range(3):
        limiter = Limiter(1, BAN_MS, sets=64)
        limiter.banned_ms(b"caller", "/", BEGIN)
        tables.add(bytes(limiter._table.view))
    assert len(tables) == 3, "or somebody could aim at another caller's set"


def ask_often(limiter: Limiter, together: Barrier, times: int, passed: "multiprocessing.Queue[int]") -> None:
    together.wait()
    passed.put(sum(limiter.banned_ms(b"caller", "/", BEGIN) == 0 for _ in range(times)))


@pytest.mark.clause("E2")
def test_several_processes_that_count_at_once_let_exactly_the_limit_pass() -> None:
    limit, processes = 5_000, 3
    limiter = Limiter(limit, BAN_MS, sets=4, processes=processes)
    together, passed = SPAWN.Barrier(processes), SPAWN.Queue()
    arguments = (limiter, together, 4_000, passed)
    started = [SPAWN.Process(target=ask_often, args=arguments, daemon=True) for _ in range(processes)]
    for process in started:
        process.start()
    each = [passed.get(timeout=30) for _ in started]
    for process in started:
        process.join(10)
        assert process.exitcode == 0
    assert sum(each) == limit
    assert limiter.banned_ms(b"caller", "/", BEGIN + 1) == BAN_MS - 1


def ask_for_ever(limiter: Limiter, asking: Event) -> None:
    while True:
        limiter.banned_ms(b"caller", "/", BEGIN)
        asking.set()


def hold(limiter: Limiter, holding: Event) -> None:
    with limiter._table.locked(0):
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
    assert limiter.banned_ms(b"another", "/", BEGIN) == 0
