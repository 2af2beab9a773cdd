"""The rate limit: the rule, and what is kept of whom."""

import gc
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.server.limiter import CallerOnPath, Limiter, Minute
from tests.unit.server.fakes import SetClock

LIMIT: Final = 120
BAN_MS: Final = 60_000
BEGIN: Final = 1_000_000


class SetLimiter(Limiter):
    """The limiter, with a clock that is set for each request."""

    def __init__(self, limit: int, ban_ms: int, **most: int) -> None:
        self.clock = SetClock()
        super().__init__(limit, ban_ms, self.clock.elapsed_ms, **most)

    def count(self, caller: CallerOnPath, now_ms: int) -> int:
        self.clock.elapsed = now_ms
        return self.count_request(caller)


def ask(limiter: SetLimiter, caller: bytes, path: str, now_ms: int) -> int:
    """As on a new connection."""
    return limiter.count(limiter.locate_caller(path, caller), now_ms)


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
    ],
)
def test_one_more_request(before: list[int], now_ms: int, expected: int) -> None:
    limiter = SetLimiter(LIMIT, BAN_MS)
    for at_ms in before:
        ask(limiter, b"caller", "/path", at_ms)
    assert ask(limiter, b"caller", "/path", now_ms) == expected


@pytest.mark.clause("E2")
def test_a_ban_that_is_shorter_than_a_minute_ends_with_the_minute_it_was_in() -> None:
    limiter = SetLimiter(1, 1_000)
    assert [ask(limiter, b"caller", "/", BEGIN + wait) for wait in (0, 10, 1_009, 1_010, 1_011)] == [
        0,
        1_000,
        1,
        0,
        1_000,
    ]


@pytest.mark.clause("E2")
@pytest.mark.parametrize("late_ms", [0, 1_000, 4_999])
def test_a_minute_ends_at_its_moment_although_the_servers_second_began_earlier(late_ms: int) -> None:
    limiter = SetLimiter(2, BAN_MS)
    connection = limiter.locate_caller("/", b"caller")
    assert limiter.count(connection, BEGIN) == 0
    limiter.clock.elapsed = BEGIN + 60_000 - late_ms
    limiter.begin_second()
    assert [limiter.count(connection, BEGIN + 60_000) for _ in range(3)] == [0, 0, BAN_MS]


class SlowTable:
    """What the limiter keeps, as the instants of all that each caller asked."""

    def __init__(self, limit: int, ban_ms: int, most: int) -> None:
        self._limit, self._ban_ms, self._most = limit, ban_ms, most
        self._asked: dict[bytes, list[int]] = {}

    def passes(self, caller: bytes, now_ms: int) -> bool:
        kept = {name: asked for name, asked in self._asked.items() if now_ms < self._end_ms(asked)}
        if caller not in kept and len(kept) == self._most:
            # Of minutes and of bans the one that began first; a ban began with its last request.
            del kept[min(kept, key=lambda name: (self._is_ban(kept[name]), kept[name][-self._is_ban(kept[name])]))]
        asked = kept.setdefault(caller, [])
        self._asked = kept
        if self._is_ban(asked):
            return False
        asked.append(now_ms)
        return not self._is_ban(asked)

    def _is_ban(self, asked: list[int]) -> bool:
        return len(asked) > self._limit

    def _end_ms(self, asked: list[int]) -> int:
        return asked[-1] + self._ban_ms if self._is_ban(asked) else asked[0] + 60_000


@pytest.mark.clause("E2")
@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1), st.integers(1, 9_000)), max_size=80),
    st.integers(1, 3),
    st.sampled_from([1_000, 60_000, 90_000]),
)
def test_of_more_callers_than_fit_the_oldest_minute_is_dropped_and_bans_last(
    requests: list[tuple[int, int, int]], limit: int, ban_ms: int
) -> None:
    limiter, slow = SetLimiter(limit, ban_ms, most=5), SlowTable(limit, ban_ms, most=5)
    # Each caller has two connections, which remember its minute, and are not told when that is dropped.
    known: dict[tuple[int, int], CallerOnPath] = {}
    now_ms = BEGIN
    for number, connection, wait_ms in requests:
        now_ms += wait_ms
        caller = known.setdefault((number, connection), limiter.locate_caller("/", b"%d" % number))
        assert (limiter.count(caller, now_ms) == 0) == slow.passes(b"%d" % number, now_ms)
        assert len(limiter) <= 5


def test_what_has_ended_is_kept_no_longer_and_no_address_is() -> None:
    limiter, address = SetLimiter(1, BAN_MS), b"192.0.2.77"
    for number in range(1_000):
        ask(limiter, address + b"%d" % (number % 900), "/", BEGIN)
    held = [thing for thing in gc.get_objects() if isinstance(thing, Minute)]
    assert len(held) >= len(limiter) == 900
    assert not any(address in minute.digest for minute in held)
    ask(limiter, address, "/", BEGIN + max(60_000, BAN_MS))
    assert len(limiter) == 1


def test_nobody_can_know_the_digest_of_another() -> None:
    assert len({SetLimiter(1, BAN_MS).locate_caller("/", b"caller").digest for _ in range(3)}) == 3
