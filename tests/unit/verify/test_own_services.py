"""What ``verify`` finds in rows of an operator's own services (R14)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.verify.clauses import ClauseFinding
from tests.unit.verify.test_documents import AT, LIVE, judge, put, values

COMPARED = {"position": 5, "head": 6}
ANSWERING = {
    "service": "bundler",
    "chainId": 1,
    "status": "current",
    "reason": "responding",
    "observedAt": AT,
    "lastSuccessAt": AT,
    "expiresAt": "2026-11-05T12:02:30.000Z",
    "metrics": {},
}
UNJUDGED = {"status": "unknown", "lastSuccessAt": None, "expiresAt": None}


def findings_of(*own: dict[str, Any]) -> list[ClauseFinding]:
    return judge(live=json.dumps(LIVE | {"checks": [*LIVE["checks"], *own]}).encode())


@pytest.mark.clause("R14")
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="an answer and nothing more"),
        pytest.param({"chainId": None}, id="of no chain"),
        pytest.param({"metrics": {"responding": 2, "monitored": 2}}, id="members that all answer"),
        pytest.param({"metrics": {"peers": 2}}, id="peers"),
        pytest.param({"reason": "synced", "metrics": COMPARED}, id="a position that is near its head"),
        pytest.param({"status": "catching-up", "reason": "behind", "metrics": COMPARED}, id="behind"),
        pytest.param({"status": "degraded", "reason": "behind", "metrics": COMPARED}, id="far behind"),
        pytest.param(
            {"status": "degraded", "reason": "partial-coverage", "metrics": {"responding": 1, "monitored": 2}},
            id="members of which some answer",
        ),
        pytest.param({"status": "unavailable", "reason": "unreachable", "lastSuccessAt": None}, id="unreachable"),
        pytest.param(UNJUDGED | {"reason": "no-observation"}, id="nothing there"),
        pytest.param(
            UNJUDGED | {"reason": "incompatible-reference", "metrics": {"position": 5}}, id="a position without a head"
        ),
    ],
)
def test_a_row_that_follows_the_rules_passes(fields: dict[str, Any]) -> None:
    findings = findings_of(ANSWERING | fields)
    assert {finding.verdict for finding in findings} == {"pass"}
    assert "R14" in {finding.clause for finding in findings}


@pytest.mark.clause("R14")
@pytest.mark.parametrize(
    ("fields", "what"),
    [
        pytest.param({"service": "Oracle 1"}, "cannot have that name", id="a name that is none"),
        pytest.param(
            {"reason": "behind", "metrics": COMPARED}, "current does not go with behind", id="current, behind"
        ),
        pytest.param(
            {"reason": "partial-coverage", "metrics": {"responding": 1, "monitored": 2}},
            "current does not go with partial-coverage",
            id="current of a part",
        ),
        pytest.param(
            {"metrics": {"responding": 1, "monitored": 2}}, "current with metrics", id="current though one is silent"
        ),
        pytest.param({"metrics": {"responding": 3, "monitored": 2}}, "current with metrics", id="more than there are"),
        pytest.param({"metrics": {"responding": 0, "monitored": 0}}, "current with metrics", id="none of none"),
        pytest.param({"metrics": {"peers": 0}}, "current with metrics", id="current without a peer"),
        pytest.param(
            {"status": "degraded", "reason": "behind", "metrics": {"position": 6, "head": 6}},
            "degraded with metrics",
            id="behind without a lag",
        ),
        pytest.param({"reason": "synced"}, "'synced' with metrics {}", id="synced without a position"),
        pytest.param({"metrics": COMPARED}, "'responding' with metrics", id="an answer with a position"),
        pytest.param({"metrics": {"responding": 1}}, "'responding' with metrics", id="responding alone"),
        pytest.param({"metrics": {"monitored": 1}}, "'responding' with metrics", id="monitored alone"),
        pytest.param({"metrics": {"peers": 1, "responding": 1, "monitored": 1}}, "with metrics", id="of two shapes"),
        pytest.param({"reason": "synced", "metrics": {"position": 5}}, "with metrics", id="synced without a head"),
        pytest.param({"reason": "brand-new", "metrics": {"head": 5}}, "'brand-new' with metrics", id="a head alone"),
        pytest.param(
            UNJUDGED | {"reason": "incompatible-reference", "metrics": COMPARED}, "with metrics", id="not comparable"
        ),
    ],
)
def test_a_row_that_breaks_them_fails(fields: dict[str, Any], what: str) -> None:
    failures = [finding for finding in findings_of(ANSWERING | fields) if finding.verdict == "fail"]
    assert [finding.clause for finding in failures] == ["R14"]
    assert what in failures[0].what


@pytest.mark.clause("R14")
def test_a_row_of_no_chain_is_the_only_one_of_its_service() -> None:
    failures = [each for each in findings_of(ANSWERING | {"chainId": None}, ANSWERING) if each.verdict == "fail"]
    assert [(finding.clause, finding.what) for finding in failures] == [
        ("R14", "live report: 'bundler' has a row of no chain, and one of a chain")
    ]
    apart = findings_of(ANSWERING | {"chainId": None, "service": "relayer"}, ANSWERING)
    assert {finding.verdict for finding in apart} == {"pass"}


@pytest.mark.clause("R14", "C5", "V1")
@pytest.mark.parametrize(
    ("fields", "clause"),
    [
        pytest.param({"reason": "brand-new"}, "R2", id="a reason"),
        pytest.param({"status": "splendid"}, "R2", id="a status"),
        pytest.param({"metrics": {"latency": 5}}, "R14", id="a metric"),
    ],
)
def test_what_may_be_of_a_newer_contract_is_no_failure(fields: dict[str, Any], clause: str) -> None:
    findings = findings_of(ANSWERING | fields)
    assert "fail" not in {finding.verdict for finding in findings}
    assert clause in {finding.clause for finding in findings if finding.verdict == "could not tell"}


@given(st.sampled_from(list(ANSWERING)), values)
def test_no_row_is_too_strange_to_be_judged(field: str, value: object) -> None:
    judge(live=put({"schemaVersion": 1, "checks": [ANSWERING]}, ("checks", 0, field), value))
