"""The monitor's knowledge: probe results, heads, comparisons of lists and time in; the two documents out.

All of it follows from the events alone, so that a recorded log replays to the same documents, and a stored state
resumes where it stopped.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lookout.base.instants import move
from lookout.core.heads import ChainProgress, Heads, Reading, Reference, find_final_block
from lookout.core.history import History, HistoryState, HistoryView
from lookout.core.model import NO_GAPS, Check, Gaps, Observation, Report, Row, unmonitored, unobserved
from lookout.core.plan import Plan
from lookout.core.policy import Memory, judge, move_to, set_clock, split_gaps


class CheckState(Struct, frozen=True, gc=False):
    """The stored state of a monitored check: the memory of its judgement, and its row."""

    memory: Memory
    row: Row


class State(Struct, frozen=True):
    """The state that survives a restart or a takeover (M7). Unchanged parts of two states of a ledger are the same
    objects, so that comparing states is cheap."""

    last_answer_at: int | None
    checks: Mapping[Check, CheckState]
    heads: Mapping[int, tuple[Reading, ...]]
    history: HistoryState | None


Combine = Callable[[Row, Gaps, int], Row]
"""The row to publish at an instant, of our own row without its gaps, and of these gaps."""

_NO_STATE: Final = State(None, {}, {}, None)


class Ledger:
    """The monitor's knowledge under one plan."""

    def __init__(self, plan: Plan, state: State | None = None) -> None:
        state = state or _NO_STATE
        self.combine: Combine | None = None  # of monitored rows, with what other places see
        self._history = History(plan.span, state.history)
        self._last_answer_at = state.last_answer_at
        self._rows: dict[Check, Row] = {}  # as published last
        self._heads = {
            chain_id: Heads(block_time, state.heads.get(chain_id, ())) for chain_id, block_time in plan.chains.items()
        }
        self._plan = plan
        self._checks = plan.checks()
        self._judged: dict[Check, CheckState] = {}  # monitored checks, with the newest row, published or not
        self._changed: dict[Check, Row] = {}  # since the last publication; before the first, all of them
        for check in self._checks:
            if check not in plan.monitored:
                self._changed[check] = unmonitored(check)
                continue
            before = state.checks.get(check) or CheckState(Memory(), unobserved(check))
            memory = move_to(before.memory, plan.addresses.get(check, ""))
            self._judged[check] = before if memory is before.memory else CheckState(memory, before.row)
            self._changed[check] = before.row
        # Removed checks leave with the next publication. Their buckets are kept (H15), and when they last answered.
        self._removed = [check for check in self._history.checks if check not in self._changed]
        others = (known for check, known in state.checks.items() if check not in self._judged)
        self._of_removed = {known.row.check: left for known in others if (left := _leave(known))}

    @property
    def published_at(self) -> int | None:
        return self._history.published_at

    @property
    def published_rows(self) -> tuple[Row, ...]:
        """The rows of the last publication, in the report's order (R12)."""
        return tuple(self._rows[check] for check in self._checks)

    def newest_row(self, check: Check) -> Row:
        """Our own row, published or not."""
        return self._judged[check].row if check in self._judged else unmonitored(check)

    def failures(self, check: Check) -> int:
        return self._judged[check].memory.failures

    def start(self, at: int, last_at: int | None = None, step_ms: int = 0) -> None:
        """The monitor begins to run; ``last_at`` is the last instant before, if not that of the last publication. If
        the clock was set back meanwhile, or forward by ``step_ms`` while the monitor ran, ages and waits stay as they
        were: no head stays fresh, and a node that trails gets neither more nor less time."""
        last_at = self.published_at if last_at is None else last_at
        if self._last_answer_at is None:
            self._last_answer_at = at
        by_ms = step_ms or (0 if last_at is None else min(0, at - last_at))
        for heads in self._heads.values():
            heads.start(by_ms)
        if by_ms == 0:
            return
        self._last_answer_at = move(self._last_answer_at, by_ms)
        self._judged = {
            check: CheckState(set_clock(judged.memory, by_ms), judged.row) for check, judged in self._judged.items()
        }

    def heads(self, chain_id: int) -> Heads:
        return self._heads[chain_id]

    def head_for(self, check: Check, at: int) -> Reading | None:
        if check.chain_id is None or check.chain_id not in self._heads:
            return None
        return self.progress_of(check.chain_id, at).head

    def progress(self, at: int) -> dict[int, ChainProgress]:
        return {chain_id: self.progress_of(chain_id, at) for chain_id in self._heads}

    def progress_of(self, chain_id: int, at: int) -> ChainProgress:
        return self._heads[chain_id].progress(at - self._plan.limits.head_max_age_ms)

    def final_block(self, check: Check, at: int) -> int | None:
        """The last block of an indexer's chain that is final, however far the indexer is; None without a head (S17)."""
        if check.chain_id is None:
            return None
        head, pace, _ = self.progress_of(check.chain_id, at)
        return None if head is None else find_final_block(head.height, pace, self._plan.confirmations[check])

    def read_head(self, chain_id: int, reading: Reading) -> None:
        self._heads[chain_id].read(reading)
        self.hear(reading.at)

    def hear(self, at: int) -> None:
        """A third party answered, so the monitor is not blind (M13)."""
        if self._last_answer_at is None or at > self._last_answer_at:
            self._last_answer_at = at

    def judge(self, seen: Observation) -> Row:
        check = seen.check
        memory, row = judge(
            self._judged[check].memory, seen, self._reference(check), self._plan.limits, blind=self._is_blind(seen.at)
        )
        if not row.has_failed:
            self.hear(seen.at)
        self._judged[check] = CheckState(memory, row)
        self._changed[check] = row
        return row

    @property
    def gaps(self) -> dict[Check, Gaps]:
        """The gaps in indexers' lists, and of ppoi nodes."""
        known = ((check, judged.memory.gaps) for check, judged in self._judged.items())
        return {check: gaps for check, gaps in known if gaps != NO_GAPS}

    def set_gaps(self, check: Check, gaps: Gaps) -> None:
        """Set the gaps of a monitored check; its row changes with its next judgement (S18)."""
        judged = self._judged[check]
        self._judged[check] = CheckState(replace(judged.memory, gaps=gaps), judged.row)

    def publish(self, at: int) -> None:
        if self.combine is not None:
            self._changed = self._combine_all(self.combine, at)
        self._history.publish(at, self._changed.values(), self._removed)
        if self._changed:
            self._rows.update(self._changed)
            self._changed.clear()
            self._removed = []

    def _combine_all(self, combine: Combine, at: int) -> dict[Check, Row]:
        """The rows that differ from those published last: time alone changes them, too."""
        combined = {
            check: combine(*split_gaps(judged.row, judged.memory.gaps), at) for check, judged in self._judged.items()
        }
        return {check: row for check, row in {**self._changed, **combined}.items() if row != self._rows.get(check)}

    def report(self) -> Report:
        if self.published_at is None or not self._rows:
            raise ValueError("nothing has been published yet")
        return Report(self.published_at, self.published_rows)

    def view(self) -> HistoryView:
        if not self._rows:
            raise ValueError("nothing has been published yet")
        return self._history.view(self._checks)

    def state(self) -> State:
        heads = {chain_id: heads.readings for chain_id, heads in self._heads.items() if heads.readings}
        left = {check: state for check, state in self._of_removed.items() if check in self._history.checks}
        return State(self._last_answer_at, {**left, **self._judged}, heads, self._history.state())

    def _reference(self, check: Check) -> Reference | None:
        confirmations = self._plan.confirmations.get(check)
        if confirmations is None or check.chain_id not in self._heads:
            return None
        return self._heads[check.chain_id].reference(confirmations)

    def _is_blind(self, at: int) -> bool:
        """Whether no third party has answered for so long that failures are the monitor's own (M13)."""
        after_ms = self._plan.limits.blind_after_ms
        return after_ms > 0 and self._last_answer_at is not None and at - self._last_answer_at >= after_ms


def _leave(state: CheckState) -> CheckState | None:
    """What is kept of a check that left the plan, in case it returns: when it last answered."""
    last_success_at, check = state.memory.last_success_at, state.row.check
    if last_success_at is None:
        return None
    return CheckState(
        Memory(last_success_at=last_success_at), replace(unobserved(check), last_success_at=last_success_at)
    )
