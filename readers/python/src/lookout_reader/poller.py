"""Polling both endpoints politely, one request at a time."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import wait
from dataclasses import dataclass
from threading import Event
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from lookout_reader.feed import Answer, FailureCode, Feed, NoAnswer, history_feed, live_feed, take_answer
from lookout_reader.history import History
from lookout_reader.instants import instant_now
from lookout_reader.report import LiveReport
from lookout_reader.status import effective_status
from lookout_reader.statuses import EffectiveStatus
from lookout_reader.urllib_fetch import fetch_with_urllib, in_a_thread
from lookout_reader.version import __version__

Fetch = Callable[[str, Mapping[str, str]], Answer | NoAnswer]
AsyncFetch = Callable[[str, Mapping[str, str]], Awaitable[Answer | NoAnswer]]

USER_AGENT: Final = f"lookout-reader-python/{__version__}"
_TICK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Update:
    """The state at ``now``: the last good documents, whatever their age, and the problems (C9).

    ``received_ago_ms`` is how long before ``now`` the report first arrived, by a clock that is never set.
    """

    now: int
    report: LiveReport | None
    report_problem: str | None
    history: History | None
    history_problem: str | None
    clock_ahead_ms: float | None
    received_ago_ms: float | None
    report_code: FailureCode | None = None
    history_code: FailureCode | None = None


def poll(
    base_url: str,
    protocol: str,
    *,
    live: float | None = 30.0,
    history: float | None = 120.0,
    user_agent: str = USER_AGENT,
    fetch: Fetch = fetch_with_urllib,
    stop: Event | None = None,
    now: Callable[[], int] = instant_now,
    monotonic: Callable[[], float] = time.monotonic,
    chance: Callable[[], float] = random.random,
    sleep: Callable[[float], object] | None = None,
) -> Iterator[Update]:
    """An update at once, after every answer, and whenever time changes an effective status.

    Only the address and the protocol are needed; clocks, chance and ``sleep`` are the machine's unless you give others.
    ``live`` and ``history`` are seconds between two requests, or None to leave one out. Setting ``stop``, from any
    thread, ends it within a second; a request under way is left to itself. A ``fetch`` of your own is called in a
    thread of its own, one at a time; whatever ``Exception`` it raises counts as no answer.
    """
    turns = _Turns(_endpoint(base_url, protocol), live, history, user_agent, _Machine(now, monotonic, chance))
    stopping = stop or Event()
    return _poll(turns, fetch, stopping, sleep or stopping.wait)


def poll_async(
    base_url: str,
    protocol: str,
    *,
    live: float | None = 30.0,
    history: float | None = 120.0,
    user_agent: str = USER_AGENT,
    fetch: AsyncFetch | None = None,
    now: Callable[[], int] = instant_now,
    monotonic: Callable[[], float] = time.monotonic,
    chance: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> AsyncIterator[Update]:
    """The same for asyncio; without a ``fetch`` of your own, requests are made in a thread. Cancel it to end it.

    That thread keeps no program from ending. Cancelling gives up the request under way.
    """
    turns = _Turns(_endpoint(base_url, protocol), live, history, user_agent, _Machine(now, monotonic, chance))
    return _poll_async(turns, fetch or _fetch_in_a_thread, sleep)


def _poll(turns: "_Turns", fetch: Fetch, stop: Event, sleep: Callable[[float], object]) -> Iterator[Update]:
    while not stop.is_set():
        if (update := turns.next_change()) is not None:  # before an answer, which may never come
            yield update
        elif (turn := turns.next_turn()) is not None:
            asked = in_a_thread(fetch, turn.url, turn.headers)
            while not wait([asked], _TICK_S).done:
                if stop.is_set():
                    return
                if (update := turns.next_change()) is not None:
                    yield update
            try:
                answer = asked.result()
            except Exception:  # noqa: BLE001 - whatever a fetch of one's own raises
                answer = NoAnswer()
            yield turns.take(turn, answer)
        else:
            sleep(_TICK_S)


async def _poll_async(
    turns: "_Turns", fetch: AsyncFetch, sleep: Callable[[float], Awaitable[object]]
) -> AsyncIterator[Update]:
    while True:
        if (update := turns.next_change()) is not None:
            yield update
        elif (turn := turns.next_turn()) is not None:
            asked = asyncio.create_task(_ask(fetch, turn))
            try:
                while not (await asyncio.wait({asked}, timeout=_TICK_S))[0]:
                    if (update := turns.next_change()) is not None:
                        yield update
            finally:
                asked.cancel()
            yield turns.take(turn, asked.result())
        else:
            await sleep(_TICK_S)


async def _ask(fetch: AsyncFetch, turn: "_Turn") -> Answer | NoAnswer:
    try:
        return await fetch(turn.url, turn.headers)
    except Exception:  # noqa: BLE001 - whatever a fetch of one's own raises
        return NoAnswer()


async def _fetch_in_a_thread(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
    return await asyncio.wrap_future(in_a_thread(fetch_with_urllib, url, headers))


@dataclass(frozen=True, slots=True)
class _Turn:
    """A request to make now."""

    feed: str
    url: str
    headers: Mapping[str, str]


class _Machine(NamedTuple):
    """A clock that may be set, one that never is, and chance."""

    now: Callable[[], int]
    monotonic: Callable[[], float]
    chance: Callable[[], float]


class _Turns:
    """The next due request, and the state after an answer; it neither sends nor waits."""

    def __init__(
        self, endpoint: str, live: float | None, history: float | None, user_agent: str, machine: _Machine
    ) -> None:
        self._endpoint, self._user_agent, self._machine = endpoint, user_agent, machine
        self._live: Feed[LiveReport] | None = None if live is None else live_feed(live)
        self._history: Feed[History] | None = None if history is None else history_feed(history)
        self._due = {"live": float("-inf"), "history": float("-inf")}
        self._received_s: float | None = None
        self._reported: list[EffectiveStatus] | None = None

    def next_turn(self) -> _Turn | None:
        now_s = self._machine.monotonic()
        for name, feed in (("live", self._live), ("history", self._history)):
            if feed is not None and self._due[name] <= now_s:
                headers = {"Accept": "application/json", "User-Agent": self._user_agent}
                if feed.etag is not None:
                    headers["If-None-Match"] = feed.etag
                return _Turn(name, f"{self._endpoint}/{feed.path}", headers)
        return None

    def take(self, turn: _Turn, answer: Answer | NoAnswer) -> Update:
        now, chance = self._machine.now(), self._machine.chance()
        wait_s = 0.0
        if turn.feed == "live" and self._live is not None:
            arrivals = self._live.arrivals
            self._live = take_answer(self._live, answer, now, chance)
            if self._live.arrivals > arrivals:
                self._received_s = self._machine.monotonic()
            wait_s = self._live.wait_s
        elif self._history is not None:
            self._history = take_answer(self._history, answer, now, chance)
            wait_s = self._history.wait_s
        self._due[turn.feed] = self._machine.monotonic() + wait_s
        return self._update(now)

    def next_change(self) -> Update | None:
        now = self._machine.now()
        return None if self._worth(now) == self._reported else self._update(now)

    def _update(self, now: int) -> Update:
        self._reported = self._worth(now)
        return Update(
            now=now,
            report=self._live.document if self._live else None,
            report_problem=self._live.problem if self._live else None,
            history=self._history.document if self._history else None,
            history_problem=self._history.problem if self._history else None,
            clock_ahead_ms=self._live.clock_ahead_ms if self._live else None,
            received_ago_ms=self._received_ago_ms(),
            report_code=self._live.code if self._live else None,
            history_code=self._history.code if self._history else None,
        )

    def _received_ago_ms(self) -> float | None:
        return None if self._received_s is None else max((self._machine.monotonic() - self._received_s) * 1000, 0.0)

    def _worth(self, now: int) -> list[EffectiveStatus]:
        if self._live is None or self._live.document is None:
            return []
        received_ago_ms, clock_ahead_ms = self._received_ago_ms(), self._live.clock_ahead_ms
        return [effective_status(row, now, received_ago_ms, clock_ahead_ms) for row in self._live.document.rows]


def _endpoint(base_url: str, protocol: str) -> str:
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise ValueError(f"{base_url!r} is not an http or https address")
    if not protocol:
        raise ValueError("no protocol given")
    return f"{base_url.rstrip('/')}/api/v1/{quote(protocol, safe='')}"
