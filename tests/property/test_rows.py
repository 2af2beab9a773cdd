"""No order of events gives a row that breaks the contract."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Observation
from lookout.documents.reports import live_document
from lookout.features.alerts.settings import BAD_REASONS
from lookout.replay.replay import Replay
from lookout.state.log import Event, HeadRead, format_event, parse_line
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, PPOI, a_plan
from tests.oracles.documents import assert_report_is_right
from tests.oracles.rows import UNOBSERVED, Past, Probe, compare_with_heads, follow, shown
from tests.property.events import LONG_STEPS, logs

SET_BACK = st.integers(1, 3_600_000)
# The hosted indexer is not configured: its row is unmonitored, and what a log says of it is skipped.
PLAN = a_plan(MESSAGING, PPOI, BROADCASTERS, INDEXER)


@pytest.mark.clause("R1", "R2", "R3", "R4", "R7", "R8", "R9", "R10", "R12", "R13")
@settings(max_examples=40)
@given(logs(set_back=SET_BACK, most=40))
def test_every_row_of_every_report_keeps_the_contract(events: list[Event]) -> None:
    replay = Replay(PLAN)
    for event in events:
        replay.feed(event)
        report = assert_report_is_right(live_document(replay.ledger.report()))
        checks = [(row["service"], row["chainId"]) for row in report["checks"]]
        assert checks == [("messaging", None), ("ppoi", 1), ("broadcasters", 1), ("indexer", 1), ("hosted-indexer", 1)]


@pytest.mark.clause(
    *("R5", "R6", "R7", "R11", "R13", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S10", "S11", "S12", "S13"),
    "S15",
)
@settings(max_examples=100)
@given(logs(most=60) | logs(most=60, checks=(PPOI,)) | logs(most=60, checks=(INDEXER, INDEXER, None)))
def test_every_row_is_what_the_oracle_says(events: list[Event]) -> None:
    plan = a_plan()
    replay = Replay(plan)
    heads: list[Reading] = []
    pasts = {check: Past() for check in plan.checks()}
    expected = dict.fromkeys(plan.checks(), UNOBSERVED)
    for event in events:
        replay.feed(event)
        if isinstance(event, HeadRead):
            heads.append(event.reading)
        if isinstance(event, Observation):
            probe = Probe(event.found, event.at)
            if isinstance(event.found, Blocks) and heads:
                compared = compare_with_heads(event.found.position, event.at, heads, 5, 12_000, plan.limits)
                probe = probe._replace(compared=(compared,), head=max(0, heads[-1].height - 5))
            ((pasts[event.check], expected[event.check]),) = follow([pasts[event.check]], probe, plan.limits)
        assert {row.check: shown(row) for row in replay.ledger.published_rows} == expected
        bad = [row for row in replay.ledger.published_rows if row.status not in ("current", "unmonitored")]
        assert all(row.status in BAD_REASONS[row.reason] for row in bad)  # which rules of alerts can name


@given(logs(steps=LONG_STEPS, set_back=SET_BACK))
def test_every_event_survives_the_log(events: list[Event]) -> None:
    assert [parse_line(format_event(event)) for event in events] == events
