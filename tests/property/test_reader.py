"""Whatever is sent to the reader: nothing raises, nothing is made healthier than it was, and no row hides another."""

import copy
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout_reader import (
    MAINNETS,
    SERVICES,
    TEST_NETWORK,
    WINDOWS,
    Clocks,
    History,
    LiveReport,
    Unreadable,
    UnreadableRow,
    buckets_of,
    coverage_of,
    effective_status,
    incidents_of,
    parse_history,
    parse_report,
    roll_up,
    rows_by_check,
)

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOW_AT = int(NOW.timestamp() * 1000)
STATUSES = ("current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored")
VECTORS = Path(__file__).parent.parent / "data" / "vectors"
MADE = [json.loads((VECTORS / f"replay-{number}.expected.json").read_text()) for number in (11, 12)]
CHECKS = [(service, chain) for service in SERVICES[1:] for chain in (*MAINNETS, TEST_NETWORK)]
ALL_CHECKS: list[tuple[str, int | None]] = [("messaging", None), *CHECKS]
OWN_CHECKS: list[tuple[str, int | None]] = [("bundler", 137), ("relayer", None)]


def text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def a_row(service: str, chain_id: int | None, status: str = "current", observed_ms: int = 0) -> dict[str, Any]:
    """A published row, of a probe so long after now."""
    observed = NOW + timedelta(milliseconds=observed_ms)
    return {
        "service": service,
        "chainId": chain_id,
        "status": status,
        "reason": "synced",
        "observedAt": text(observed),
        "lastSuccessAt": None,
        "expiresAt": text(observed + timedelta(seconds=150)),
        "metrics": {"position": 1},
    }


