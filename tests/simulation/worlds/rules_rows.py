"""Rules about rows: each follows from what its probes found, and nothing is shown that was not seen."""

from collections import defaultdict
from typing import Any, Final, NamedTuple

from lookout.core.model import Blocks, Check, Failed, Found, Indexes, Members, MissingList, Nothing, Peers, Row
from lookout.demo.sim.layout import ChainLayout
from tests.simulation.documents import assert_report_is_right
from tests.simulation.worlds import scene as s
from tests.simulation.worlds.rules import Rule
from tests.simulation.worlds.script import ORIGIN_AT

_LIFETIME_MS: Final = 150_000
_SLACK_MS: Final = 6_000  # clocks are slewed, and set by less than what counts as being set


class _Memory(NamedTuple):
    """What follows from a check's probes so far, in one line of memory."""

    failures: int = 0
    last_success_at: int | None = None
    trailing: tuple[int, int] | None = None  # since when, and in which life


class RowsFollow(Rule):
    """A row is what its probe found, by the contract's sentences; the memory is the line's own."""

    clauses = ("S1", "S2", "S7", "S8", "S10", "S11", "S12", "S13", "R5", "R6", "R7", "M7")

    def judged(self, event: s.Judged) -> None:
        life, (now_ms, serial, _, seen, row) = event.life, event.seen
        memory: _Memory = life.memory.get(row.check) or _Memory()
        told = row.status, row.reason
        expected: set[tuple[str, str]]
        match seen.found:
            case Failed() | Peers(peers=0):
                memory, expected = self._failed(memory)
            case Members(responding=0, monitored=monitored) if monitored:
                memory, expected = self._failed(memory)
            case Peers():
                memory, expected = self._answered(memory, seen.at), {("current", "responding")}
            case Members(responding=0):
                memory, expected = memory._replace(failures=0), {("unknown", "no-observation")}
            case Members(responding=responding, monitored=monitored):
                memory = self._answered(memory, seen.at)
                all_respond = responding == monitored
                expected = {("current", "responding") if all_respond else ("degraded", "partial-coverage")}
            case Nothing():
                memory, expected = memory._replace(failures=0), {("unknown", "no-observation")}
            case MissingList():
                memory, expected = memory._replace(failures=0), {("unknown", "incompatible-reference")}
            case Indexes(position, head):
                memory = self._answered(memory, seen.at)
                trailing = None if position >= head else memory.trailing or (now_ms, serial)
                memory = memory._replace(trailing=trailing)
                expected = self._trailing(trailing, now_ms, serial)
            case Blocks():
                comparable = row.reason != "incompatible-reference"
                memory = self._answered(memory, seen.at) if comparable else memory._replace(failures=0)
                expected = {told}  # see ComparesWithHeads
        if told not in expected:
            self.broken(f"{row.check} is {told} and not {expected} after {seen.found}")
        self._hold_instants(row, seen.at, memory)
        ahead_ms = seen.at - life.clock.now()
        if not 0 <= ahead_ms <= 5_000 * (1 + self.scene.small_steps_back):
            self.broken(f"{row.check} was observed {ahead_ms} ms from now")
        life.memory[row.check] = memory

    def _failed(self, memory: _Memory) -> tuple[_Memory, set[tuple[str, str]]]:
        memory = memory._replace(failures=memory.failures + 1)
        return memory, {("unavailable" if memory.failures >= 3 else "unknown", "unreachable")}

    def _answered(self, memory: _Memory, at: int) -> _Memory:
        return memory._replace(failures=0, last_success_at=at)

    def _trailing(self, trailing: tuple[int, int] | None, now_ms: int, serial: int) -> set[tuple[str, str]]:
        green, behind = {("current", "synced")}, {("catching-up", "behind"), ("degraded", "behind")}
        if trailing is None:
            return green
        since_ms, in_life = trailing
        if in_life == serial and now_ms - since_ms > 45_000 + _SLACK_MS:
            return behind
        if in_life == serial and now_ms - since_ms < 45_000 - _SLACK_MS and not self.scene.clocks_are_set:
            return green
        return green | behind

    def _hold_instants(self, row: Row, at: int, memory: _Memory) -> None:
        expires_at = None if row.status == "unknown" else at + _LIFETIME_MS
        if (row.observed_at, row.expires_at) != (at, expires_at):
            self.broken(f"{row.check} has {row.observed_at} and {row.expires_at}, observed at {at}")
        if row.last_success_at != memory.last_success_at:
            self.broken(f"{row.check} last succeeded at {memory.last_success_at}, not at {row.last_success_at}")


class ComparesWithHeads(Rule):
    """An indexer is compared with a head of the last minute, at a pace that the chain has or had."""

    clauses = ("S3", "S4", "S5", "S13", "S15", "R11", "R13")

    def agreed(self, event: s.Agreed) -> None:
        age_ms = max(0, event.life.clock.now() - event.reading.at)
        event.life.memory["head", event.chain_id] = self.scene.ms - age_ms, event.reading.height

    def judged(self, event: s.Judged) -> None:
        life, (now_ms, _, _, seen, row) = event.life, event.seen
        if not isinstance(seen.found, Blocks):
            return
        chain = next(each for each in self.scene.script.layout if each.chain_id == row.check.chain_id)
        read_ms, height = life.memory.get(("head", chain.chain_id), (None, 0))
        position, head = row.metrics.position, row.metrics.head
        if position != seen.found.position:
            self.broken(f"{row.check} is at {seen.found.position}, not at {position}")
        if row.reason == "incompatible-reference":
            if read_ms is not None and now_ms - read_ms < 60_000 - _SLACK_MS and not self.scene.clocks_are_set:
                self.broken(f"{row.check} was not compared with a head of {now_ms - read_ms} ms ago")
            return
        if read_ms is None or not isinstance(head, int) or not isinstance(position, int):
            self.broken(f"{row.check} was compared with no head")
        if now_ms - read_ms > 60_000 + _SLACK_MS and not self.scene.clocks_are_set:
            self.broken(f"{row.check} was compared with a head of {now_ms - read_ms} ms ago")
        if head != max(0, height - chain.confirmations):
            self.broken(f"{row.check} was compared with {head}, the head being {height}")
        lag = max(0, head - position)
        if lag <= 10:
            if row.status != "current":
                self.broken(f"{row.check} is {row.status} with a lag of {lag} blocks")
            return
        shortest_ms, longest_ms = self._block_times(chain)
        if row.status == "current" and lag * shortest_ms > 120_000:
            self.broken(f"{row.check} is current with a lag of {lag} blocks of {shortest_ms} ms or more")
        if row.status != "current" and lag * longest_ms < 120_000:
            self.broken(f"{row.check} is {row.status} with a lag of {lag} blocks of {longest_ms} ms or less")
        if row.status == "degraded" and lag * longest_ms < 1_800_000:
            self.broken(f"{row.check} is degraded with a lag of {lag} blocks of {longest_ms} ms or less")

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
