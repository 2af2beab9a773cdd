"""Tells people: what the rules find in publications becomes messages, which wait in the store until they are sent.

A message is sent once the publication that made it is stored, and leaves the store with the next one after it was
accepted. Whoever is killed, or taken over from, in between has lost none.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Final, Literal, NoReturn

import structlog
from msgspec import Struct

from lookout.alerts.messages import Words, message, restored
from lookout.alerts.sender import NotAcceptedError, Way, way_to
from lookout.base.clock import Clock
from lookout.base.threads import Caller, DaemonThread
from lookout.core.episodes import Rules, started, tell
from lookout.core.model import Row
from lookout.monitor.metrics import Instruments
from lookout.state.alerts import Queued, StoredAlerts, decode_alerts, encode_alerts

MOST_WAITING: Final = 100  # messages to one target
# PostgreSQL lets another monitor in when this one was silent for 5 s: what was stored a moment ago is still ours.
FRESH_MS: Final = 4_000
LAST_SEND_S: Final = 5.0  # how long the end waits for what is being sent
FIRST_WAIT_S: Final = 5.0  # after a message was not accepted
_LONGEST_WAIT_S: Final = 300.0

log = structlog.get_logger("alerts")


class Telling(Struct, frozen=True):
    """Who is told what: the rules, the targets' addresses by their names, and for how long a message is tried."""

    rules: Rules
    targets: dict[str, str]
    give_up_ms: int


NOBODY: Final = Telling(Rules((), 0, 0), {}, 0)


class _StaleError(Exception):
    """The store may be another monitor's by now, and so the message."""


