"""Rules about rows: each follows from what its probes found, and is what is published."""

from math import inf
from typing import Final, NamedTuple

from msgspec.structs import replace

from lookout.core.model import Blocks, Check, Members, Row, unmonitored, unobserved
from lookout.demo.sim.chain import ChainLayout
from tests.oracles.documents import assert_report_is_right
from tests.oracles.rows import NO_PAST, Past, Probe, between, compare_blocks, follow, is_far_above, shown
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.script import ORIGIN_AT
from tests.simulation.worlds.simulated_sources import find_truth

_SLACK_MS: Final = 6_000  # clocks are slewed, and set by less than what counts as being set


class _Line(NamedTuple):
    """What a check's probes may have come to, in one line of memory, and the last row that was judged."""

    pasts: frozenset[Past] = NO_PAST
    trails_in: int | None = None  # the life in which it began to
    row: Row | None = None

    def leave(self) -> "_Line":
        """Of a check that is taken out only its last success is known when it is put back (R6)."""
        last_at = None if self.row is None else self.row.last_success_at
        if self.row is None or last_at is None:
            return _Line()
        row = replace(unobserved(self.row.check), last_success_at=last_at)
        return _Line(frozenset({Past(last_success_at=last_at)}), None, row)


class RowsFollow(Rule):
    """A row is what its probe found, by the contract's sentences. An indexer is compared with a head of the last
    minute, at a pace that the chain has or had. A publication has the last row of each check, over restarts and
    takeovers, too."""

    clauses = (
        *("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9", "S10", "S11", "S12", "S13", "S15"),
        *("R5", "R6", "R7", "R11", "R13", "M7", "M14", "H15"),
    )

    def agreed(self, event: s.Agreed) -> None:
        age_ms = max(0, event.life.clock.now() - event.reading.at)
        event.life.memory["head", event.chain_id] = self.scene.ms - age_ms, event.reading.height

    def judged(self, event: s.Judged) -> None:
        life, serial, (now_ms, seen, row) = event.life, event.life.serial, event.seen
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
        life.memory[row.check] = _Line(pasts, trails_in, row)
        ahead_ms = seen.at - life.clock.now()
        if not 0 <= ahead_ms <= 5_000 * (1 + self.scene.small_steps_back):
            self.broken(f"{row.check} was observed {ahead_ms} ms from now")

    def published(self, event: s.Published) -> None:
        for row in event.publication.rows:
            line: _Line = event.life.memory.get(row.check) or _Line()
            unseen = unobserved(row.check) if row.check in event.life.plan.monitored else unmonitored(row.check)
            if row != (line.row if line.row and unseen.status == "unknown" else unseen):
                self.broken(f"published was {row}, not {line.row or unseen}")

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
        far_above = [is_far_above(position, height, block_ms) for block_ms in self._block_times(chain)]
        if is_set or age_ms >= limits.head_max_age_ms - _SLACK_MS or any(far_above):
            compared += ("incomparable",)
        if all(far_above):
            compared = ("incomparable",)
        return probe._replace(compared=compared, head=head)

    def _block_times(self, chain: ChainLayout) -> tuple[float, float]:
        """The shortest and the longest block time that an honest monitor may have measured; endpoints may lie, two at a
        time, and then it may be anything."""
        lying = self.scene.lies(chain.chain_id)
        halted = [fault for fault in self.scene.sim.planned if fault.target == f"rpc/{chain.chain_id}"]
        if len(lying) > (1 if chain.endpoints > 2 else 0) or halted or self.scene.clocks_are_set:
            return 0, 1e15
        return 0.9 * chain.block_ms, 1.1 * chain.block_ms


class GreenIsTrue(Rule):
    """A row that is judged green is of a truth that was so."""

    clauses = ("S3", "S7", "S10", "S11")

    def __init__(self) -> None:
        self._answered_ms: dict[tuple[int, Check], int] = {}

    def answered(self, event: s.Answered) -> None:
        for check in event.checks:
            self._answered_ms[event.life.serial, check] = self.scene.ms

    def judged(self, event: s.Judged) -> None:
        row, found = event.seen.row, event.seen.observation.found
        # What was true when it answered: a position may wait for a head to be compared with.
        answered_ms = self._answered_ms.get((event.life.serial, row.check), event.seen.ms)
        truth = find_truth(self.scene.sim, row.check, ORIGIN_AT + answered_ms)
        is_complete = not isinstance(truth, Members) or truth.responding == truth.monitored
        if row.status == "current" and not (found == truth and is_complete):
            self.broken(f"{row.check} is shown as current, though {truth}")


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
            stored = [(row["service"], row["chainId"], row["status"], row["reason"]) for row in report["checks"]]
            if stored != [(*row.check, row.status, row.reason) for row in event.publication.rows]:
                self.broken("the report is not what was published")


RULES: Final = (RowsFollow, GreenIsTrue, ReportIsRight)
