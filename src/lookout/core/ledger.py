"""The middle: probe results, head readings and the passing of time in; the two documents out.

Everything the monitor knows is here, and all of it follows from the events alone, so that a recorded log replays to
the same documents and a stored state resumes where it stopped.
"""

from collections.abc import Iterable

from msgspec import Struct

from lookout.base.instants import move_back
from lookout.core.heads import Heads, Reading, Reference
from lookout.core.history import History, HistoryChanges, HistoryState, HistoryView
from lookout.core.model import Check, Observation, Report, Row, unmonitored, unobserved
from lookout.core.plan import Plan
from lookout.core.policy import Memory, judge, set_back


class CheckState(Struct, frozen=True):
    """A monitored check as it is stored: what its judgement remembers, and its row."""

    memory: Memory
    row: Row


class State(Struct, frozen=True):
    """All that has to survive a restart or a takeover (M7)."""

    last_answer_at: int | None
    checks: tuple[CheckState, ...]
    heads: dict[int, tuple[Reading, ...]]
    history: HistoryState | None


class Changes(Struct, frozen=True):
    """What of the stored state is no longer as it was. The first of a ledger are ``whole``: they are all there is."""

    whole: bool
    last_answer_at: int | None
    checks: tuple[CheckState, ...]
    heads: dict[int, dict[int, tuple[Reading, ...]]]
    """Each chain's by their parts; empty ones are to be forgotten."""
    history: HistoryChanges


