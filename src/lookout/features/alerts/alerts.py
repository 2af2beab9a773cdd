"""Alerts: rules turn publications into messages, which are stored until they are sent.

A message is sent once its publication is stored, and leaves the store with the next publication after the target
accepted it. So neither a kill nor a takeover loses a message. Once nothing could be stored for a minute, messages are
sent without: a second copy after a restart is cheaper than silence (M17).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from threading import Event
from typing import ClassVar, Final, Literal, NoReturn, Self, get_args

import msgspec
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from lookout.base.concurrency import Worker
from lookout.base.instants import Lasted, format_second
from lookout.base.logger import get_logger
from lookout.base.problem import Problem
from lookout.core.causes import WITHOUT_HEAD, code_of, describe_no_new_block
from lookout.core.model import NO_METRICS, Check, Row
from lookout.core.services import Service
from lookout.features.alerts.messages import AlertFacts, Deployment, Facts, Message, write_clock, write_message
from lookout.features.alerts.outbox import MOST_WAITING, Attempt, Outbox, Queued
from lookout.features.alerts.rules import STORE, UNSTORED_MS, AlertState, News, advance, restart
from lookout.features.alerts.sender import (
    INSTALL,
    NotAcceptedError,
    Sender,
    count_recipients,
    is_installed,
    open_sender,
)
from lookout.features.alerts.settings import AlertPolicy, AlertsTable, build_policy, can_be_shown, check_rules
from lookout.features.feature import Around, Feature, Host, Rehearsal, SentMessage, Verdict
from lookout.features.outcome import EntryKey, kind_of
from lookout.state.errors import naming

log = get_logger()

LAST_SEND_S: Final = 5.0  # how long a shutdown waits for messages under way
_ALERTS: Final = "alerts"
_MESSAGE: Final = "alerts/"  # followed by a message's number
_MessageOutcome = Literal["sent", "retried", "given-up", "dropped"]


class StoredAlerts(Struct, frozen=True):
    """The alerts' state that survives a restart or a takeover."""

    state: AlertState = AlertState()
    next_number: int = 0
    messages: dict[int, Queued] = field(default_factory=dict)  # by number, the oldest first


class _AlertPiece(Struct, frozen=True, omit_defaults=True):
    state: AlertState
    next_id: Lasted


def encode_alerts(alerts: StoredAlerts) -> dict[str, bytes]:
    """All documents of alerts. Without episodes or messages they do not change with time, so nothing is written."""
    state = alerts.state if alerts.state.episodes or alerts.state.gathered or alerts.messages else AlertState()
    piece = _AlertPiece(state, alerts.next_number)
    if piece == _AlertPiece(AlertState(), 0):
        return {}
    messages = {f"{_MESSAGE}{number}": msgspec.json.encode(queued) for number, queued in alerts.messages.items()}
    return {_ALERTS: msgspec.json.encode(piece), **messages}


def decode_alerts(documents: Mapping[str, bytes]) -> StoredAlerts:
    kept, messages = _AlertPiece(AlertState(), 0), dict[int, Queued]()
    for name, document in documents.items():
        with naming(name):
            if name == _ALERTS:
                kept = msgspec.json.decode(document, type=_AlertPiece)
            elif name.startswith(_MESSAGE):
                messages[int(name.removeprefix(_MESSAGE))] = msgspec.json.decode(document, type=Queued)
    return StoredAlerts(kept.state, kept.next_id, dict(sorted(messages.items())))


