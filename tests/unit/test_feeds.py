"""What both documents come to at an instant, and for how long it may be said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.public.feeds import compute_max_age, make_feed_files
from lookout.public.picture import MOST_INCIDENTS, SILENT_MS, take_picture
from lookout_reader import Clocks, LiveReport, effective_status, parse_report
from tests.builders import NOON, SECOND
from tests.unit.feeds import BUCKET, FULL, NAMES, a_check, a_history, a_picture, a_report, all_current

INDEXER = ("indexer", 1)


@pytest.mark.clause("C5", "C6", "C7", "C8")
@pytest.mark.parametrize(
    "checks",
    [
        pytest.param([a_check("current"), a_check("degraded", chain_id=137)], id="ordinary rows"),
        pytest.param([None, 1, "row", [], a_check("current")], id="rows that are none"),
        pytest.param([{"service": ""}, {"service": "x", "chainId": "1"}, a_check("current")], id="rows of nobody"),
        pytest.param([{**a_check("current"), "expiresAt": "later", "metrics": None}], id="a row without its instants"),
    ],
)
def test_rows_are_read_as_every_reader_reads_them(checks: list[object]) -> None:
    live = a_report(*checks)
    report = parse_report(live)
    assert isinstance(report, LiveReport)
    expected = [(row.check, effective_status(row, Clocks(NOON))) for row in report.rows if row.check is not None]
    assert [(seen.check, seen.status) for seen in a_picture(live).rows] == expected
    assert expected


@pytest.mark.clause("C6")
@pytest.mark.parametrize(
    "live",
    [
        pytest.param(b"no JSON", id="no JSON"),
        pytest.param(a_report().replace(b'"schemaVersion": 1', b'"schemaVersion": 2'), id="another version"),
        pytest.param(a_report().replace(b"2026-", b"\xff"), id="no UTF-8"),
        pytest.param(b'{"new":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="nested too deeply"),
    ],
)
def test_a_report_that_cannot_be_read_is_none(live: bytes) -> None:
    assert take_picture(NAMES.about, live, None, NOON, 0) is None
    made = make_feed_files(NAMES, live, None, NOON, 0)
    assert made.files["/feed.atom"] is made.files["/summary.json"] is made.files["/status.json"] is None
    badge = made.files["/badge.svg"]
    assert badge is not None
    assert b"unknown" in badge.body
    assert made.max_age_s == 0


ROWS = st.lists(
    st.builds(
        a_check,
        st.sampled_from(["current", "degraded", "unavailable", "unknown", "unmonitored"]),
        chain_id=st.integers(1, 4),
        seen_at=st.integers(NOON - 400 * SECOND, NOON + 60 * SECOND),
        lifetime=st.integers(-SECOND, 400 * SECOND),
    ),
    unique_by=lambda check: check["chainId"],
)


@pytest.mark.clause("C2", "C3")
@given(ROWS, st.integers(0, 200 * SECOND), st.integers(0, SILENT_MS), st.data())
def test_for_as_long_as_it_says_a_picture_changes_in_nothing(
    checks: list[object], ago_ms: int, age_ms: int, data: st.DataObject
) -> None:
    live = a_report(*checks, at=NOON - age_ms)
    first = take_picture(NAMES.about, live, None, NOON, ago_ms)
    assert first is not None
    holds_ms = 10**9 if first.holds_ms is None else first.holds_ms
    for later_ms in {0, holds_ms - 1, data.draw(st.integers(0, holds_ms - 1))}:
        later = take_picture(NAMES.about, live, None, NOON + later_ms, ago_ms + later_ms)
        assert later is not None
        assert (later.rows, later.headline, later.silent) == (first.rows, first.headline, first.silent)


def test_a_row_is_at_least_as_old_as_its_arrival_though_the_clock_be_set_back() -> None:
    for ago, status, holds in ((99, "current", 1), (100, "current", 20), (120, "current", 30), (150, "stale", 150)):
        picture = take_picture(NAMES.about, a_report(a_check("current")), None, NOON, ago * SECOND)
        assert picture is not None
        assert [row.status for row in picture.rows] == [status]
        assert picture.holds_ms == holds * SECOND  # there is no new report, since when, the row is stale, all is silent


@given(st.integers(1, 10**6), st.data())
def test_a_copy_never_outlives_what_it_says_and_something_is_always_left_to_do(
    holds_ms: int, data: st.DataObject
) -> None:
    max_age_s, said_for_ms = compute_max_age(holds_ms)
    assert said_for_ms is not None
    assert 0 < said_for_ms <= holds_ms
    asked_after_ms = data.draw(st.integers(0, said_for_ms - 1))
    assert asked_after_ms + max_age_s * SECOND < holds_ms


def begins(history: bytes) -> list[tuple[int, bool]]:
    past = a_picture(a_report(), history).past
    assert past is not None
    return [(found.incident.begins_at, found.incident.ends_at is None) for found in past.incidents]


def test_incidents_that_last_come_first_and_then_the_newest() -> None:
    many = "cu" * MOST_INCIDENTS + "c"
    lasting = "c" + "d" * (len(many) - 1)
    found = begins(a_history({INDEXER: many, ("indexer", 137): lasting}))
    assert len(found) == MOST_INCIDENTS
    assert found[0] == (NOON - (len(many) - 2) * BUCKET, True)
    assert found[1:] == [(NOON - (2 * index + 1) * BUCKET, False) for index in range(MOST_INCIDENTS - 1)]


def test_an_incident_that_is_over_and_began_before_the_window_is_left_out() -> None:
    assert begins(a_history({INDEXER: "uu" + "c" * (FULL - 2)})) == []
    assert len(begins(a_history({INDEXER: "cu" + "c" * (FULL - 2)}))) == 1
    young = "uuccc"  # its first bucket is the first ever, and does not move
    assert begins(a_history({INDEXER: young})) == [(NOON - 4 * BUCKET, False)]


def test_a_history_that_cannot_be_read_leaves_the_rest_as_it_is() -> None:
    for history in (None, b"no JSON"):
        picture = a_picture(a_report(*all_current()), history)
        assert picture.past is None
        assert picture.overview.status == "current"
