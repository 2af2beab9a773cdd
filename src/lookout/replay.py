"""A recorded observation log run through the rules: the same events, the same documents."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from lookout.core.instants import format_instant
from lookout.core.ledger import Ledger, State
from lookout.core.log import Event, HeadRead, LineError, NotJsonError, Started, Stopped, parse_event
from lookout.core.model import Observation
from lookout.core.plan import Plan

# No line of the format comes near it: a longer one is not a log, and reading on would take memory without end.
LONGEST_LINE: Final = 65_536


class LogError(Exception):
    """The log cannot be replayed; the text names the line and the reason."""


class Replay:
    """A monitor's life as a log tells it: every event is published at its own instant, heartbeats between them."""

    def __init__(self, plan: Plan, state: State | None = None, *, running: bool = False) -> None:
        self.ledger = Ledger(plan, state)
        self.running = running
        self.skipped = 0  # events of checks and chains that the plan does not have
        self.first_skipped = ""
        self._heartbeat_ms = plan.limits.heartbeat_ms
        self._last_at = self.ledger.published_at or 0
        self._beat_at = self._last_at + self._heartbeat_ms

    def feed(self, event: Event) -> None:
        """Apply one event; LineError if it cannot follow the ones before."""
        at = event.at
        if isinstance(event, Started):
            # While running this is a crash: nothing was published after the event before it.
            self.ledger.start(at)
            self.running = True
        elif not self.running or not self._last_at <= at <= self._beat_at:
            self._pass_time(at)
        self._last_at = at
        match event:
            case Observation():
                if not self.ledger.watches(event.check):
                    self._skip(*event.check)
                    return
                self.ledger.observe(event)
            case HeadRead():
                if not self.ledger.follows(event.chain_id):
                    self._skip("heads", event.chain_id)
                    return
                self.ledger.read_head(event.chain_id, event.reading)
            case Stopped():
                self.running = False
                return
        self._publish(at)

    def finish(self, until_at: int | None) -> None:
        """Let time pass up to ``until_at``, or to the last event."""
        if self.running:
            last_at = self._last_at if until_at is None else until_at
            self._pass_time(last_at)
            self._publish(last_at)

    def _pass_time(self, at: int) -> None:
        """Publish the heartbeats that fell due before this instant; at the instant itself something else is due."""
        if not self.running:
            raise LineError("only a start can stand here, at the beginning or after a stop")
        if at < self._last_at:
            before = format_instant(self._last_at)
            raise LineError(f"at is {format_instant(at)}, earlier than {before} before it; only a start may go back")
        while self._beat_at < at:
            self._publish(self._beat_at)

    def _publish(self, at: int) -> None:
        self.ledger.publish(at)
        self._beat_at = at + self._heartbeat_ms

    def _skip(self, name: str, chain_id: int | None) -> None:
        self.skipped += 1
        if self.skipped == 1:
            self.first_skipped = name if chain_id is None else f"{name} on chain {chain_id}"


def read_log(lines: BinaryIO, warnings: list[str]) -> Iterator[tuple[int, Event]]:
    """The events of a log with their lines' numbers. A last line that a crash cut off becomes a warning."""
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise LogError(f"line {number}: longer than {LONGEST_LINE} bytes")
        try:
            event = parse_event(line)
        except NotJsonError as error:
            if line.endswith(b"\n"):
                raise LogError(f"line {number}: {error}") from None
            warnings.append(f"line {number}: cut off in the middle, left out")
            return
        except LineError as error:
            raise LogError(f"line {number}: {error}") from None
        yield number, event


def run_log(events: Iterable[tuple[int, Event]], replay: Replay, until_at: int | None = None) -> None:
    """Feed a log's events up to ``until_at``, or all of them; LogError if there is nothing to tell."""
    for number, event in events:
        if until_at is not None and event.at > until_at:
            if replay.ledger.published_at is None:
                raise LogError(f"line {number}: the log begins at {format_instant(event.at)}, later than asked for")
            break
        try:
            replay.feed(event)
        except LineError as error:
            raise LogError(f"line {number}: {error}") from None
    if replay.ledger.published_at is None:
        raise LogError("the log is empty: it has to begin with a start")
    replay.finish(until_at)