def a_report(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schemaVersion": 1, "generatedAt": text(NOW), "checks": rows}


STATES = st.tuples(
    st.sampled_from(["current"] * 6 + list(STATUSES)),
    st.sampled_from([0, -1, 30_000, 30_001, -149_999, -150_000, -300_000]),
)


def reports() -> st.SearchStrategy[dict[str, Any]]:
    checks = (*ALL_CHECKS, *OWN_CHECKS)
    all_current = st.just([("current", 0)] * len(ALL_CHECKS))
    any_state = st.lists(STATES, min_size=len(ALL_CHECKS), max_size=len(ALL_CHECKS))
    own_states = st.tuples(*(STATES for _ in OWN_CHECKS))
    return st.builds(
        lambda five, own: a_report([a_row(*check, *state) for check, state in zip(checks, (*five, *own), strict=True)]),
        all_current | any_state,
        own_states,
    )


@st.composite
def histories(draw: st.DrawFn) -> dict[str, Any]:
    length = draw(st.integers(1, 30))
    buckets = st.text(alphabet="ckdu?.-", min_size=length, max_size=length)
    listed = [
        {"service": service, "chainId": chain, "buckets": draw(buckets), "uptime": {"24h": 1, "7d": 0.5, "14d": None}}
        for service, chain in CHECKS[:6]
    ]
    begin = NOW - timedelta(seconds=300 * (length - 1))
    borders = {"from": text(begin), "to": text(NOW)}
    return {"schemaVersion": 1, "generatedAt": text(NOW), "bucketSeconds": 300, **borders, "rows": listed}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(STATUSES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def mutated(draw: st.DrawFn, document: dict[str, Any]) -> dict[str, Any]:
    """The document with some values, anywhere in it, replaced, removed or added."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        place: Any = changed
        while True:
            keys = range(len(place)) if isinstance(place, list) else sorted(place)
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.integers(0, 5)):
                place = place[key]
                continue
            kind = draw(st.sampled_from(["replace", "remove", "add"]))
            if kind == "remove":
                del place[key]
            elif kind == "add" and isinstance(place, list):
                place.insert(key, draw(JSON))
            else:
                place[key] = draw(JSON)
            break
    return changed


def is_truly_current(raw: Any) -> bool:
    """Whether the published row itself says current and fresh: an oracle that shares no code with the reader."""
    if not isinstance(raw, dict) or raw.get("status") != "current":
        return False
    try:
        observed, expires = (datetime.fromisoformat(raw[key]) for key in ("observedAt", "expiresAt"))
    except (TypeError, ValueError):
        return False
    soon, old = timedelta(seconds=30), timedelta(minutes=5)
    return observed <= NOW + soon and observed > NOW - old and observed < expires and expires > NOW


def use_everything(body: str | bytes) -> LiveReport | Unreadable:
    report = parse_report(body)
    roll_up(report, Clocks(NOW_AT))
    history = parse_history(body)
    if isinstance(history, History):
        for row in history.rows:
            assert len(buckets_of(history, row)) in (0, history.length)
            for incident in incidents_of(history, row):
                assert history.from_at <= incident.begins_at < (incident.ends_at or history.to_at + 1)
            for window in WINDOWS:
                coverage = coverage_of(history, row, window)
                assert 0 <= coverage.known <= coverage.existing <= coverage.buckets
    return report


@pytest.mark.clause("C4", "C7", "C11")
@given(reports().flatmap(mutated))
def test_nothing_in_a_mutated_report_is_healthier_than_published(document: dict[str, Any]) -> None:
    report = use_everything(json.dumps(document))
    summary = roll_up(report, Clocks(NOW_AT))
    if isinstance(report, Unreadable):
        assert not summary.healthy
        return
    raws = document["checks"]
    assert len(report.rows) == len(raws)
    for row, raw in zip(report.rows, raws, strict=True):
        assert effective_status(row, Clocks(NOW_AT)) != "current" or is_truly_current(raw)
    if summary.healthy:
        for service, chain in (check for check in ALL_CHECKS if check[1] != TEST_NETWORK):
            found = [
                raw
                for raw in raws
                if isinstance(raw, dict) and raw.get("service") == service and raw.get("chainId", ...) == chain
            ]
            assert len(found) == 1
            assert is_truly_current(found[0]) or found[0]["status"] == "unmonitored"
        for raw in raws:  # none of which is an operator's own that is red, or could be
            assert isinstance(raw, dict)
            if raw.get("service") not in SERVICES and raw.get("chainId") in (None, *MAINNETS):
                assert is_truly_current(raw) or raw["status"] == "unmonitored"


@pytest.mark.clause("C11")
def test_a_report_that_is_current_throughout_is_healthy() -> None:
    """What the property above would not notice: a reader to which nothing is ever healthy."""
    report = a_report([a_row(*check) for check in ALL_CHECKS])
    assert roll_up(parse_report(json.dumps(report)), Clocks(NOW_AT)).healthy


@pytest.mark.clause("C1", "C4", "C8")
@pytest.mark.parametrize("made", MADE, ids=["replay-11", "replay-12"])
def test_documents_that_lookout_made_are_read_whole(made: dict[str, Any]) -> None:
    report, history = parse_report(json.dumps(made["live"])), parse_history(json.dumps(made["history"]))
    assert isinstance(report, LiveReport)
    assert isinstance(history, History)
    assert report.unreadable_rows == history.unreadable_rows == 0
    assert list(rows_by_check(report)) == list(rows_by_check(history))
    assert report.generated_at is not None
    for row, raw in zip(report.rows, made["live"]["checks"], strict=True):
        expired = raw["expiresAt"] is not None and raw["expiresAt"] <= made["live"]["generatedAt"]
        assert effective_status(row, Clocks(report.generated_at)) == ("stale" if expired else raw["status"])
    assert not {effective_status(row, Clocks(report.generated_at + 150_000)) for row in report.rows} & {
        "current",
        "degraded",
    }


@pytest.mark.clause("C7")
@given(reports(), st.integers(0, 20), JSON)
def test_a_bad_row_in_a_report_changes_no_other(document: dict[str, Any], index: int, bad: Any) -> None:
    before = parse_report(json.dumps(document))
    document["checks"].insert(index, bad)
    after = parse_report(json.dumps(document))
    assert isinstance(before, LiveReport)
    assert isinstance(after, LiveReport)
    assert isinstance(after.rows[index], UnreadableRow)
    assert rows_by_check(after) == rows_by_check(before)


@pytest.mark.clause("C7")
@given(histories(), st.integers(0, 5), JSON, st.sampled_from(["buckets", "uptime", None]))
def test_a_bad_row_in_a_history_changes_no_other(
    document: dict[str, Any], index: int, bad: Any, part: str | None
) -> None:
    before = parse_history(json.dumps(document))
    if part is None:
        document["rows"][index] = bad
    else:
        document["rows"][index][part] = bad
    after = parse_history(json.dumps(document))
    assert isinstance(before, History)
    assert isinstance(after, History)
    for other, row in enumerate(before.rows):
        assert other == index or after.rows[other] == row


@pytest.mark.clause("C6")
@pytest.mark.parametrize(
    "body", ["[" * 200_000, '{"a":' * 200_000, "1" * 10_000, '{"schemaVersion":' + "1" * 10_000 + "}"]
)
def test_documents_made_to_exhaust_a_reader_are_unreadable(body: str) -> None:
    assert isinstance(parse_report(body), Unreadable)
    assert isinstance(parse_history(body.encode()), Unreadable)


@pytest.mark.clause("C9")
@pytest.mark.parametrize("part", ["{}", "[]"])
def test_16_mib_of_nothing_but_parts_are_refused_before_they_are_parsed(part: str) -> None:
    body = '{"schemaVersion":1,"checks":[' + f"{part}," * 5_500_000 + part + "]}"
    began = time.process_time()
    assert parse_report(body) == Unreadable("it is not JSON")
    assert time.process_time() - began < 0.5  # parsing it takes seconds


def documents(count: int) -> tuple[str, str]:
    rows = [a_row("indexer", chain) for chain in range(1, count + 1)]
    buckets = (("c" * 200 + "kdu?-") * 20)[:4033]
    long = [{"service": "indexer", "chainId": row["chainId"], "buckets": buckets, "uptime": {}} for row in rows]
    borders = {"from": text(NOW - timedelta(seconds=300 * 4032)), "to": text(NOW)}
    return (
        json.dumps(a_report(rows)),
        json.dumps({"schemaVersion": 1, "bucketSeconds": 300, **borders, "rows": long}),
    )


def steps(live: str, past: str, chains: range) -> int:
    """How many lines of Python reading and using both takes."""
    ran = 0

    def count(_frame: FrameType, event: str, _: object) -> Any:
        nonlocal ran
        ran += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        roll_up(parse_report(live), Clocks(NOW_AT), chains=chains)
        history = parse_history(past)
        assert isinstance(history, History)
        for row in history.rows:
            incidents_of(history, row)
            coverage_of(history, row, "14d")
    finally:
        sys.settrace(before)
    assert history.unreadable_rows == 0
    return ran


def test_reading_takes_as_many_steps_as_there_are_rows() -> None:
    quarter = steps(*documents(100), range(1, 101))
    full = steps(*documents(400), range(1, 401))
    assert full < 4.2 * quarter
