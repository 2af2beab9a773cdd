"""The history held against a slow oracle, under every order of events."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.history import History
from lookout.core.ledger import Ledger
from lookout.core.model import Status
from lookout.core.plan import Plan
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import Replay
from lookout.state.codec import decode_state, encode_state
from lookout.state.log import Event
from tests.builders import (
    DAY,
    HOSTED_INDEXER,
    HOUR,
    LAUNCH,
    LAUNCH_SPAN,
    MESSAGING,
    MINUTE,
    NOON,
    SECOND,
    a_plan,
    a_row,
)
from tests.oracles.history import EndedBuckets, expected_history
from tests.property.events import LONG_STEPS, logs
from tests.replayed import published

BUCKET = 300 * SECOND
SET_BACK = st.sampled_from([1, 10 * SECOND, MINUTE, 5 * MINUTE, 20 * MINUTE, HOUR, 3 * HOUR, 2 * DAY])
PLAN = a_plan()
# Two days instead of fourteen, and a heartbeat so rare that statuses run out of their hold between two of them.
BRIEF = a_plan(
    limits=replace(LAUNCH, heartbeat_ms=47 * MINUTE), span=replace(LAUNCH_SPAN, retention_days=2, min_known_buckets=3)
)

# What a log says of the hosted indexer is skipped.
WITHOUT_HOSTED = replace(BRIEF, monitored=BRIEF.monitored - {HOSTED_INDEXER})


def agrees_with_the_oracle(events: list[Event], plan: Plan) -> None:
    replay, publications = published(events, plan)
    expected = expected_history(publications, plan.span)
    shown = msgspec.json.decode(history_document(replay.ledger.view()).body)
    assert [(row["service"], row["chainId"]) for row in shown["rows"]] == [tuple(c) for c in plan.checks()]
    assert [row["buckets"] for row in shown["rows"]] == [expected.buckets[c] for c in plan.checks()]
    assert [tuple(row["uptime"].values()) for row in shown["rows"]] == [expected.uptime[c] for c in plan.checks()]
    assert len(expected.buckets[MESSAGING]) == expected.to - expected.first + 1


@pytest.mark.clause("H2", "H6", "H7", "H8", "H9", "H10", "H17")
@given(logs())
def test_buckets_and_uptime_are_those_of_the_oracle(events: list[Event]) -> None:
    agrees_with_the_oracle(events, PLAN)


@pytest.mark.clause("H4", "H12", "H13")
@settings(max_examples=30)
@given(logs(steps=LONG_STEPS, most=40))
def test_the_window_slides_as_the_oracle_says(events: list[Event]) -> None:
    agrees_with_the_oracle(events, BRIEF)


@pytest.mark.clause("H16")
@given(logs(set_back=SET_BACK, most=40))
def test_a_clock_set_back_hides_later_buckets_and_changes_none(events: list[Event]) -> None:
    agrees_with_the_oracle(events, BRIEF)


@pytest.mark.clause("H3", "H4", "H16", "M12")
@settings(max_examples=25)
@given(logs(steps=LONG_STEPS, set_back=SET_BACK, most=40))
def test_whatever_comes_no_ended_bucket_changes_and_every_string_reaches_from_from_to_to(events: list[Event]) -> None:
    replay, ended = Replay(BRIEF), EndedBuckets()
    for event in events:
        replay.feed(event)
        view = replay.ledger.view()
        assert list(ended.changed(msgspec.json.decode(history_document(view).body))) == []
        assert view.from_at % BUCKET == view.to_at % BUCKET == 0
        length = (view.to_at - view.from_at) // BUCKET + 1
        assert 1 <= length <= 2 * 288 + 1
        assert {len(row.buckets) for row in view.rows} == {length}


@pytest.mark.clause("M7")
@settings(max_examples=30)
@given(logs(steps=LONG_STEPS, set_back=SET_BACK, most=40), st.data())
def test_a_log_split_anywhere_and_resumed_from_the_stored_state_gives_the_same_documents(
    events: list[Event], data: st.DataObject
) -> None:
    whole = Replay(WITHOUT_HOSTED)
    for event in events:
        whole.feed(event)
    at = data.draw(st.integers(0, len(events)))
    resumed = Replay(WITHOUT_HOSTED)
    for event in events[:at]:
        resumed.feed(event)
    published = resumed.ledger.published_at is not None
    state = decode_state(encode_state(resumed.ledger.state()).documents)[0] if published else None
    resumed.ledger = Ledger(WITHOUT_HOSTED, state)
    for event in events[at:]:
        resumed.feed(event)
    for replay in (whole, resumed):
        replay.finish(None)
    assert resumed.ledger.state() == whole.ledger.state()
    try:
        report = resumed.ledger.report()
    except ValueError:  # nothing was published since: the documents are what was stored
        return
    assert live_document(report) == live_document(whole.ledger.report())
    assert history_document(resumed.ledger.view()) == history_document(whole.ledger.view())


STEPS = st.integers(0, 60 * SECOND)
STATUSES: st.SearchStrategy[Status] = st.sampled_from(
    ["current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored"]
)


@pytest.mark.clause("H8")
@given(st.lists(st.tuples(STEPS, STATUSES), min_size=1), STEPS, STEPS)
def test_in_a_bucket_watched_throughout_the_times_sum_to_its_length(
    steps: list[tuple[int, Status]], carried_ms: int, first_ms: int
) -> None:
    history = History(LAUNCH_SPAN)
    at = NOON - carried_ms
    history.publish(at, [a_row("current")])
    at = max(NOON, min(NOON + first_ms, at + 60 * SECOND))
    history.publish(at, [a_row("degraded")])
    for step_ms, status in steps:
        at = min(at + step_ms, NOON + BUCKET - 1)
        history.publish(at, [a_row(status)])
    state = history.state()
    assert state is not None
    (tally,) = state.tallies.values()
    assert sum(tally.lasted_ms.values()) + state.progress.watched_ms - tally.since_ms == at - NOON