class Alerts(Feature):
    """The episodes, the outbox, and one task with a thread per target. Call it on the event loop."""

    key = "alerts"
    table = AlertsTable
    claimed = ("alerts",)
    counters: ClassVar = {
        "lookout_alert_messages_total": (
            "Messages to a target, by what became of them; a retried one is counted each time",
            *("target", "outcome"),
        ),
        "lookout_alert_sender_failures_total": (
            "Times that what sends to a target could not start, or died, and was started again",
            "target",
        ),
    }
    gauges: ClassVar = {
        "lookout_alert_queue": ("Messages that wait to be accepted", "target"),
        "lookout_alerts_firing": ("Episodes that were reported and go on",),
    }
    first_rest_ms = 5_000
    """The first rest of a target that refused messages."""
    open_sender: Callable[[str], Sender] = staticmethod(open_sender)

    @classmethod
    def check(cls, table: AlertsTable, monitored: frozenset[Check], services: tuple[Service, ...]) -> Iterable[Problem]:
        return check_rules(table, monitored, services)

    @classmethod
    def check_here(cls, table: AlertsTable) -> Iterator[Problem]:
        """Problems of the targets' addresses that only Apprise can find."""
        if table.targets and not is_installed():
            yield Problem("alerts.targets", f"Apprise, which sends to them, is not installed; {INSTALL} adds it")
            return
        for name, address in table.targets.items():
            reached = count_recipients(address) if can_be_shown(name) else 1
            if reached == 0:
                yield Problem(f"alerts.targets.{name}", "Apprise does not understand this address")
            elif reached > 1:  # if one refuses a message, the others would get it at every retry
                yield Problem(f"alerts.targets.{name}", "reaches several recipients; give each a target of its own")

    @classmethod
    def reaches_people(cls, table: AlertsTable) -> bool:
        return bool(table.targets)

    @classmethod
    def decode(cls, documents: Mapping[str, bytes]) -> StoredAlerts:
        return decode_alerts(documents)

    @classmethod
    def rehearse(cls, table: AlertsTable, around: Around) -> Rehearsal | None:
        return _AlertRehearsal(build_policy(table, around)) if table.rules else None

    @classmethod
    def build(cls, table: AlertsTable, kept: StoredAlerts, host: Host) -> Self:
        return cls(build_policy(table, host.around, tuple(host.verdicts)), kept, host)

    def __init__(self, policy: AlertPolicy, kept: StoredAlerts, host: Host) -> None:
        self._policy = policy
        self._state = kept.state
        self._good: dict[Check, Row] = {}  # last compared row by check, since the start
        self._outbox = Outbox(kept.messages, kept.next_number, self.first_rest_ms)
        self._host = host
        self._changed = asyncio.Event()  # a target's next step may have changed; replaced when set

    def start(self, at: int, *, was_set: bool) -> None:
        """Unmonitored time does not count. Episodes are found again by their rules' keys, and messages by their
        targets' names."""
        self._state = restart(self._state)
        if was_set:
            return
        for target in self._policy.targets:
            for outcome in get_args(_MessageOutcome):
                self._host.count("lookout_alert_messages_total", target, outcome, by=0)
            self._host.count("lookout_alert_sender_failures_total", target, by=0)
        removed = self._outbox.keep_targets(self._policy.targets)
        self._report_removed(removed, "dropped", "its target is not configured any more")
        self._set_gauges()

    def report_clock(self, at: int, error_ms: int) -> None:
        for target in self._policy.targets:
            self._put(target, write_clock(at, error_ms, self._describe_deployment()))
        self._host.publish_soon()

    def publish(self, at: int, rows: tuple[Row, ...]) -> None:
        self._good |= {row.check: row for row in rows if row.observed_at == row.last_success_at}
        judged = {check: self._judge(key, at) for check, key in self._policy.stand_ins.items()}
        verdicts = dict[Check, Verdict]((*judged.items(), *self._host.verdicts.items()))
        everything = {row.check: row for row in rows}
        everything |= {check: Row(check, verdict.status, verdict.reason) for check, verdict in verdicts.items()}
        silenced = self._host.find_silenced(at, everything)
        self._state, news = advance(self._state, at, everything.values(), self._policy.rules, silenced)
        self._put_news(news, rows, self._collect_facts(news, everything, verdicts))
        removed = self._outbox.give_up(self._state.clock_ms - self._policy.give_up_ms)
        self._report_removed(removed, "given-up", "it was not accepted in time")
        self._release_if_unstored()
        self._set_gauges()

    def _collect_facts(
        self, news: Iterable[News], everything: Mapping[Check, Row], verdicts: Mapping[Check, Verdict]
    ) -> Facts:
        """News of an expired row or of another reason has no cause."""
        known = ((item, everything[item.check]) for item in news if item.check in everything)
        return {
            item: self._gather_facts(row, self._find_cause(row, verdicts) if row.reason == item.reason else None)
            for item, row in known
        }

    def _put_news(self, news: Iterable[News], rows: Iterable[Row], facts: Facts) -> None:
        watched = [row for row in rows if row.status != "unmonitored"]
        nothing_answers = len(watched) > 1 and all(row.reason == "unreachable" for row in watched)
        for target in self._policy.targets:
            if mine := [item for item in news if target in item.targets]:
                deployment = self._describe_deployment()
                self._put(target, write_message(mine, deployment, facts, nothing_answers=nothing_answers))

    def _describe_deployment(self) -> Deployment:
        """With the number of places that are not silent."""
        witnesses = (said for of, said in self._host.verdicts.items() if kind_of(of) == "witness")
        return replace(self._policy.deployment, places=1 + sum(said.status == "current" for said in witnesses))

    def _release_if_unstored(self) -> None:
        of_store = (episode.seen_ms for episode in self._state.episodes if episode.check == STORE and episode.is_seen)
        if max(of_store, default=0) >= UNSTORED_MS:
            self._outbox.release()
            self._wake()

    def _find_cause(self, row: Row, verdicts: Mapping[Check, Verdict]) -> str | None:
        if row.check in verdicts:
            return verdicts[row.check].cause
        is_ours = row.metrics.views is UNSET or self._host.ledger.newest_row(row.check).reason == row.reason
        return self._host.causes.get(row.check) if is_ours else None  # not of what other places see

    def _judge(self, key: EntryKey, at: int) -> Verdict:
        if key.kind != "chain" or not isinstance(key.chain_id, int):
            return self._host.judge(key)
        head, _, since_at = self._host.ledger.progress_of(key.chain_id, at)
        if since_at is not None:
            return Verdict("degraded", "behind", describe_no_new_block(since_at, at))
        return Verdict("unknown" if head is None else "current", "responding")

    def _gather_facts(self, row: Row, cause: str | None) -> AlertFacts:
        good = self._good.get(row.check)
        metrics = good.metrics if good and good.last_success_at == row.last_success_at else NO_METRICS
        of_endpoints = code_of(cause or "") in (*WITHOUT_HEAD, "no_new_block")
        endpoints = self._host.describe_endpoints(row.check.chain_id) if of_endpoints else ()
        return AlertFacts(cause, row.last_success_at, metrics, endpoints)

    def documents(self) -> Mapping[str, bytes]:
        outbox = self._outbox
        return encode_alerts(StoredAlerts(self._state, outbox.next_number, outbox.messages))

    def begin_write(self) -> None:
        self._outbox.mark_storing()

    def mark_stored(self) -> None:
        self._outbox.mark_stored()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send messages during the block. At its end, wait briefly for messages under way."""
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
        wait_s = self.first_rest_ms / 1000
        while True:
            try:
                with self._host.open_thread(f"alert {target}") as thread:
                    if is_failing:
                        log.info("the sender runs again", target=target)
                    is_failing = False
                    await self._send_to(target, thread)
            except Exception:
                self._host.count("lookout_alert_sender_failures_total", target)
                if not is_failing:
                    log.exception("the sender failed; starting it again", target=target, every_s=wait_s)
                is_failing = True
            await asyncio.sleep(wait_s)

    async def _send_to(self, target: str, thread: Worker) -> NoReturn:
        while True:
            changed, now_ms = self._changed, self._host.clock.elapsed_ms()
            step = self._outbox.next(target, now_ms)
            if isinstance(step, Attempt):
                await self._try(step, thread)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(None if step is None else (step - now_ms) / 1000):
                    await changed.wait()

    async def _try(self, attempt: Attempt, thread: Worker) -> None:
        """Send a message. When cancelled, wait briefly for its end; after that it is not sent any more, since another
        monitor may have sent it."""
        address, message = self._policy.targets[attempt.queued.target], attempt.queued.message
        abandoned = Event()

        def send() -> None:
            sender = self.open_sender(address)
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
        except NotAcceptedError as error:
            log.warning("a message was not accepted; trying again", **about, why=str(error) or "unknown")
        except Exception:  # a bug here or in Apprise must not stop other messages
            log.exception("sending crashed; trying again", **about)
        else:
            self._accept(attempt)
            return
        self._count(attempt.queued, "retried")
        self._outbox.refuse(attempt, self._host.clock.elapsed_ms())

    def _accept(self, attempt: Attempt) -> None:
        self._outbox.accept(attempt)
        self._host.publish_soon()  # also at shutdown: the next monitor would send stored messages again
        self._count(attempt.queued, "sent")
        log.info("a message was sent", target=attempt.queued.target, message=attempt.number)
        self._set_gauges()

    def _put(self, target: str, message: Message) -> None:
        title, body, is_over, event = message
        removed = self._outbox.put(Queued(target, title, body, self._state.clock_ms, is_over, event))
        self._report_removed(removed, "dropped", f"more than {MOST_WAITING} are waiting")

    def _report_removed(self, removed: Mapping[int, Queued], outcome: _MessageOutcome, why: str) -> None:
        for number, queued in removed.items():
            self._count(queued, outcome)
            log.error("a message was given up", target=queued.target, message=number, title=queued.title, why=why)

    def _count(self, queued: Queued, outcome: _MessageOutcome) -> None:
        self._host.count("lookout_alert_messages_total", queued.target, outcome)

    def _set_gauges(self) -> None:
        firing = sum(bool(episode.reported_to) for episode in self._state.episodes)
        waiting = dict.fromkeys(self._policy.targets, 0)
        for queued in self._outbox.messages.values():
            waiting[queued.target] += 1
        samples = [("lookout_alert_queue", [target], count) for target, count in waiting.items()]
        self._host.set_samples(Alerts, (("lookout_alerts_firing", [], firing), *samples))


class _AlertRehearsal(Rehearsal):
    """The messages that the rules would have sent, from rows alone."""

    def __init__(self, policy: AlertPolicy) -> None:
        self._policy = policy
        self._state = AlertState()

    def start(self, at: int) -> None:
        self._state = restart(self._state)

    def publish(self, at: int, rows: tuple[Row, ...]) -> Iterator[SentMessage]:
        self._state, news = advance(self._state, at, rows, self._policy.rules)
        for target in self._policy.targets if news else ():
            if mine := [item for item in news if target in item.targets]:
                yield SentMessage(format_second(at), target, write_message(mine, self._policy.deployment).title)