class Ledger:
    """What the monitor knows, under one plan."""

    def __init__(self, plan: Plan, state: State | None = None) -> None:
        self._history = History(plan.span, None if state is None else state.history)
        self._last_answer_at = None if state is None else state.last_answer_at
        self._rows: dict[Check, Row] = {}  # as published last
        self._heads = {
            chain_id: Heads(block_time, () if state is None else state.heads.get(chain_id, ()))
            for chain_id, block_time in plan.chains.items()
        }
        self._left_heads: dict[int, Heads] = {}  # of chains that left; until they are forgotten in the store, too
        self._follow(plan, () if state is None else state.checks)
        self._gone = [check for check in self._history.checks if check not in self._changed]
        # Since the last call of changes(); at first, everything.
        self._whole = True
        self._new_checks = set(self._memories)
        self._new_heads = set(self._heads)

    def replan(self, plan: Plan) -> None:
        """Go on under another plan. What is watched under both is as it was; what left leaves with the next
        publication, and only its buckets are kept (H15). ValueError if the buckets are to be of another length."""
        left = (*self._gone, *self._checks)
        memories = set(self._memories)
        if plan.span != self._span:
            self._history = History(plan.span, self._history.state())
        self._follow_heads(plan)
        self._follow(plan, self._judged())
        self._gone = [check for check in left if check not in self._changed and check in self._history.checks]
        self._new_checks |= memories ^ set(self._memories)

    def _follow_heads(self, plan: Plan) -> None:
        known = self._left_heads | self._heads
        self._new_heads |= self._left_heads.keys() & plan.chains.keys()  # who is back: what is stored of it goes
        self._left_heads = {chain_id: heads for chain_id, heads in known.items() if chain_id not in plan.chains}
        for heads in self._left_heads.values():
            heads.clear()
        self._heads = {}
        for chain_id, block_time in plan.chains.items():
            self._heads[chain_id] = known.get(chain_id, Heads(block_time))
            self._heads[chain_id].block_time = block_time

    def _follow(self, plan: Plan, carried: Iterable[CheckState]) -> None:
        judged = {entry.row.check: entry for entry in carried}
        self._limits = plan.limits
        self._span = plan.span
        self._checks = plan.checks()
        self._monitored = plan.monitored
        self._confirmations = plan.confirmations
        self._memories: dict[Check, Memory] = {}
        self._changed: dict[Check, Row] = {}  # since the last publication; before the first, all of them
        for check in self._checks:
            if check not in plan.monitored:
                self._changed[check] = unmonitored(check)
            elif check in judged:
                self._memories[check], self._changed[check] = judged[check].memory, judged[check].row
            else:
                self._memories[check], self._changed[check] = Memory(), unobserved(check)

    @property
    def published_at(self) -> int | None:
        return self._history.published_at

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the last publication, in the report's order (R12)."""
        return tuple(self._rows[check] for check in self._checks)

    def row(self, check: Check) -> Row:
        """A check's newest row, published or not yet."""
        return self._changed.get(check) or self._rows[check]

    def watches(self, check: Check) -> bool:
        return check in self._monitored

    def follows(self, chain_id: int) -> bool:
        return chain_id in self._heads

    def start(self, at: int, last_at: int | None = None) -> None:
        """The monitor begins to run; ``last_at`` is the last instant it knew of before, if not that of its last
        publication. If the clock was set back meanwhile, all that was waiting goes on waiting from where it was, or
        a head would stay fresh and a trailing node be excused until the clock has caught up."""
        last_at = self.published_at if last_at is None else last_at
        if self._last_answer_at is None:
            self._last_answer_at = at
        by_ms = 0 if last_at is None else max(0, last_at - at)
        for heads in self._heads.values():
            heads.start(by_ms)
        if by_ms == 0:
            return
        self._last_answer_at = move_back(self._last_answer_at, by_ms)
        self._memories = {check: set_back(memory, by_ms) for check, memory in self._memories.items()}
        self._new_checks.update(self._memories)
        self._new_heads.update(self._heads)

    def heads(self, chain_id: int) -> Heads:
        """A followed chain's heads of the last hour; only ``read_head`` changes them."""
        return self._heads[chain_id]

    def read_head(self, chain_id: int, reading: Reading) -> None:
        """The endpoints of a chain agreed on a head."""
        self._heads[chain_id].read(reading)
        self._new_heads.add(chain_id)
        self.hear(reading.at)

    def hear(self, at: int) -> None:
        """Somebody answered, so that the monitor is not blind (M13)."""
        self._last_answer_at = at if self._last_answer_at is None else max(self._last_answer_at, at)

    def observe(self, seen: Observation) -> Row:
        """A probe of a monitored check completed; its new row."""
        check = seen.check
        blind = self._limits.blind_after_ms > 0 and self._is_blind(seen.at)
        reference = self._reference(check) if check in self._confirmations else None
        memory, row = judge(self._memories[check], seen, reference, self._limits, blind=blind)
        if row.reason != "unreachable":
            self.hear(seen.at)
        self._memories[check] = memory
        self._changed[check] = row
        self._new_checks.add(check)
        return row

    def publish(self, at: int) -> None:
        """Make what is known now the documents' content."""
        self._history.publish(at, self._changed.values(), self._gone)
        if self._changed:
            self._rows.update(self._changed)
            self._changed.clear()
            self._gone = []

    def report(self) -> Report:
        """What the live report says as of the last publication."""
        if self.published_at is None or not self._rows:
            raise ValueError("nothing has been published yet")
        return Report(self.published_at, self.rows)

    def view(self) -> HistoryView:
        """What the history says as of the last publication."""
        if not self._rows:
            raise ValueError("nothing has been published yet")
        return self._history.view(self._checks)

    def state(self) -> State:
        heads = {chain_id: heads.readings for chain_id, heads in self._heads.items() if heads.readings}
        return State(self._last_answer_at, self._judged(), heads, self._history.state())

    def changes(self) -> Changes:
        """What is new in the state since the last call, as of the last publication."""
        history = self._history.changes()
        checks = tuple(map(self._stored, self._new_checks))
        heads = {chain_id: self._heads[chain_id].changes() for chain_id in self._new_heads if chain_id in self._heads}
        heads |= {chain_id: left.changes() for chain_id, left in self._left_heads.items()}
        changes = Changes(self._whole, self._last_answer_at, checks, heads, history)
        self._whole = False
        self._new_checks.clear()
        self._new_heads.clear()
        self._left_heads.clear()
        return changes

    def _judged(self) -> tuple[CheckState, ...]:
        return tuple(CheckState(memory, self.row(check)) for check, memory in self._memories.items())

    def _stored(self, check: Check) -> CheckState:
        """As of the last publication. Who left begins anew if it returns."""
        if check in self._memories:
            return CheckState(self._memories[check], self._rows[check])
        return CheckState(Memory(), unobserved(check))

    def _reference(self, check: Check) -> Reference | None:
        heads = None if check.chain_id is None else self._heads.get(check.chain_id)
        return None if heads is None else heads.reference(self._confirmations[check])

    def _is_blind(self, at: int) -> bool:
        """Whether nothing at all has answered for so long that a failure is the monitor's own (M13)."""
        return self._last_answer_at is not None and at - self._last_answer_at >= self._limits.blind_after_ms
