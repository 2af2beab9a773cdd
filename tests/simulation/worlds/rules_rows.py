"""Rules about rows: each follows from what its probes found, and nothing is shown that was not seen."""

from collections import defaultdict
from math import inf
from typing import Any, Final, NamedTuple

from lookout.core.model import Blocks, Check, Found, Indexes, Members, Peers, Row
from lookout.demo.sim.layout import ChainLayout
from tests.oracles.documents import assert_report_is_right
from tests.oracles.rows import NO_PAST, Past, Probe, between, compare_blocks, follow, shown
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.script import ORIGIN_AT

_SLACK_MS: Final = 6_000  # clocks are slewed, and set by less than what counts as being set


class _Line(NamedTuple):
    """What a check's probes may have come to, in one line of memory."""

    pasts: frozenset[Past] = NO_PAST
    trails_in: int | None = None  # the life in which it began to


class RowsFollow(Rule):
    """A row is what its probe found, by the contract's sentences. An indexer is compared with a head of the last
    minute, at a pace that the chain has or had."""

    clauses = (
        *("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S15"),
        *("R5", "R6", "R7", "R11", "R13", "M7"),
    )

    def agreed(self, event: s.Agreed) -> None:
        age_ms = max(0, event.life.clock.now() - event.reading.at)
        event.life.memory["head", event.chain_id] = self.scene.ms - age_ms, event.reading.height

    def judged(self, event: s.Judged) -> None:
        life, (now_ms, serial, _, seen, row) = event.life, event.seen
        line: _Line = life.memory.get(row.check) or _Line()
        same_life = line.trails_in in (None, serial)
        less_ms = _SLACK_MS if same_life else inf
        more_ms = _SLACK_MS if same_life and not self.scene.clocks_are_set else inf
        probe = Probe(seen.found, seen.at, now_ms, less_ms, more_ms)
        if isinstance(seen.found, Blocks):
            probe = self._compare(probe, seen.found.position, event)
        possible = list(follow(line.pasts, probe, life.plan.limits))
        pasts = frozenset(past for past, expected in possible if expected == shown(row))
        if not pasts:
            self.broken(f"{row} is none of {[expected for _, expected in possible]} after {seen.found}")
        trails = any(past.trailing for past in pasts)
        trails_in = None if not trails else serial if line.trails_in is None else line.trails_in
        life.memory[row.check] = _Line(pasts, trails_in)
        ahead_ms = seen.at - life.clock.now()
        if not 0 <= ahead_ms <= 5_000 * (1 + self.scene.small_steps_back):
            self.broken(f"{row.check} was observed {ahead_ms} ms from now")

    def _compare(self, probe: Probe, position: int, event: s.Judged) -> Probe:
        """The probe with all that the position may have come to."""
        life, chain_id = event.life, event.seen.row.check.chain_id
        chain = next(each for each in self.scene.script.layout if each.chain_id == chain_id)
        read_ms, height = life.memory.get(("head", chain_id), (None, 0))
        if read_ms is None:
            return probe
        limits, head = life.plan.limits, max(0, height - chain.confirmations)
        best, worst = (
            compare_blocks(max(0, head - position), block_ms, limits) for block_ms in self._block_times(chain)
        )
        age_ms, is_set = event.seen.ms - read_ms, self.scene.clocks_are_set
        compared = between(best, worst) if is_set or age_ms <= limits.head_max_age_ms + _SLACK_MS else ()
        if is_set or age_ms >= limits.head_max_age_ms - _SLACK_MS:
            compared += ("incomparable",)
        return probe._replace(compared=compared, head=head)

    def _block_times(self, chain: ChainLayout) -> tuple[float, float]:
        """The shortest and the longest block time that an honest monitor may have measured; endpoints may lie, two at a
        time, and then it may be anything."""
        lying = self.scene.lies(chain.chain_id)
        halted = [e for e in self.scene.sim.episodes if e.subject == f"chain/{chain.chain_id}"]
        if len(lying) > (1 if chain.endpoints > 2 else 0) or halted or self.scene.clocks_are_set:
            return 0, 1e15
        return 0.9 * chain.block_ms, 1.1 * chain.block_ms


