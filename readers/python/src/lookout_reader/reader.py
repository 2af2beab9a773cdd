"""Asking for both documents politely, one request at a time."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import aclosing
from functools import partial
from threading import Event
from typing import Final, TypedDict, Unpack

from lookout_reader.feed import Answer, NoAnswer
from lookout_reader.gate import Needs, Obstacle, can_use, obstacles_of
from lookout_reader.instants import instant_now
from lookout_reader.poller import Machine, Poller, State, Turn, Update
from lookout_reader.urllib_fetch import fetch_with_urllib, in_a_thread
from lookout_reader.version import __version__

Fetch = Callable[[str, Mapping[str, str]], Answer | NoAnswer]
AsyncFetch = Callable[[str, Mapping[str, str]], Awaitable[Answer | NoAnswer]]

USER_AGENT: Final = f"lookout-reader-python/{__version__}"
DEADLINE_S: Final = 5.0
_TICK_S: Final = 1.0


class Reader:
    """The documents of one server. Create one and share it: its methods can be called from any thread.

    Only the address and the protocol are needed; clocks, chance and ``sleep`` are the machine's unless you give others.
    ``live`` and ``history`` are seconds between two requests, or None to leave one out. A ``fetch`` of your own is
    called in a thread of its own, one at a time; whatever ``Exception`` it raises counts as no answer.
    """

    def __init__(
        self,
        base_url: str,
        protocol: str,
        *,
        live: float | None = 30.0,
        history: float | None = 120.0,
        deadline_s: float = DEADLINE_S,
        user_agent: str = USER_AGENT,
        fetch: Fetch = fetch_with_urllib,
        now: Callable[[], int] = instant_now,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        machine = Machine(now, monotonic, chance)
        self._make_poller = partial(Poller, base_url, protocol, user_agent, machine, live=live, history=history)
        self._poller = self._make_poller()
        self._fetch, self._deadline_s, self._sleep = fetch, deadline_s, sleep
        self._asked: Future[None] | None = None

    def latest(self) -> Update:
        """What is known now; nothing is asked."""
        return self._poller.update()

    def can_use(self, needs: Needs) -> bool:
        """Whether every one of the services is current on this chain now."""
        return can_use(self.latest().report, needs)

    def obstacles(self, needs: Needs) -> tuple[Obstacle, ...]:
        """What stands in the way now, how bad it is, and why it is unknown."""
        latest = self.latest()
        return obstacles_of(latest.report, needs, report_code=latest.report_code)

    def updates(self, stop: Event | None = None) -> Iterator[Update]:
        """An update at once, after every answer, and whenever time changes an effective status.

        Setting ``stop``, from any thread, ends it within a second; a request under way is left to itself.
        """
        stopping = stop or Event()
        sleep = self._sleep or stopping.wait
        seen: State | None = None
        asked: Future[None] | None = None
        while not stopping.is_set():
            if (news := self._poller.news(seen)) is not None:  # before an answer, which may never come
                seen, update = news
                yield update
            elif asked is not None:
                if wait([asked], _TICK_S).done:
                    asked.result()
                    asked = None
            elif (turn := self._poller.next_turn()) is not None:
                asked = self._ask(turn)
            else:
                sleep(_TICK_S)

    def read(self) -> Update:
        """Ask for the live report once, for example before a transfer; within 15 seconds the last answer counts.

        After ``deadline_s`` it gives what is known.
        """
        until_s = time.monotonic() + self._deadline_s
        if (asked := self._asked) is not None and not asked.done():
            wait([asked], self._deadline_s)
        if (turn := self._poller.wanted_turn()) is not None:
            asked = self._ask(turn)
            if wait([asked], max(until_s - time.monotonic(), 0)).done:
                asked.result()
        return self.latest()

    def when_usable(self, needs: Needs, stop: Event | None = None) -> bool:
        """Wait until nothing stands in the way, asking politely; False if ``stop`` was set before."""
        return any(self.can_use(needs) for _ in self.updates(stop))

    def _ask(self, turn: Turn) -> Future[None]:
        asked = in_a_thread(self._take, turn)
        if asked.done() and isinstance(asked.exception(), RuntimeError):  # no thread is left, and nothing was asked
            self._poller.take(turn, NoAnswer())
            asked = Future[None]()
            asked.set_result(None)
        self._asked = asked
        return asked

    def _take(self, turn: Turn) -> None:
        try:
            answer = self._fetch(turn.url, turn.headers)
        except Exception:  # noqa: BLE001 - whatever a fetch of one's own raises
            answer = NoAnswer()
        except BaseException:
            self._poller.give_up(turn)
            raise
        self._poller.take(turn, answer)


class AsyncReader:
    """The same for asyncio; without a ``fetch`` of your own, requests are made in a thread."""

    def __init__(
        self,
        base_url: str,
        protocol: str,
        *,
        live: float | None = 30.0,
        history: float | None = 120.0,
        deadline_s: float = DEADLINE_S,
        user_agent: str = USER_AGENT,
        fetch: AsyncFetch | None = None,
        now: Callable[[], int] = instant_now,
        monotonic: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        machine = Machine(now, monotonic, chance)
        self._poller = Poller(base_url, protocol, user_agent, machine, live=live, history=history)
        self._fetch, self._deadline_s, self._sleep = fetch or _fetch_in_a_thread, deadline_s, sleep
        self._asked: asyncio.Task[None] | None = None

    def latest(self) -> Update:
        """What is known now; nothing is asked."""
        return self._poller.update()

    def can_use(self, needs: Needs) -> bool:
        """Whether every one of the services is current on this chain now."""
        return can_use(self.latest().report, needs)

    def obstacles(self, needs: Needs) -> tuple[Obstacle, ...]:
        """What stands in the way now, how bad it is, and why it is unknown."""
        latest = self.latest()
        return obstacles_of(latest.report, needs, report_code=latest.report_code)

    async def updates(self) -> AsyncGenerator[Update, None]:
        """As ``Reader.updates``. Cancel it, or close it with ``contextlib.aclosing``: that gives up its request."""
        seen: State | None = None
        asked: asyncio.Task[None] | None = None
        try:
            while True:
                if (news := self._poller.news(seen)) is not None:
                    seen, update = news
                    yield update
                elif asked is not None:
                    if (await asyncio.wait({asked}, timeout=_TICK_S))[0]:
                        asked.result()
                        asked = None
                elif (turn := self._poller.next_turn()) is not None:
                    asked = self._ask(turn)
                else:
                    await self._sleep(_TICK_S)
        finally:
            if asked is not None:
                asked.cancel()

    async def read(self) -> Update:
        """As ``Reader.read``."""
        until_s = time.monotonic() + self._deadline_s
        if (asked := self._asked) is not None and not asked.done():
            await asyncio.wait({asked}, timeout=self._deadline_s)
        if (turn := self._poller.wanted_turn()) is not None:
            asked = self._ask(turn)
            if (await asyncio.wait({asked}, timeout=max(until_s - time.monotonic(), 0)))[0]:
                asked.result()
        return self.latest()

    async def when_usable(self, needs: Needs) -> None:
        """Wait until nothing stands in the way, asking politely."""
        async with aclosing(self.updates()) as updates:
            async for _ in updates:
                if self.can_use(needs):
                    return

    def _ask(self, turn: Turn) -> asyncio.Task[None]:
        self._asked = asyncio.create_task(self._take(turn))
        return self._asked

    async def _take(self, turn: Turn) -> None:
        try:
            answer = await self._fetch(turn.url, turn.headers)
        except Exception:  # noqa: BLE001 - whatever a fetch of one's own raises
            answer = NoAnswer()
        except BaseException:  # it was cancelled
            self._poller.give_up(turn)
            raise
        self._poller.take(turn, answer)


async def _fetch_in_a_thread(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
    return await asyncio.wrap_future(in_a_thread(fetch_with_urllib, url, headers))


class PollOptions(TypedDict, total=False):
    """Those of ``Reader``."""

    live: float | None
    history: float | None
    user_agent: str
    fetch: Fetch
    now: Callable[[], int]
    monotonic: Callable[[], float]
    chance: Callable[[], float]
    sleep: Callable[[float], object] | None


class AsyncPollOptions(TypedDict, total=False):
    """Those of ``AsyncReader``."""

    live: float | None
    history: float | None
    user_agent: str
    fetch: AsyncFetch | None
    now: Callable[[], int]
    monotonic: Callable[[], float]
    chance: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]


def poll(
    base_url: str, protocol: str, *, stop: Event | None = None, **options: Unpack[PollOptions]
) -> Iterator[Update]:
    """The updates of a reader of its own: ``Reader(...).updates(stop)``."""
    return Reader(base_url, protocol, **options).updates(stop)


def poll_async(base_url: str, protocol: str, **options: Unpack[AsyncPollOptions]) -> AsyncGenerator[Update, None]:
    """The updates of a reader of its own: ``AsyncReader(...).updates()``."""
    return AsyncReader(base_url, protocol, **options).updates()


def read(base_url: str, protocol: str, *, user_agent: str = USER_AGENT, fetch: Fetch = fetch_with_urllib) -> Update:
    """One answer: the live report, or what is wrong."""
    return Reader(base_url, protocol, history=None, user_agent=user_agent, fetch=fetch).read()


async def read_async(
    base_url: str, protocol: str, *, user_agent: str = USER_AGENT, fetch: AsyncFetch | None = None
) -> Update:
    """The same for asyncio."""
    return await AsyncReader(base_url, protocol, history=None, user_agent=user_agent, fetch=fetch).read()
