"""Every event goes through the journal, into the ledger and the observation log."""

import asyncio
from typing import Final

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.core.causes import code_of, describe_cause, describe_no_new_block, explain
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Found, Gaps, Observation, Row
from lookout.features.feature import Feature
from lookout.monitor.recorder import Recorder
from lookout.protocols.client.failure import OwnFault
from lookout.state.log import Compared, Event, HeadRead, Started, Stopped

log = get_logger()

STALL_MS: Final = 2_000  # the clock is read twice a second; a longer gap means that the event loop stood still
STEP_MS: Final = 5_000  # a jump of the wall clock by this much is a setting


class Timeline:
    """Gives each event its instant."""

    def __init__(self, clock: Clock) -> None:
        self.stepped = asyncio.Event()  # the clock was set, and not every source is being asked again yet
        self._clock = clock
        self._last_at = self._wall_at = self._elapsed_ms = 0
        self._stalled_ms = -1  # when the event loop last went on after it had stood still

    def start(self, last_at: int | None) -> int:
        """The instant of a start after a publication at ``last_at``."""
        self._wall_at, self._elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        self._last_at = self._wall_at
        if last_at is not None and self._wall_at < last_at <= self._wall_at + STEP_MS:
            # The last monitor's clock may have been a little ahead: generatedAt never goes back.
            self._last_at = last_at
        return self._last_at

    def detect_step(self) -> tuple[int, int] | None:
        """Read the clock. After a setting, time goes on from the new instant; return the expected and the new one."""
        now, elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        expected_at = self._wall_at + elapsed_ms - self._elapsed_ms
        if elapsed_ms - self._elapsed_ms > STALL_MS:
            self._stalled_ms = elapsed_ms
        self._wall_at, self._elapsed_ms = now, elapsed_ms
        if abs(now - expected_at) <= STEP_MS:
            return None
        self._last_at = now
        self.stepped.set()
        return expected_at, now

    def check_for_stall(self, since_ms: int) -> None:
        """OwnFault if the event loop stood still meanwhile: the process was stopped, or the machine too busy (M17)."""
        if self._stalled_ms >= since_ms or self._clock.elapsed_ms() - self._elapsed_ms > STALL_MS:
            raise OwnFault("time")

    def now(self, not_before: int = 0) -> int:
        """The instant of the last reading of the clock, never before an instant already used: events stay in order with
        a slowed clock."""
        self._last_at = max(self._last_at, self._wall_at, not_before)
        return self._last_at


class Journal:
    """Gives events their instants, lets the ledger judge them, and records them. A clock that was set is a stop and a
    start (M12): every method that needs the time checks for that first."""

    def __init__(self, ledger: Ledger, timeline: Timeline, recorder: Recorder | None) -> None:
        self.ledger = ledger
        self.timeline = timeline
        self.features: tuple[Feature, ...] = ()  # that hear of all events
        self.changed = asyncio.Event()  # there is something to publish
        self.causes: dict[Check, str] = {}  # why probed checks are not current
        self.silent_chains: set[int] = set()  # no RPC endpoint answers
        self._standing_chains: set[int] = set()  # reported
        self._recorder = recorder

    def start(self) -> None:
        self._start(self.timeline.start(self.ledger.published_at), None)

    def stop(self) -> None:
        self.record(Stopped(self.now()))

    def now(self) -> int:
        """The current instant; if the clock was set, a start is recorded first."""
        self.detect_clock_step()
        return self.timeline.now()

    def detect_clock_step(self) -> None:
        if step := self.timeline.detect_step():
            expected_at, at = step
            by_ms = at - expected_at
            log.warning("the clock was set", by_s=by_ms / 1000)
            self._start(at, expected_at, max(0, by_ms))

    def record_probe(self, check: Check, found: Found) -> Row:
        """A probe completed just now."""
        before = self.ledger.newest_row(check)
        seen = Observation(check, self.now(), found)
        row = self.ledger.judge(seen)
        self.changed.set()
        self.record(seen)
        for feature in self.features:
            feature.hear(check, found, seen.at)
        gaps = "; ".join(filter(None, (feature.describe_gaps(check) for feature in self.features)))
        head = self.ledger.head_for(check, seen.at)
        answers = check.chain_id not in self.silent_chains
        cause = explain(found, row, head, gaps, endpoints_answer=answers)
        cause_before = self.causes.pop(check, None)
        if cause is not None:
            self.causes[check] = cause
        is_new_cause = cause is not None and code_of(cause) != code_of(cause_before or "")
        has_changed = is_new_cause or (row.status, row.reason) != (before.status, before.reason)
        report = log.info if has_changed else log.debug
        why = {} if cause is None else {"cause": cause, "why": describe_cause(cause)}
        report("status", check=check.name, status=row.status, reason=row.reason, **why, was=before.status)
        return row

    def read_head(self, chain_id: int, answer: Reading) -> None:
        """A chain's endpoints agree on this answer. A head changes no row, and so needs no publication."""
        self.detect_clock_step()
        if self.timeline.stepped.is_set():
            # A clock set forward makes all other answers too old, and this one alone might be a lie. All endpoints are
            # asked again soon.
            return
        # Not before its reading, for the log: a slowed clock may go back by less than a step.
        at = self.timeline.now(not_before=answer.at)
        if self.ledger.heads(chain_id).is_new(answer):
            self.ledger.read_head(chain_id, answer)
            self.record(HeadRead(at, chain_id, answer))
            self._report_standstill(chain_id, at)

    def _report_standstill(self, chain_id: int, at: int) -> None:
        since_at = self.ledger.heads(chain_id).stands_since_at
        if since_at is not None and chain_id not in self._standing_chains:
            self._standing_chains.add(chain_id)
            cause = describe_no_new_block(since_at, at)
            log.warning("a chain does not move", chain=chain_id, cause=cause, why=describe_cause(cause))
        elif since_at is None and chain_id in self._standing_chains:
            self._standing_chains.discard(chain_id)
            log.info("the chain moves again", chain=chain_id)

    def set_gaps(self, check: Check, gaps: Gaps) -> None:
        """These are the gaps by which a row is judged from now on (S18, S20, S21)."""
        at = self.now()
        self.ledger.set_gaps(check, gaps)
        self.changed.set()
        self.record(Compared(at, check, gaps))

    def _start(self, at: int, last_at: int | None, step_ms: int = 0) -> None:
        """Begin; if the clock was set, ``last_at`` is the instant that it would have now."""
        self.ledger.start(at, last_at, step_ms)
        self._standing_chains.clear()
        self.changed.set()
        self.record(Started(at, step_ms))
        for check, gaps in self.ledger.gaps.items():  # a log may begin here
            self.record(Compared(at, check, gaps))
        for feature in self.features:
            feature.start(at, was_set=last_at is not None)

    def record(self, event: Event) -> None:
        if self._recorder is not None:
            self._recorder.record(event)
