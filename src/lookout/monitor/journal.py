"""Every event goes through the journal, into the ledger and the observation log."""

import asyncio
from collections.abc import Mapping
from typing import Final

from msgspec import UNSET
from msgspec.structs import asdict

from lookout.base.clock import Clock
from lookout.base.logger import get_logger
from lookout.core.causes import STANDS_AFTER_MS, code_of, describe_cause, explain
from lookout.core.coverage import Coverage
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.links import Links
from lookout.core.model import NO_GAPS, Check, Found, Observation, Row
from lookout.core.services import PPOI
from lookout.monitor.alerts import Alerts
from lookout.monitor.lists import Lists, Subjects
from lookout.monitor.recorder import Recorder
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

    def has_stalled_since(self, since_ms: int) -> bool:
        """Whether the event loop stood still meanwhile: the process was stopped, or the machine too busy."""
        return self._stalled_ms >= since_ms or self._clock.elapsed_ms() - self._elapsed_ms > STALL_MS

    def now(self, not_before: int = 0) -> int:
        """The instant of the last reading of the clock, never before an instant already used: events stay in order with
        a slowed clock."""
        self._last_at = max(self._last_at, self._wall_at, not_before)
        return self._last_at


class Journal:
    """Gives events their instants, lets the ledger judge them, and records them. A clock that was set is a stop and a
    start (M12): every method that needs the time checks for that first."""

    def __init__(
        self,
        ledger: Ledger,
        timeline: Timeline,
        alerts: Alerts,
        recorder: Recorder | None,
        lists: Lists,
        compared_with: Mapping[Check, Check],
    ) -> None:
        """``compared_with`` maps a ppoi node's check to the check of the indexer that it is compared with (S21)."""
        self.ledger = ledger
        self.timeline = timeline
        self.alerts = alerts
        self.changed = asyncio.Event()  # there is something to publish
        self.causes: dict[Check, str] = {}  # why probed checks are not current
        self._standing: dict[Check, tuple[int, int]] = {}  # positions, and since when
        self.silent_chains: set[int] = set()  # no RPC endpoint answers
        self.lists = lists
        self._compared_with = compared_with
        self._recorder = recorder

    def start(self) -> None:
        self.alerts.start()
        self._start(self.timeline.start(self.ledger.published_at), None)

    def stop(self) -> None:
        self._record(Stopped(self.now()))

    def now(self) -> int:
        """The current instant; if the clock was set, a start is recorded first."""
        self.detect_clock_step()
        return self.timeline.now()

    def detect_clock_step(self) -> None:
        if step := self.timeline.detect_step():
            expected_at, at = step
            by_ms = at - expected_at
            log.warning("the clock was set", by_s=by_ms / 1000)
            self.lists.set_clock()
            self._start(at, expected_at, max(0, by_ms))

    def observe(self, check: Check, found: Found) -> Row:
        """A probe completed just now."""
        before = self.ledger.newest_row(check)
        seen = Observation(check, self.now(), found)
        row = self.ledger.judge(seen)
        self.changed.set()
        self._record(seen)
        self.hear_position(check, found)
        self._hear_pair(check, found, seen.at)
        gaps, head = self.lists.describe_gaps(check), self.ledger.head_for(check, seen.at)
        answers = check.chain_id not in self.silent_chains
        since_at = self._follow_position(row)
        cause = explain(found, row, head, gaps, endpoints_answer=answers, still_since_at=since_at)
        cause_before = self.causes.pop(check, None)
        if cause is not None:
            self.causes[check] = cause
        is_new_cause = cause is not None and code_of(cause) != code_of(cause_before or "")
        has_changed = is_new_cause or (row.status, row.reason) != (before.status, before.reason)
        report = log.info if has_changed else log.debug
        why = {} if cause is None else {"cause": cause, "why": describe_cause(cause)}
        report("status", check=check.name, status=row.status, reason=row.reason, **why, was=before.status)
        return row

    def _follow_position(self, row: Row) -> int | None:
        """Since when a position that is behind has not moved, if evaluations a minute apart found the same one."""
        position, at = row.metrics.position, row.observed_at
        if position is UNSET or at is None:
            return None
        if row.reason != "behind":  # a node that has taken in everything stands still, however long
            self._standing.pop(row.check, None)
            return None
        last, since_at = self._standing.get(row.check, (position, at))
        if last != position:
            since_at = at
        self._standing[row.check] = position, since_at
        return since_at if at - since_at >= STANDS_AFTER_MS else None

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
            self._record(HeadRead(at, chain_id, answer))

    def set_read_lists(self, subjects: Subjects) -> None:
        """These lists are compared from now on; findings about other lists are dropped."""
        self.lists.follow(subjects, self.now())
        for check in {*self.ledger.gaps, *subjects.coverages, *subjects.links, *subjects.nodes}:
            self._update_gaps(check)

    def hear_position(self, check: Check, found: Found) -> None:
        """Take the position, or its absence, from a probe of an indexer."""
        self.lists.hear(check, found)
        if check in self.lists:
            self._update_gaps(check)

    def final_entry_block(self, check: Check) -> int | None:
        """The last block up to which an indexer's list is complete and final (S17); None without a head, or if the
        indexer does not say how far it is."""
        at = self.now()
        if self.timeline.stepped.is_set():  # every source is asked again soon
            return None
        final, position = self.ledger.final_block(check, at), self.lists.position(check)
        return None if final is None or position is None else min(final, position)

    def _hear_pair(self, check: Check, found: Found, at: int) -> None:
        """A ppoi node, or the indexer that it is compared with, was probed (S21)."""
        for node, indexer in self._compared_with.items():
            if check in (node, indexer):
                rows = self.ledger.newest_row(node), self.ledger.newest_row(indexer)
                self.lists.hear_node(node, found, at, are_current=all(_is_current(row, at) for row in rows))
                self._update_gaps(node)

    def end_look(self, check: Check, coverage: Coverage) -> None:
        """Take the result of a comparison of a list."""
        was_unusable = self.lists.coverage(check).unusable
        self.lists.end_look(check, coverage)
        if coverage.unusable and not was_unusable:
            log.warning("the list cannot be compared with the chain", check=check.name, why=coverage.unusable)
        self._update_gaps(check)

    def set_links(self, check: Check, links: Links) -> None:
        """Take the result of a check of a list's running hash."""
        before = self.lists.links(check)
        self.lists.set_links(check, links)
        if links.unsupported and not before.unsupported:
            log.warning("the running hash of the list cannot be checked", check=check.name, why=links.unsupported)
        self._update_gaps(check)

    def _update_gaps(self, check: Check) -> None:
        """Give the ledger the gaps by which a row is judged, if they changed (S18, S20, S21)."""
        at, gaps = self.now(), self.lists.gaps(check)
        before = self.ledger.gaps.get(check, NO_GAPS)
        if gaps == before:
            return
        self.ledger.set_gaps(check, gaps)
        self.changed.set()
        self._record(Compared(at, check, gaps))
        where, is_node = self.lists.describe_gaps(check), check.service == PPOI
        if where:
            what = "the node and the list differ" if is_node else "the list is not the chain's"
            log.warning(what, check=check.name, found=where)
        else:
            what = "the node and the list agree again" if is_node else "the list matches the chain again"
            log.info(what, check=check.name, **{name: count for name, count in asdict(before).items() if count})

    def _start(self, at: int, last_at: int | None, step_ms: int = 0) -> None:
        self.ledger.start(at, last_at, step_ms)
        self.alerts.restart()
        self.lists.restart(at)
        self._standing.clear()
        self.changed.set()
        self._record_start(at, step_ms)

    def _record_start(self, at: int, step_ms: int = 0) -> None:
        """Record a start with the known gaps: a log may begin here."""
        self._record(Started(at, step_ms))
        for check, gaps in self.ledger.gaps.items():
            self._record(Compared(at, check, gaps))

    def _record(self, event: Event) -> None:
        if self._recorder is not None:
            self._recorder.record(event)


def _is_current(row: Row, at: int) -> bool:
    """Whether a row would be current without the list's known gaps (S21)."""
    is_current = row.status == "current" or row.reason in ("incomplete", "inconsistent")
    return is_current and not row.has_expired(at)
