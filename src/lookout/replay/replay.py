"""Runs a recorded observation log through the rules: the same events give the same documents."""

from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from lookout.base.instants import format_instant
from lookout.core.history import DAY_MS, SPARE_DAYS
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Observation
from lookout.core.plan import Plan
from lookout.features.feature import Rehearsal, SentMessage
from lookout.state.log import Compared, Event, HeadRead, LineError, NotJsonError, Started, Stopped, Viewed, parse_line


class LogError(Exception):
    """The log cannot be replayed; the text names the line and the reason."""


class Replay:
    """A monitor's ledger, rebuilt from its events: every event but a stop makes a publication, and so do the
    heartbeats between events."""

    def __init__(self, plan: Plan, rehearsals: Sequence[Rehearsal] = ()) -> None:
        """``rehearsals`` of features: what they make of rows, and the messages that they would have sent."""
        self.ledger = Ledger(plan)
        self.messages: list[SentMessage] = []
        self._plan = plan
        self._rehearsals = rehearsals
        self.ledger.combine = next((each.combine for each in rehearsals if each.combine is not None), None)
        self.has_views = False  # of witnesses
        self._own_services = {service.name: service for service in plan.own_services}
        self._is_running = False
        self._is_starting = False  # the views that were known at the start may still follow
        self.skipped = 0  # events of checks and chains that the plan does not have
        self.first_skipped = ""
        self._heartbeat_ms = plan.limits.heartbeat_ms
        self._last_at: int | None = None
        self._beat_at = 0
        # After so long without an event every row has expired, and all earlier buckets have left the history.
        self._forgets_after_ms = plan.limits.row_lifetime_ms + (plan.span.retention_days + 1 + SPARE_DAYS) * DAY_MS

    def feed(self, event: Event) -> None:
        """Apply one event. LineError if it cannot follow the earlier events."""
        at = event.at
        if self._is_starting and not (at == self._last_at and type(event) in (Compared, Viewed)):
            self._publish_start()
        if type(event) is Started:
            # A start while running means a crash: nothing was published after the last event.
            self.ledger.start(at, self._last_at, event.step_ms)
            for rehearsal in self._rehearsals:
                rehearsal.start(at)
            self._is_running = True
            self._is_starting = self.ledger.combine is not None
        elif not self._is_starting and (
            not self._is_running or self._last_at is None or not self._last_at <= at <= self._beat_at
        ):
            self._pass_time(at)
        self._last_at = at
        if type(event) is Stopped:
            self._is_running = False
        elif (type(event) is Started or self._apply(event) or at == self._beat_at) and not self._is_starting:
            self._publish(at)

    def _publish_start(self) -> None:
        if self._is_starting and self._last_at is not None:
            self._is_starting = False
            self._publish(self._last_at)

    def _apply(self, event: Event) -> bool:
        """Whether the plan has the event's check or chain; if not, the event changes nothing."""
        # Types are compared, since isinstance and match take much longer to tell that a Struct is of another one.
        if type(event) is Observation:
            if event.check in self._plan.monitored and self._fits(event):
                self.ledger.judge(event)
                return True
            self._skip(event.check)
        elif type(event) is HeadRead:
            if event.chain_id in self._plan.chains:
                self._check_order(event)
                self.ledger.read_head(event.chain_id, event.reading)
                return True
            self._skip(Check("heads", event.chain_id))
        elif type(event) is Compared:
            if event.check in self._plan.monitored:
                self.ledger.set_gaps(event.check, event.gaps)
                return True
            self._skip(event.check)
        elif type(event) is Viewed:
            if any(rehearsal.hear(event) for rehearsal in self._rehearsals):
                self.has_views = True
                return True
            self._skip(event.row.check)
        return False

    def _skip(self, check: Check) -> None:
        self.skipped += 1
        self.first_skipped = self.first_skipped or check.name

    def finish(self, until_at: int | None) -> None:
        """Let time pass up to ``until_at``, or to the last event."""
        self._publish_start()
        end_at = self._last_at if until_at is None else until_at
        if self._is_running and end_at is not None:
            self._pass_time(end_at)
            self._publish(end_at)

    def _pass_time(self, at: int) -> None:
        """Publish the heartbeats that were due before this instant. The caller publishes at the instant itself."""
        if not self._is_running or self._last_at is None:
            raise LineError("only a start can stand here, at the beginning or after a stop")
        if at < self._last_at:
            before = format_instant(self._last_at)
            raise LineError(f"at is {format_instant(at)}, earlier than {before} before it; only a start may go back")
        expired_at = self._last_at + self._forgets_after_ms
        while self._beat_at < at:
            if expired_at < self._beat_at < at - self._forgets_after_ms:
                # Only the end of a silence of years is visible in the history: skip the heartbeats before that end.
                beats = (at - self._forgets_after_ms - self._beat_at) // self._heartbeat_ms
                self._beat_at += beats * self._heartbeat_ms
            self._publish(self._beat_at)

    def _publish(self, at: int) -> None:
        self.ledger.publish(at)
        self._beat_at = at + self._heartbeat_ms
        for rehearsal in self._rehearsals:
            self.messages += rehearsal.publish(at, self.ledger.published_rows)

    def _fits(self, seen: Observation) -> bool:
        """Whether a probe of this service can give this answer; the log may be of a time when the kind was another."""
        service = self._own_services.get(seen.check.service)
        return service is None or service.gives(seen.found)

    def _check_order(self, head: HeadRead) -> None:
        """LineError if this head was read before the chain's previous head of the same run (M8)."""
        before = self.ledger.heads(head.chain_id).newest_of_run
        if before is not None and head.reading.at < before.at:
            read_at, before_at = format_instant(head.reading.at), format_instant(before.at)
            raise LineError(f"readAt is {read_at}, earlier than {before_at} of the head before it on this chain")


def read_log(log: IO[bytes], warnings: list[str]) -> Iterator[tuple[int, Event]]:
    """The events of a log with their line numbers. A last line that a crash cut off becomes a warning."""
    for number, line in enumerate(log, 1):
        try:
            event = parse_line(line)
        except LineError as error:
            if not isinstance(error, NotJsonError) or line.endswith(b"\n"):
                raise LogError(f"line {number}: {error}") from None
            warnings.append(f"line {number}: cut off in the middle, left out")
        else:
            yield number, event


def run_log(events: Iterable[tuple[int, Event]], *replays: Replay, until_at: int | None = None) -> None:
    """Feed a log's events, up to ``until_at`` if given, to one or several replays. LogError if no event is fed."""
    is_empty = True
    for number, event in events:
        if until_at is not None and event.at > until_at:
            if is_empty:
                raise LogError(f"line {number}: the log begins at {format_instant(event.at)}, later than asked for")
            break
        is_empty = False
        try:
            for replay in replays:
                replay.feed(event)
        except LineError as error:
            raise LogError(f"line {number}: {error}") from None
    if is_empty:
        raise LogError("the log is empty: it has to begin with a start")
    for replay in replays:
        replay.finish(until_at)
