"""No order of events gives a row that breaks the contract."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookout.core.model import LARGEST_METRIC
from lookout.documents.reports import live_document
from lookout.replay.replay import Replay
from lookout.state.log import Event, format_event, parse_event
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, PPOI, a_plan
from tests.property.events import LONG_STEPS, logs
from tests.property.row_oracle import expected_row

INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
FIELDS = ["service", "chainId", "status", "reason", "observedAt", "lastSuccessAt", "expiresAt", "metrics"]
REASONS = {
    "current": {"synced", "responding"},
    "catching-up": {"behind"},
    "degraded": {"behind", "partial-coverage"},
    "unavailable": {"unreachable"},
    "unknown": {"unreachable", "no-observation", "incompatible-reference"},
    "unmonitored": {"not-configured"},
}
METRICS = {
    "ppoi": [set(), {"position", "head"}],
    "indexer": [set(), {"position"}, {"position", "head"}],
    "hosted-indexer": [set(), {"position"}, {"position", "head"}],
    "broadcasters": [set(), {"responding", "monitored"}],
    "messaging": [set(), {"peers"}],
}
SET_BACK = st.integers(1, 3_600_000)
# The hosted indexer is not configured: its row is unmonitored, and what a log says of it is skipped.
PLAN = a_plan(MESSAGING, PPOI, BROADCASTERS, INDEXER)


def keeps_the_contract(row: dict[str, Any]) -> None:
    status, reason, metrics = row["status"], row["reason"], row["metrics"]
    assert list(row) == FIELDS
    assert reason in REASONS[status]
    assert (row["chainId"] is None) == (row["service"] == "messaging")
    assert row["chainId"] is None or row["chainId"] > 0
    for instant in (row["observedAt"], row["lastSuccessAt"], row["expiresAt"]):
        assert instant is None or INSTANT.fullmatch(instant)
    assert (row["expiresAt"] is None) == (status in ("unknown", "unmonitored"))
    assert set(metrics) in METRICS[row["service"]]
    assert all(type(value) is int and 0 <= value <= LARGEST_METRIC for value in metrics.values())
    if status in ("current", "catching-up", "degraded"):
        assert metrics
        assert row["lastSuccessAt"] == row["observedAt"]
    if reason in ("unreachable", "no-observation", "not-configured"):
        assert metrics == {}
    if reason == "incompatible-reference":
        assert set(metrics) == ({"position"} if "indexer" in row["service"] else set())
    if reason == "partial-coverage":
        assert 0 < metrics["responding"] < metrics["monitored"]
    if status == "unmonitored":
        assert row["observedAt"] is row["lastSuccessAt"] is None


@pytest.mark.clause("R1", "R2", "R3", "R4", "R7", "R8", "R9", "R10", "R12", "R13")
@settings(max_examples=60)
@given(logs(set_back=SET_BACK, most=40))
def test_every_row_of_every_report_keeps_the_contract(events: list[Event]) -> None:
    replay = Replay(PLAN)
    for event in events:
        replay.feed(event)
        report = msgspec.json.decode(live_document(replay.ledger.report()).body)
        assert list(report) == ["schemaVersion", "generatedAt", "checks"]
        checks = [(row["service"], row["chainId"]) for row in report["checks"]]
        assert checks == [("messaging", None), ("ppoi", 1), ("broadcasters", 1), ("indexer", 1), ("hosted-indexer", 1)]
        for row in report["checks"]:
            keeps_the_contract(row)


@pytest.mark.clause(
    *("R5", "R6", "R7", "R11", "R13", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13"),
    "S15",
)
@settings(max_examples=300)
@given(logs(most=60))
def test_every_row_is_what_the_oracle_says(events: list[Event]) -> None:
    plan = a_plan()
    replay = Replay(plan)
    for event in events:
        replay.feed(event)
    for row in replay.ledger.rows:
        shown = (row.status, row.reason, row.observed_at, row.last_success_at, row.expires_at)
        metrics = msgspec.to_builtins(row.metrics)
        assert (*shown, metrics) == expected_row(row.check, events, 5, 12_000, plan.limits)


@given(logs(steps=LONG_STEPS, set_back=SET_BACK))
def test_every_event_survives_the_log(events: list[Event]) -> None:
    assert [parse_event(format_event(event)) for event in events] == events