class Alerts:
    """The episodes, and the messages that are not sent yet. All that it is told happens on the event loop; each target
    has a thread of its own to send."""

    def __init__(
        self,
        telling: Telling,
        stored: Mapping[str, bytes],
        clock: Clock,
        instruments: Instruments,
        open_way: Callable[[str], Way] = way_to,
        first_wait_s: float = FIRST_WAIT_S,
        open_thread: Callable[[str], AbstractContextManager[Caller]] = DaemonThread,
    ) -> None:
        """Go on with what is stored, each target's sending being done by what ``open_thread`` gives. StateError if what
        is stored cannot be read."""
        kept = decode_alerts(stored)
        self._state, self._next_id, self._restored_at = kept.state, kept.next_number, kept.restored_at
        self._outbox = kept.messages
        self._clock = clock
        self._instruments = instruments
        self._storing: frozenset[int] = frozenset()
        self._sendable: frozenset[int] = frozenset()
        self._stored_ms: int | None = None
        self._stored_again = asyncio.Event()
        self._ask: Callable[[], None] | None = None  # for a publication; None while nothing is sent
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._open_way = open_way
        self._first_wait_s = first_wait_s
        self._open_thread = open_thread
        self._changed = asyncio.Event()
        self._telling = NOBODY
        self.change(telling)

    def change(self, telling: Telling) -> None:
        """Go by these rules and targets from the next publication on. Episodes are found again by their rules' keys,
        and messages by the names of their targets."""
        self._telling = telling
        self._changed.set()
        self._changed = asyncio.Event()
        for name in [name for name in self._senders if name not in telling.targets]:
            self._senders.pop(name).cancel()
        for number, waiting in list(self._outbox.items()):
            if waiting.target not in telling.targets:
                self._drop(number, "dropped", "its target is not configured any more")
        self._start_senders()
        self._show()

    def start(self) -> None:
        """The monitor begins to run, or its clock was set."""
        self._state = started(self._state)

    def published(self, at: int, rows: Iterable[Row]) -> None:
        """A publication was made, and is about to be stored."""
        self._state, news = tell(self._state, at, rows, self._telling.rules)
        for target in self._telling.targets:
            if self._restored_at is not None:
                self._put_out(target, restored(self._restored_at))
            if mine := [each for each in news if target in each.targets]:
                self._put_out(target, message(mine))
        self._restored_at = None
        for number, waiting in list(self._outbox.items()):
            if self._state.clock_ms - waiting.made_ms >= self._telling.give_up_ms:
                self._drop(number, "given-up", "it was not accepted in time")
        self._show()

    def pieces(self) -> dict[str, bytes]:
        """All that is to be stored of this with the publication."""
        self._storing = frozenset(self._outbox)
        return encode_alerts(StoredAlerts(self._state, self._next_id, self._outbox))

    def stored(self, began_ms: int) -> None:
        """The publication is stored: it was ours to write when that began."""
        self._stored_ms = began_ms
        self._sendable = self._storing
        self._stored_again.set()
        self._stored_again = asyncio.Event()

    @asynccontextmanager
    async def sending(self, ask: Callable[[], None]) -> AsyncIterator[None]:
        """Send meanwhile; ``ask`` asks for a publication. At the end, wait a little for what is being sent."""
        self._ask = ask
        self._start_senders()
        try:
            yield
        finally:
            self._ask = None
            for sender in self._senders.values():
                sender.cancel()
            await asyncio.gather(*self._senders.values(), return_exceptions=True)
            self._senders.clear()

    def _start_senders(self) -> None:
        if self._ask is not None:
            for name in [name for name in self._telling.targets if name not in self._senders]:
                self._senders[name] = asyncio.create_task(self._keep_sending(name, self._ask), name=f"tell {name}")

    async def _keep_sending(self, name: str, ask: Callable[[], None]) -> None:
        """Send to a target until cancelled. A sender that dies, of a bug or for want of a thread, is started again: its
        messages wait in the store meanwhile."""
        is_failing = False
        while True:
            try:
                with self._open_thread(f"tell {name}") as thread:
                    if is_failing:
                        log.info("the sender runs again", target=name)
                    is_failing = False
                    await self._send_to(thread, name, ask)
            except Exception:
                self._instruments.alert_sender_failed(name)
                if not is_failing:
                    log.exception("the sender failed; starting it again", target=name, every_s=self._first_wait_s)
                is_failing = True
            await asyncio.sleep(self._first_wait_s)

    async def _send_to(self, thread: Caller, name: str, ask: Callable[[], None]) -> NoReturn:
        """Send what there is for a target, until cancelled: the oldest first. If that is not accepted it may be the
        message and not the target, so another one is tried, in turn, before the target is left alone for a while."""
        wait_s, turn, changed = self._first_wait_s, 0, self._changed
        refused: list[int] = []  # since the last wait
        while True:
            number = await self._next_for(name, ask, refused, turn)
            if number is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await changed.wait()  # a new address is tried at once
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
                refused.clear()
                continue
            changed = changed if refused else self._changed
            with suppress(_StaleError):
                is_accepted = await self._is_accepted(thread, name, number, wait_s, ask)
                turn = number if refused else turn
                if is_accepted:
                    wait_s = self._first_wait_s
                else:
                    refused.append(number)

    async def _next_for(self, name: str, ask: Callable[[], None], refused: list[int], turn: int) -> int | None:
        """The message to try next, once it is stored and the store is known to be ours: the oldest, or, if that was
        refused, the next one in turn. None if enough were refused."""
        while True:
            stored_again = self._stored_again
            waiting = [each for each in self._outbox if self._outbox[each].target == name and each in self._sendable]
            left = [number for number in waiting if number not in refused]
            if len(refused) > 1 or (refused and not left):
                return None
            if left and self._is_ours():
                return next((number for number in left if refused and number > turn), left[0])
            if left:
                ask()
            await stored_again.wait()

    async def _is_accepted(
        self, thread: Caller, name: str, number: int, wait_s: float, ask: Callable[[], None]
    ) -> bool:
        try:
            await self._attempt(thread, self._telling.targets[name], number, ask)
        except _StaleError:
            raise
        except NotAcceptedError:
            log.warning("a message was not accepted; trying again", target=name, message=number, wait_s=wait_s)
        except Exception:  # a bug, of ours or of Apprise: the other messages are to be sent all the same
            log.exception("sending died of a bug; trying again", target=name, message=number, wait_s=wait_s)
        else:
            return True
        self._instruments.alert_message(name, "retried")
        return False

    async def _attempt(self, thread: Caller, address: str, number: int, ask: Callable[[], None]) -> None:
        waiting = self._outbox[number]

        def send() -> None:
            if not self._is_ours():  # the process may have been frozen since it was looked at
                raise _StaleError
            self._open_way(address)(Words(waiting.title, waiting.body, waiting.is_over))

        attempt = asyncio.ensure_future(thread.call(send))
        try:
            await asyncio.shield(attempt)
        except asyncio.CancelledError:
            try:
                await asyncio.wait_for(attempt, LAST_SEND_S)
            except (TimeoutError, NotAcceptedError, _StaleError):
                pass
            except Exception:  # a bug is not to take the place of the end that was asked for
                log.exception("sending died of a bug at the end", target=waiting.target, message=number)
            else:
                self._accepted(number, waiting.target, ask)
            raise
        self._accepted(number, waiting.target, ask)

    def _accepted(self, number: int, target: str, ask: Callable[[], None]) -> None:
        self._outbox.pop(number, None)  # it may have been given up meanwhile
        ask()  # also at the end: what is not stored would be sent again by who comes after
        self._instruments.alert_message(target, "sent")
        log.info("a message was sent", target=target, message=number)
        self._show()

    def _put_out(self, target: str, words: Words) -> None:
        title, body, is_over = words
        self._outbox[self._next_id] = Queued(target, title, body, self._state.clock_ms, is_over)
        self._next_id += 1
        self._keep_few(target)

    def _is_ours(self) -> bool:
        return self._stored_ms is not None and self._clock.elapsed_ms() - self._stored_ms < FRESH_MS

    def _keep_few(self, target: str) -> None:
        waiting = [number for number, each in self._outbox.items() if each.target == target]
        for number in waiting[:-MOST_WAITING]:
            self._drop(number, "dropped", f"more than {MOST_WAITING} are waiting")

    def _drop(self, number: int, outcome: Literal["given-up", "dropped"], why: str) -> None:
        dropped = self._outbox.pop(number)
        self._instruments.alert_message(dropped.target, outcome)
        log.error("a message was given up", target=dropped.target, message=number, title=dropped.title, why=why)

    def _show(self) -> None:
        firing = sum(bool(episode.told_to) for episode in self._state.episodes)
        waiting = dict.fromkeys(self._telling.targets, 0)
        for each in self._outbox.values():
            waiting[each.target] += 1
        self._instruments.alerts_stand(firing, waiting)
