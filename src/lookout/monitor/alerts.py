"""Alerts: rules turn publications into messages, which are stored until they are sent.

A message is sent once its publication is stored, and leaves the store with the next publication after the target
accepted it. So neither a kill nor a takeover loses a message. Once nothing could be stored for a minute, messages are
sent without: a second copy after a restart is cheaper than silence (M17).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from threading import Event
from typing import Final, NoReturn

from lookout.alerts.event import AlertFacts, AlertPolicy
from lookout.alerts.messages import Message, write_clock, write_message
from lookout.alerts.outbox import FIRST_WAIT_MS, MOST_WAITING, Attempt, Outbox, Queued
from lookout.alerts.sender import NotAcceptedError, Sender
from lookout.base.clock import Clock
from lookout.base.concurrency import Caller
from lookout.base.logger import get_logger
from lookout.core.causes import WITHOUT_HEAD
from lookout.core.episodes import STORE, UNSTORED_MS, advance, has_row, restart
from lookout.core.model import NO_METRICS, Check, Row
from lookout.monitor.metrics import Instruments, MessageOutcome
from lookout.state.codec import StoredAlerts, encode_alerts

LAST_SEND_S: Final = 5.0  # how long a shutdown waits for messages under way

log = get_logger()


class Alerts:
    """The episodes, the outbox, and one task with a thread per target. Call it on the event loop."""

    def __init__(
        self,
        policy: AlertPolicy,
        kept: StoredAlerts,
        clock: Clock,
        instruments: Instruments,
        open_thread: Callable[[str], AbstractContextManager[Caller]],
        open_sender: Callable[[str], Sender],
        first_rest_ms: int = FIRST_WAIT_MS,
    ) -> None:
        """Go on with what was kept. ``first_rest_ms`` is the first rest of a target that refused messages."""
        self._policy = policy
        self._state = kept.state
        self._good: dict[Check, Row] = {}  # last compared row by check, since the start
        self._outbox = Outbox(kept.messages, kept.next_number, first_rest_ms)
        self._clock = clock
        self._instruments = instruments
        self._open_thread = open_thread
        self._open_sender = open_sender
        self._first_rest_ms = first_rest_ms
        self._request_publication: Callable[[], None] = lambda: None
        self._changed = asyncio.Event()  # a target's next step may have changed; replaced when set
        of_rules = (check for rule in policy.rules.rules for check in rule.checks if not has_row(check))
        self.without_rows = tuple(dict.fromkeys(of_rules))  # that are reported

    def start(self) -> None:
        """The monitor starts. Episodes are found again by their rules' keys, and messages by their targets' names."""
        removed = self._outbox.keep_targets(self._policy.targets)
        self._report_removed(removed, "dropped", "its target is not configured any more")
        self._set_gauges()

    def restart(self) -> None:
        """The monitor starts, or its clock was set: unmonitored time does not count."""
        self._state = restart(self._state)

    def report_clock(self, at: int, error_ms: int) -> None:
        """Report with the next publication that this machine's clock is wrong (M17), or right again if 0."""
        for target in self._policy.targets:
            self._put(target, write_clock(at, error_ms, self._policy.deployment))
        self._request_publication()

    def advance(
        self,
        at: int,
        rows: Iterable[Row],
        causes: Mapping[Check, str] = {},
        silenced: Collection[Check] = (),
    ) -> None:
        """After a publication, before it is stored with ``pieces()``. ``causes`` says why probed checks are not
        current; no alert begins for ``silenced`` checks."""
        published = {row.check: row for row in rows}
        self._good |= {row.check: row for row in published.values() if row.observed_at == row.last_success_at}
        others = [self._instruments.board.judge(check) for check in self.without_rows]
        everything = {**published, **{row.check: row for row, _ in others}}
        self._state, news = advance(self._state, at, everything.values(), self._policy.rules, silenced)
        # A cause belongs to the newest row; news of an expired row or an earlier reason has none.
        known = {(check, row.reason): causes[check] for check, row in published.items() if check in causes}
        known |= {(row.check, row.reason): cause for row, cause in others if cause is not None}
        facts = {
            item: self._gather_facts(row, known.get((item.check, item.reason)))
            for item in news
            if (row := everything.get(item.check)) is not None
        }
        watched = [row for row in published.values() if row.status != "unmonitored"]
        nothing_answers = len(watched) > 1 and all(row.reason == "unreachable" for row in watched)
        for target in self._policy.targets:
            if mine := [item for item in news if target in item.targets]:
                deployment = self._policy.deployment
                self._put(target, write_message(mine, deployment, facts, nothing_answers=nothing_answers))
        removed = self._outbox.give_up(self._state.clock_ms - self._policy.give_up_ms)
        self._report_removed(removed, "given-up", "it was not accepted in time")
        of_store = (episode.seen_ms for episode in self._state.episodes if episode.check == STORE and episode.is_seen)
        if max(of_store, default=0) >= UNSTORED_MS:
            self._outbox.release()
            self._wake()
        self._set_gauges()

    def _gather_facts(self, row: Row, cause: str | None) -> AlertFacts:
        good = self._good.get(row.check)
        metrics = good.metrics if good and good.last_success_at == row.last_success_at else NO_METRICS
        endpoints = self._instruments.board.describe_endpoints(row.check.chain_id) if cause in WITHOUT_HEAD else ()
        return AlertFacts(cause, row.last_success_at, metrics, endpoints)

    def pieces(self) -> dict[str, bytes]:
        """The alerts' whole stored state."""
        outbox = self._outbox
        return encode_alerts(StoredAlerts(self._state, outbox.next_number, outbox.messages))

    def begin_write(self) -> None:
        """What ``pieces()`` gives now is about to be stored."""
        self._outbox.mark_storing()

    def mark_stored(self) -> None:
        """What was about to be stored is."""
        self._outbox.mark_stored()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def sending(self, request_publication: Callable[[], None]) -> AsyncIterator[None]:
        """Send messages during the block. At its end, wait briefly for messages under way."""
        self._request_publication = request_publication
        tasks = [
            asyncio.create_task(self._keep_sending(target), name=f"alert {target}") for target in self._policy.targets
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_sending(self, target: str) -> None:
        """Send to a target until cancelled. After a crash, or without a free thread, start again: the messages wait in
        the store meanwhile."""
        is_failing = False
        wait_s = self._first_rest_ms / 1000
        while True:
            try:
                with self._open_thread(f"alert {target}") as thread:
                    if is_failing:
                        log.info("the sender runs again", target=target)
                    is_failing = False
                    await self._send_to(target, thread)
            except Exception:
                self._instruments.count("lookout_alert_sender_failures_total", target)
                if not is_failing:
                    log.exception("the sender failed; starting it again", target=target, every_s=wait_s)
                is_failing = True
            await asyncio.sleep(wait_s)

    async def _send_to(self, target: str, thread: Caller) -> NoReturn:
        while True:
            changed, now_ms = self._changed, self._clock.elapsed_ms()
            step = self._outbox.next(target, now_ms)
            if isinstance(step, Attempt):
                await self._try(step, thread)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(None if step is None else (step - now_ms) / 1000):
                    await changed.wait()

    async def _try(self, attempt: Attempt, thread: Caller) -> None:
        """Send a message. When cancelled, wait briefly for its end; after that it is not sent any more, since another
        monitor may have sent it."""
        address, message = self._policy.targets[attempt.queued.target], attempt.queued.message
        abandoned = Event()

        def send() -> None:
            sender = self._open_sender(address)
            if not abandoned.is_set():
                sender(message)

        call = asyncio.ensure_future(thread.call(send))
        try:
            await asyncio.wait((call,))
        except asyncio.CancelledError:
            await asyncio.wait((call,), timeout=LAST_SEND_S)
            raise
        finally:
            if call.done():
                self._settle(attempt, call)
            else:
                abandoned.set()
                call.cancel()

    def _settle(self, attempt: Attempt, call: asyncio.Future[None]) -> None:
        about = {"target": attempt.queued.target, "message": attempt.number}
        try:
            call.result()
        except NotAcceptedError:
            log.warning("a message was not accepted; trying again", **about)
        except Exception:  # a bug here or in Apprise must not stop other messages
            log.exception("sending crashed; trying again", **about)
        else:
            self._accept(attempt)
            return
        self._count(attempt.queued, "retried")
        self._outbox.refuse(attempt, self._clock.elapsed_ms())

    def _accept(self, attempt: Attempt) -> None:
        self._outbox.accept(attempt)
        self._request_publication()  # also at shutdown: the next monitor would send stored messages again
        self._count(attempt.queued, "sent")
        log.info("a message was sent", target=attempt.queued.target, message=attempt.number)
        self._set_gauges()

    def _put(self, target: str, message: Message) -> None:
        title, body, is_over, event = message
        removed = self._outbox.put(Queued(target, title, body, self._state.clock_ms, is_over, event))
        self._report_removed(removed, "dropped", f"more than {MOST_WAITING} are waiting")

    def _report_removed(self, removed: Mapping[int, Queued], outcome: MessageOutcome, why: str) -> None:
        for number, queued in removed.items():
            self._count(queued, outcome)
            log.error("a message was given up", target=queued.target, message=number, title=queued.title, why=why)

    def _count(self, queued: Queued, outcome: MessageOutcome) -> None:
        self._instruments.count("lookout_alert_messages_total", queued.target, outcome)

    def _set_gauges(self) -> None:
        firing = sum(bool(episode.reported_to) for episode in self._state.episodes)
        waiting = dict.fromkeys(self._policy.targets, 0)
        for queued in self._outbox.messages.values():
            waiting[queued.target] += 1
        self._instruments.set_alert_gauges(firing, waiting)