class NothingUnseen(Rule):
    """Every row in the store is one that was judged, of a truth that was so; a green one of a green one."""

    clauses = ("R5", "S3", "S7", "S10", "S11", "M14", "H15")

    def __init__(self) -> None:
        self._rows: dict[tuple[Check, int], list[Row]] = defaultdict(list)  # who takes over may be at the same instant
        self._answered_ms: dict[tuple[int, Check], int] = {}

    def answered(self, event: s.Answered) -> None:
        for check in event.checks:
            self._answered_ms[event.life.serial, check] = self.scene.ms

    def judged(self, event: s.Judged) -> None:
        row, found = event.seen.row, event.seen.observation.found
        self._rows[row.check, event.seen.observation.at].append(row)
        # What was true when it answered: a position may wait for a head to be compared with.
        answered_ms = self._answered_ms.get((event.life.serial, row.check), event.seen.ms)
        truth = self.scene.sim.truth(row.check.service, row.check.chain_id, ORIGIN_AT + answered_ms)
        if row.status == "current" and not self._is_green(found, truth, event.seen):
            self.broken(f"{row.check} is shown as current, though {truth}")

    def written(self, event: s.Written) -> None:
        rows = event.publication.rows
        for row in rows:
            if row.observed_at is None:
                if row.status not in ("unknown", "unmonitored") or row.expires_at is not None:
                    self.broken(f"{row.check} was never observed, and is {row.status}")
            elif row not in self._rows.get((row.check, row.observed_at), ()):
                self.broken(f"{row} was never judged")

    @staticmethod
    def _is_green(found: Found, truth: Any, seen: s.Seen) -> bool:
        match found:
            case Peers():
                return bool(truth.answering and truth.peers)
            case Members():
                return bool(truth.answering and truth.responding == truth.monitored)
            case Indexes():
                trailing_ms = 0 if truth.trailing_since_at is None else ORIGIN_AT + seen.ms - truth.trailing_since_at
                # Trailing is noticed with the first probe that sees it, which may have been long after it began.
                return (
                    bool(truth.answering and (truth.position, truth.head) == tuple(_pair(found))) and trailing_ms >= 0
                )
            case Blocks(position):
                return bool(truth.answering and truth.position == position)
            case _:
                return False


def _pair(found: Indexes) -> tuple[int, int]:
    return found.position, found.head


class ReportIsRight(Rule):
    """Every report that is stored keeps the contract's form, and is what was published."""

    clauses = ("R1", "R2", "R3", "R4", "R7", "R8", "R9", "R10", "R12", "R13")

    def __init__(self) -> None:
        self._times = 0

    def written(self, event: s.Written) -> None:
        self._times += 1
        document = event.documents["live"]
        if document.generated_at != event.publication.at:
            self.broken(f"the report is of {document.generated_at}, not of {event.publication.at}")
        if self._times % 7 == 1:
            try:
                report = assert_report_is_right(document)
            except AssertionError as error:
                self.broken(str(error))
            told = [(row["service"], row["chainId"], row["status"], row["reason"]) for row in report["checks"]]
            if told != [(*row.check, row.status, row.reason) for row in event.publication.rows]:
                self.broken("the report is not what was published")


class LastSuccessIsKept(Rule):
    """Over restarts and takeovers a check's last success is never forgotten, nor an earlier one."""

    clauses = ("M7", "R6")

    def __init__(self) -> None:
        self._succeeded_ms: dict[tuple[Check, int], int] = {}
        self._stored_ms: dict[Check, int] = {}
        self._made_ms = -1  # when the stored publication was
        self._left_ms: dict[Check, int] = {}
        self._went_back_ms = -1

    def reloaded(self, event: s.Reloaded) -> None:
        """What left begins anew when it returns."""
        self._left_ms.update(dict.fromkeys(event.before.monitored - event.life.plan.monitored, self.scene.ms))

    def resumed(self, event: s.Resumed) -> None:
        """A monitor may begin without a check that is stored, and get it back before it could store that."""
        self._left_ms.update(dict.fromkeys(self._stored_ms.keys() - event.life.plan.monitored, self.scene.ms))

    def judged(self, event: s.Judged) -> None:
        row = event.seen.row
        if row.last_success_at is not None and row.last_success_at == row.observed_at:
            self._succeeded_ms[row.check, row.last_success_at] = event.seen.ms

    def written(self, event: s.Written) -> None:
        if self._went_back_ms != self.scene.went_back_ms:
            self._went_back_ms = self.scene.went_back_ms
            self._stored_ms.clear()
        stored: dict[Check, int] = defaultdict(int)
        for row in event.publication.rows:
            if row.status == "unmonitored":
                continue
            has_left = self._left_ms.get(row.check, -1) >= self._made_ms
            before_ms = None if has_left else self._stored_ms.get(row.check)
            now_ms = None if row.last_success_at is None else self._succeeded_ms.get((row.check, row.last_success_at))
            if row.last_success_at is not None and now_ms is None:
                self.broken(f"{row.check} never succeeded at {row.last_success_at}")
            if before_ms is not None and (now_ms is None or now_ms < before_ms):
                self.broken(f"the last success of {row.check} went back to {row.last_success_at}")
            if now_ms is not None:
                stored[row.check] = now_ms
        self._stored_ms, self._made_ms = stored, event.publication.ms
