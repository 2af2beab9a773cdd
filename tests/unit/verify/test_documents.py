"""The rules of both documents: no stranger's JSON breaks them, and their uptime is that of the contract."""

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lookout.core.history import uptime
from lookout.verify.clauses import ClauseFinding, verify_visit
from lookout.verify.documents import History, read_document
from lookout.verify.history_rules import calculate_uptime, find_change
from lookout.verify.visit import EndpointVisit, Exchange, HttpAnswer, Visit

AT = "2026-11-05T12:00:00.000Z"
LIVE: dict[str, Any] = {
    "schemaVersion": 1,
    "generatedAt": "2026-11-05T12:00:01.000Z",
    "checks": [
        {
            "service": "indexer",
            "chainId": 1,
            "status": "current",
            "reason": "synced",
            "observedAt": AT,
            "lastSuccessAt": AT,
            "expiresAt": "2026-11-05T12:02:30.000Z",
            "metrics": {"position": 5, "head": 6},
        },
        {
            "service": "hosted-indexer",
            "chainId": 1,
            "status": "unmonitored",
            "reason": "not-configured",
            "observedAt": None,
            "lastSuccessAt": None,
            "expiresAt": None,
            "metrics": {},
        },
    ],
}
HISTORY: dict[str, Any] = {
    "schemaVersion": 1,
    "generatedAt": "2026-11-05T12:00:01.000Z",
    "bucketSeconds": 300,
    "retentionDays": 14,
    "from": "2026-11-05T10:55:00Z",
    "to": "2026-11-05T12:00:00Z",
    "rows": [
        {
            "service": "indexer",
            "chainId": 1,
            "buckets": "cccccckccccc-?",
            "uptime": {"24h": 0.9167, "7d": 0.9167, "14d": 0.9167},
        },
        {
            "service": "hosted-indexer",
            "chainId": 1,
            "buckets": "." * 14,
            "uptime": {"24h": None, "7d": None, "14d": None},
        },
    ],
}
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(AT)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def places(document: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The way to each value in a document."""
    within: list[tuple[str | int, object]] = []
    if isinstance(document, dict):
        within = list(document.items())
    elif isinstance(document, list):
        within = list(enumerate(document))
    return [way, *(place for key, value in within for place in places(value, (*way, key)))]


def put(document: Any, way: tuple[str | int, ...], value: object) -> bytes:
    """The document with another value at a place."""
    if not way:
        return json.dumps(value).encode()
    changed = copy.deepcopy(document)
    holder = changed
    for step in way[:-1]:
        holder = holder[step]
    holder[way[-1]] = value
    return json.dumps(changed).encode()


def judge(live: bytes | None = None, *histories: bytes) -> list[ClauseFinding]:
    """What the documents themselves show of the clauses."""

    def serve(noun: str, *bodies: bytes | None) -> EndpointVisit:
        answers = [HttpAnswer(200, (), body) for body in bodies if body is not None]
        return EndpointVisit(noun, "/", tuple(Exchange("watch", "GET", "/", {}, seen, 0) for seen in answers))

    findings = verify_visit(Visit(0, serve("live report", live), serve("history", *histories)))
    return [each for each in findings if each.clause[0] in "RSH" and not each.what.startswith("not shown")]


def clauses(findings: list[ClauseFinding], verdict: str) -> set[str]:
    return {each.clause for each in findings if each.verdict == verdict}


def test_ordinary_documents_have_no_failure() -> None:
    findings = judge(json.dumps(LIVE).encode(), json.dumps(HISTORY).encode())
    assert clauses(findings, "fail") == set()
    assert len(clauses(findings, "pass")) > 20


@given(st.sampled_from(places(LIVE)), values)
def test_no_live_report_is_too_strange_to_be_judged(way: tuple[str | int, ...], value: object) -> None:
    judge(put(LIVE, way, value), json.dumps(HISTORY).encode())


@given(st.sampled_from(places(HISTORY)), values)
def test_no_history_is_too_strange_to_be_judged(way: tuple[str | int, ...], value: object) -> None:
    body, whole = put(HISTORY, way, value), json.dumps(HISTORY).encode()
    judge(json.dumps(LIVE).encode(), whole, body, whole)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param('{"a": 1}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b'{"a": Infinity}', id="infinity"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b"1" * 10_000, id="long number"),
    ],
)
def test_what_is_no_json_object_is_a_failure(body: bytes) -> None:
    assert clauses(judge(body), "fail") == {"R1"}
    assert clauses(judge(None, body), "fail") == {"H1"}


@given(st.text("ckdu?.-", max_size=400))
@example("c" * 20_001 + "k")  # almost always
def test_uptime_counted_from_characters_is_the_monitors_own(buckets: str) -> None:
    known = sum(character in "ckdu" for character in buckets)
    assert calculate_uptime(buckets) == uptime(buckets.count("c"), known, 12)


@pytest.mark.parametrize(
    ("lifetime", "verdict"),
    [("12:02:30.000Z", "pass"), ("12:05:00.000Z", "could not tell"), ("12:00:00.000Z", "fail")],
    ids=["150 s", "tuned to 300 s", "0 s"],
)
def test_a_lifetime_of_all_rows_may_be_tuned(lifetime: str, verdict: str) -> None:
    body = put(LIVE, ("checks", 0, "expiresAt"), f"2026-11-05T{lifetime}")
    assert [found.verdict for found in judge(body) if found.clause == "R7"] == [verdict]


def a_history(from_: str, to: str, *buckets: str, bucket_s: int = 300) -> History:
    rows = [HISTORY["rows"][0] | {"chainId": chain_id, "buckets": each} for chain_id, each in enumerate(buckets, 1)]
    span = {"from": f"2026-11-05T{from_}:00Z", "to": f"2026-11-05T{to}:00Z"}
    history = read_document(json.dumps(HISTORY | span | {"bucketSeconds": bucket_s, "rows": rows}).encode(), History)
    assert isinstance(history, History)
    return history


@pytest.mark.parametrize(
    ("later", "changed"),
    [
        pytest.param(a_history("10:00", "10:15", "ckdu", "cccc"), None, id="the same"),
        pytest.param(a_history("10:00", "10:15", "ckdc", "cccu"), None, id="the bucket that fills"),
        pytest.param(a_history("10:05", "10:20", "kdu-", "cccc"), None, id="moved on"),
        pytest.param(a_history("10:05", "10:20", "kduu", "cucc"), "indexer 2", id="moved on, and changed"),
        pytest.param(a_history("10:05", "10:20", "uduu", "cccc"), "indexer 1", id="its first bucket"),
        pytest.param(a_history("10:00", "10:10", "ckd", "ccu"), None, id="set back"),
        pytest.param(a_history("10:00", "10:10", "cud", "ccu"), "indexer 1", id="set back, and changed"),
        pytest.param(a_history("11:00", "11:15", "uuuu", "uuuu"), None, id="nothing in common"),
        pytest.param(a_history("10:00", "10:15", "kk", "kk", bucket_s=900), None, id="longer buckets"),
        pytest.param(a_history("10:02", "10:17", "uuuu", "uuuu"), None, id="between the buckets"),
        pytest.param(a_history("10:00", "10:15", "ckdu"), None, id="a row less"),
        pytest.param(a_history("10:00", "10:15", "ckdu", "cccc", "uuuu"), None, id="a row more"),
    ],
)
def test_ended_buckets_of_two_histories(later: History, changed: object) -> None:
    assert find_change(a_history("10:00", "10:15", "ckdu", "cccc"), later) == changed
