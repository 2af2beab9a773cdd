"""The witness: sees every publication of a rehearsal, knows the simulated truth, and holds the one against the other.

It judges nothing by the monitor's own rules. What it expects it works out from the world's episodes and positions and
from the contract's sentences, with the tolerance that an honest monitor needs.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from typing import Any

from msgspec import UNSET

from lookout.core.cadence import GATHER_MS
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Check, Failed, Found, Indexes, Members, MissingList, Nothing, Peers, Row
from lookout.core.plan import Plan
from lookout.demo.rehearsal import Life
from lookout.demo.sim.world import World
from lookout.documents.reports import history_document, live_document
from tests.builders import HOUR, MINUTE, SECOND
from tests.oracles.documents import assert_history_is_right, assert_report_is_right
from tests.oracles.history import CHARACTERS, EndedBuckets, Piece, the_character
from tests.oracles.rows import NO_PAST, Past, Probe, Verdict, between, compare_blocks, follow, shown
from tests.simulation.truth import Onlooker, Truth, running_throughout, silencing, stopped_throughout, truth_of

BUCKET = 300 * SECOND
TIMEOUT = 10 * SECOND
HEARTBEAT = 30 * SECOND
# From the first failure that could have been seen to the third that was: 33 + 10, 33 + 10 and 63 + 10 s.
THREE_CYCLES = 159 * SECOND + GATHER_MS
ONE_CYCLE = 43 * SECOND + GATHER_MS
OLDEST_ANSWERED, OLDEST_FAILED = 44 * SECOND, 134 * SECOND  # M15


class Witness:
    """Give ``published`` to a rehearsal, and call ``conclude`` after it."""

    def __init__(self, world: World, plan: Plan, lives: Sequence[Life]) -> None:
        self._world = world
        self._lives = lives
        self._onlookers = {chain_id: Onlooker(world, chain_id, lives) for chain_id in plan.chains}
        self._coming = sorted(lives, reverse=True)
        self._begun_at = 0
        self._published_at = 0
        self._rows: tuple[Row, ...] = ()
        self._limits = plan.limits
        self._pasts: dict[Check, frozenset[Past]] = defaultdict(lambda: NO_PAST)
        self._changes: dict[Check, list[tuple[int, str]]] = defaultdict(list)
        self._sampled_at = 0
        self._ended = EndedBuckets()
        self.compared: Counter[tuple[str, str]] = Counter()  # by service and status
        self.doubtful = 0  # indexer rows that could not be compared, their chain's endpoints being outvoted

    def published(self, ledger: Ledger) -> None:
        at = ledger.published_at
        assert at is not None
        if self._coming and at >= self._coming[-1].begin_at:
            self._begun_at = self._coming.pop().begin_at
        else:
            assert GATHER_MS <= at - self._published_at <= HEARTBEAT  # M5
        rows = ledger.published_rows
        for before, row in zip(self._rows or rows, rows, strict=True):
            if row is before and self._rows:
                continue
            if before.observed_at is not None and before.observed_at >= self._begun_at:
                oldest = OLDEST_FAILED if before.reason == "unreachable" else OLDEST_ANSWERED
                assert at - before.observed_at <= oldest  # M15
            if row.observed_at is not None and row != before:
                assert 0 <= at - row.observed_at <= GATHER_MS  # M5
                self._hold_against_truth(row)
            changes = self._changes[row.check]
            if not changes or changes[-1][1] != row.status:
                changes.append((at, row.status))
        self._published_at, self._rows = at, rows
        if at >= self._sampled_at + HOUR:
            self._sampled_at = at
            self._look_at_documents(ledger)

    def conclude(self, ledger: Ledger) -> dict[str, Any]:
        """Hold the last history, and the course of each row's status, against the episodes; the history."""
        history = self._look_at_documents(ledger)
        buckets_at = round(datetime.fromisoformat(history["from"]).timestamp()) * 1000
        for row in history["rows"]:
            check = Check(row["service"], row["chainId"])
            silences = [
                (max(episode.begin_at, life.begin_at) + THREE_CYCLES, min(episode.end_at, life.end_at))
                for episode in self._world.episodes
                if episode.subject in _subjects(check) and silencing(episode)
                for life in self._lives
            ]
            for begin_at, end_at in silences:
                if begin_at < end_at:
                    statuses = {status for _, status in self._between(check, begin_at, end_at)}
                    assert statuses == {"unavailable"}, (check, begin_at)
            for number, character in enumerate(row["buckets"][:-1]):
                begin_at = buckets_at + number * BUCKET
                end_at = begin_at + BUCKET
                if stopped_throughout(self._lives, begin_at, end_at):
                    assert character == "-", (check, begin_at)
                if any(begin <= begin_at and end_at <= end for begin, end in silences):
                    assert character == "u", (check, begin_at)
                if running_throughout(self._lives, begin_at - MINUTE, end_at):
                    assert character == self._character(check, begin_at, end_at), (check, begin_at)
        return history

    def assert_always_current(self, check: Check, history: dict[str, Any]) -> None:
        """The check was current from its first probe on, and in every bucket in which the monitor ran."""
        assert [status for _, status in self._changes[check]] == ["unknown", "current"]
        buckets_at = round(datetime.fromisoformat(history["from"]).timestamp()) * 1000
        (buckets,) = (row["buckets"] for row in history["rows"] if (row["service"], row["chainId"]) == check)
        for number, character in enumerate(buckets[:-1]):
            begin_at = buckets_at + number * BUCKET
            if running_throughout(self._lives, begin_at, begin_at + BUCKET):
                assert character == "c"

    def _hold_against_truth(self, row: Row) -> None:
        self.compared[row.check.service, row.status] += 1
        possible = list(follow(self._pasts[row.check], self._probe(row), self._limits))
        self._pasts[row.check] = frozenset(past for past, expected in possible if expected == shown(row))
        assert self._pasts[row.check], (row, [expected for _, expected in possible])

    def _probe(self, row: Row) -> Probe:
        """The probe that gave the row, as the world's truth has it."""
        assert row.observed_at is not None
        at = self._read_at(row, row.observed_at)
        truth = truth_of(self._world, row.check, at)
        silent = not truth.answering or truth.peers == 0 or (truth.responding == 0 and truth.monitored != 0)
        if row.reason == "unreachable":
            assert silent or self._was_hanging(row.check, at)
            return Probe(Failed("silent"), row.observed_at)
        assert not silent
        match row.check.service:
            case "messaging":
                assert truth.peers is not None
                return Probe(Peers(truth.peers), row.observed_at)
            case "broadcasters":
                assert truth.responding is not None
                assert truth.monitored is not None
                return Probe(Members(truth.responding, truth.monitored), row.observed_at)
            case "ppoi":
                return Probe(self._indexes(row, truth, at), row.observed_at)
            case _:
                assert truth.position is not None
                head = None if row.metrics.head is UNSET else row.metrics.head
                compared = self._compare(row, truth.position, at)
                return Probe(Blocks(truth.position), row.observed_at, compared=compared, head=head)

    def _read_at(self, row: Row, at: int) -> int:
        """When the row's answer was read: an indexer's position may have waited for the first head (M12)."""
        if row.metrics.position is UNSET or "indexer" not in row.check.service:
            return at
        waited = 0 if at - self._begun_at > TIMEOUT else TIMEOUT
        read_at = range(at, max(at - waited, self._begun_at) - 1, -20)
        truths = ((then, truth_of(self._world, row.check, then)) for then in read_at)
        return next(then for then, truth in truths if truth.answering and truth.position == row.metrics.position)

    def _was_hanging(self, check: Check, at: int) -> bool:
        """Whether a probe that is given up now was asked, a timeout ago, of something that hung."""
        faults = (self._world.fault(_subjects(check)[0], at - TIMEOUT + ms) for ms in (40, 2_040))
        return any(fault is not None and fault.kind == "hang" for fault in faults)

    def _indexes(self, row: Row, truth: Truth, at: int) -> Found:
        node, network = (self._world.fault(subject, at) for subject in _subjects(row.check))
        if network is not None and network.kind == "missing-network":
            return Nothing()
        if node is not None:
            return MissingList()
        if row.status == "current":
            self._check_trailing_was_not_to_be_noticed(row.check, at)
        assert truth.position is not None
        assert truth.head is not None
        return Indexes(truth.position, truth.head)

    def _check_trailing_was_not_to_be_noticed(self, check: Check, at: int) -> None:
        """A node that trails for 45 s is noticed with the next probe (S8), unless something hindered the probes."""
        chain_id, since_at = check.chain_id or 0, at - 45 * SECOND - ONE_CYCLE
        has_trailed = all(
            indexes.validated < indexes.current
            for indexes in (self._world.indexes(chain_id, then) for then in range(at, since_at, -SECOND // 4))
        )
        if has_trailed and running_throughout(self._lives, since_at, at):
            assert any(
                episode.begin_at < at and since_at < episode.end_at + 3 * MINUTE
                for episode in self._world.episodes
                if episode.subject in _subjects(check)
                and (episode.subject == "ppoi" or episode.kind == "missing-network")
            )

    def _compare(self, row: Row, position: int, at: int) -> tuple[Verdict, ...]:
        """All that comparing an indexer's position may have come to."""
        assert row.check.chain_id is not None
        onlooker = self._onlookers[row.check.chain_id]
        if row.reason == "incompatible-reference":
            assert onlooker.may_lack_a_head(at)
            return ("incomparable",)
        assert not onlooker.has_no_head(at)
        if row.status == "current" and onlooker.surely_near(position, at):
            return ("synced",)
        if onlooker.outvoted(at):
            self.doubtful += 1
            return ("synced", "behind", "far")
        (least, most), (shortest_ms, longest_ms) = onlooker.lags(position, at), onlooker.block_times(at)
        best = compare_blocks(least, shortest_ms, self._limits)
        return between(best, compare_blocks(most, longest_ms, self._limits))

    def _look_at_documents(self, ledger: Ledger) -> dict[str, Any]:
        """Both documents keep the contract, and no bucket that had ended has changed since the last look (H16)."""
        report = assert_report_is_right(live_document(ledger.report()))
        history = assert_history_is_right(history_document(ledger.view()))
        assert report["generatedAt"] == history["generatedAt"]
        assert list(self._ended.changed(history)) == []
        return history

    def _character(self, check: Check, begin_at: int, end_at: int) -> str:
        """The bucket's character, from how long each status was published in it (H5, H6, H7)."""
        stretches = pairwise([*self._between(check, begin_at, end_at), (end_at, "")])
        pieces = [
            Piece(until_at - max(at, begin_at), frozenset(CHARACTERS[status]))
            for (at, status), (until_at, _) in stretches
        ]
        return the_character(pieces, MINUTE)

    def _between(self, check: Check, begin_at: int, end_at: int) -> list[tuple[int, str]]:
        """What the check was published as between these instants, and since when."""
        changes = self._changes[check]
        first = bisect_right(changes, begin_at, key=itemgetter(0)) - 1
        return changes[max(0, first) : bisect_right(changes, end_at - 1, key=itemgetter(0))]


def _subjects(check: Check) -> tuple[str, ...]:
    """What a check's answers depend on; the first is what is asked."""
    service, chain_id = check
    if service == "messaging":
        return ("messaging",)
    of_chain = f"{service}/{chain_id}"
    return (of_chain,) if service.endswith("indexer") else (service, of_chain)
