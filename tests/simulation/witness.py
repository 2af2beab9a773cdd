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

from lookout.core.ledger import Ledger
from lookout.core.model import Check, Row
from lookout.core.plan import Plan
from lookout.demo.rehearsal import Life
from lookout.demo.sim.world import Truth, World
from lookout.documents.reports import history_document, live_document
from lookout.monitor.publisher import GATHER_MS
from tests.builders import HOUR, MINUTE, SECOND
from tests.simulation.documents import assert_history_is_right, assert_report_is_right
from tests.simulation.truth import Onlooker, running_throughout, silencing, stopped_throughout

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
        self._failures: Counter[Check] = Counter()
        self._surely_far: Counter[Check] = Counter()
        self._seen_trailing_at: dict[Check, int] = {}
        self._changes: dict[Check, list[tuple[int, str]]] = defaultdict(list)
        self._sampled_at = 0
        self._sample: dict[str, Any] = {}
        self.compared: Counter[tuple[str, str]] = Counter()  # by service and status
        self.doubtful = 0  # indexer rows that could not be compared, their chain's endpoints being outvoted

    def published(self, ledger: Ledger) -> None:
        at = ledger.published_at
        assert at is not None
        if self._coming and at >= self._coming[-1].begin_at:
            self._begun_at = self._coming.pop().begin_at
        else:
            assert GATHER_MS <= at - self._published_at <= HEARTBEAT  # M5
        rows = ledger.rows
        for before, row in zip(self._rows or rows, rows, strict=True):
            if row is before and self._rows:
                continue
            if before.observed_at is not None and before.observed_at >= self._begun_at:
                oldest = OLDEST_FAILED if before.reason == "unreachable" else OLDEST_ANSWERED
                assert at - before.observed_at <= oldest  # M15
            if row.observed_at is not None and row != before:
                assert 0 <= at - row.observed_at <= GATHER_MS  # M5
                self._hold_against_truth(row, row.observed_at)
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

    def _hold_against_truth(self, row: Row, at: int) -> None:
        service, chain_id = row.check
        at = self._read_at(row, at)
        truth = self._world.truth(service, chain_id, at)
        self.compared[service, row.status] += 1
        silent = not truth.answering or truth.peers == 0 or (truth.responding == 0 and truth.monitored != 0)
        if row.reason == "unreachable":  # S1, S2
            self._failures[row.check] += 1
            assert silent or self._was_hanging(row.check, at)
            assert row.status == ("unavailable" if self._failures[row.check] >= 3 else "unknown")
            return
        self._failures[row.check] = 0
        assert not silent
        match service:
            case "messaging":  # S11
                assert (row.status, row.reason, row.metrics.peers) == ("current", "responding", truth.peers)
            case "broadcasters":
                self._hold_members(row, truth)
            case "ppoi":
                self._hold_indexes(row, truth, at)
            case "indexer" | "hosted-indexer":
                self._hold_blocks(row, truth, at)

    def _read_at(self, row: Row, at: int) -> int:
        """When the row's answer was read: an indexer's position may have waited for the first head (M12)."""
        if row.metrics.position is UNSET or "indexer" not in row.check.service:
            return at
        waited = 0 if at - self._begun_at > TIMEOUT else TIMEOUT
        read_at = range(at, max(at - waited, self._begun_at) - 1, -20)
        truths = ((then, self._world.truth(*row.check, then)) for then in read_at)
        return next(then for then, truth in truths if truth.answering and truth.position == row.metrics.position)

    def _was_hanging(self, check: Check, at: int) -> bool:
        """Whether a probe that is given up now was asked, a timeout ago, of something that hung."""
        faults = (self._world.fault(_subjects(check)[0], at - TIMEOUT + ms) for ms in (40, 2_040))
        return any(fault is not None and fault.kind == "hang" for fault in faults)

    def _hold_members(self, row: Row, truth: Truth) -> None:
        """S10."""
        if truth.monitored == 0:
            assert (row.status, row.reason) == ("unknown", "no-observation")
            return
        assert (row.metrics.responding, row.metrics.monitored) == (truth.responding, truth.monitored)
        all_respond = truth.responding == truth.monitored
        assert row.status == ("current" if all_respond else "degraded")
        assert row.reason == ("responding" if all_respond else "partial-coverage")

    def _hold_indexes(self, row: Row, truth: Truth, at: int) -> None:
        """S7, S8, S9, S12, S13."""
        node, network = (self._world.fault(subject, at) for subject in _subjects(row.check))
        if network is not None and network.kind == "no-network":
            assert (row.status, row.reason) == ("unknown", "no-observation")
            return
        if node is not None:
            assert (row.status, row.reason) == ("unknown", "incompatible-reference")
            return
        assert (row.metrics.position, row.metrics.head) == (truth.position, truth.head)
        if truth.trailing_since_at is None:
            self._seen_trailing_at.pop(row.check, None)
            assert row.status == "current"
            return
        seen_at = self._seen_trailing_at.setdefault(row.check, at)
        assert (row.status == "current") == (at - seen_at < 45 * SECOND)
        trailing_since_at = truth.trailing_since_at
        if running_throughout(self._lives, trailing_since_at, at) and not any(
            episode.begin_at < at and trailing_since_at < episode.end_at + MINUTE
            for episode in self._world.episodes
            if episode.subject in _subjects(row.check) and (episode.subject == "ppoi" or episode.kind == "no-network")
        ):
            assert row.status != "current" or at - trailing_since_at <= 45 * SECOND + ONE_CYCLE
        if row.status == "degraded":
            head_long_ago = self._world.truth("ppoi", row.check.chain_id, at - 30 * MINUTE).head
            assert truth.position is not None
            assert head_long_ago is not None
            assert truth.position < head_long_ago

    def _hold_blocks(self, row: Row, truth: Truth, at: int) -> None:
        """S3, S4, S5, S13, S15."""
        assert row.check.chain_id is not None
        assert truth.position is not None
        onlooker = self._onlookers[row.check.chain_id]
        assert row.metrics.position == truth.position
        if row.reason == "incompatible-reference":
            assert onlooker.may_lack_a_head(at)
            return
        assert not onlooker.has_no_head(at)
        if row.status == "current" and onlooker.surely_near(truth.position, at):
            self._surely_far[row.check] = 0
            return
        if onlooker.outvoted(at):
            self.doubtful += 1
            self._surely_far[row.check] = 0
            return
        least, most = onlooker.lags(truth.position, at)
        shortest_ms, longest_ms = onlooker.block_times(at)
        if row.status == "current":
            assert least <= max(10, 120 * SECOND / shortest_ms)
        else:
            assert most > max(10, 120 * SECOND / longest_ms)
        if row.status == "degraded":
            assert most * longest_ms >= 30 * MINUTE
        surely_far = least * shortest_ms >= 30 * MINUTE and least > max(10, 120 * SECOND / shortest_ms)
        self._surely_far[row.check] = self._surely_far[row.check] + 1 if surely_far else 0
        if self._surely_far[row.check] >= 2:
            assert row.status == "degraded"

    def _look_at_documents(self, ledger: Ledger) -> dict[str, Any]:
        """Both documents keep the contract, and no bucket that had ended has changed since the last look (H16)."""
        report = assert_report_is_right(live_document(ledger.report()))
        history = assert_history_is_right(history_document(ledger.view()))
        assert report["generatedAt"] == history["generatedAt"]
        if self._sample:
            between = datetime.fromisoformat(history["from"]) - datetime.fromisoformat(self._sample["from"])
            dropped = round(between.total_seconds()) // 300
            for before, row in zip(self._sample["rows"], history["rows"], strict=True):
                ended = before["buckets"][dropped:-1]
                assert row["buckets"].startswith(ended)
        self._sample = history
        return history

    def _character(self, check: Check, begin_at: int, end_at: int) -> str:
        """The bucket's character, from how long each status was published in it (H5, H6, H7)."""
        lasted: Counter[str] = Counter()
        stretches = self._between(check, begin_at, end_at)
        for (at, status), (until_at, _) in pairwise([*stretches, (end_at, "")]):
            lasted[status] += until_at - max(at, begin_at)
        worse_ms = 0
        for character, status in (("u", "unavailable"), ("d", "degraded"), ("k", "catching-up")):
            worse_ms += lasted[status]
            if worse_ms >= MINUTE:
                return character
        if lasted["current"]:
            return "c"
        return "?" if worse_ms or lasted["unknown"] else "."

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
