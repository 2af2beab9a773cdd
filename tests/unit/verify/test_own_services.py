"""What ``verify`` finds in rows of an operator's own services (R14)."""

import json
from typing import Any

import pytest

from lookout.verify.clauses import ClauseFinding
from tests.unit.verify.test_documents import AT, LIVE, clauses, judge

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
    return judge(json.dumps(LIVE | {"checks": [*LIVE["checks"], *own]}).encode())


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
    assert clauses(findings, "fail") == set()
    assert "R14" in clauses(findings, "pass")


@pytest.mark.clause("R14")
@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        pytest.param({"service": "Oracle 1"}, "R14", id="a name that is none"),
        pytest.param({"reason": "behind", "metrics": COMPARED}, "S4", id="current, behind"),
        pytest.param({"metrics": {"responding": 1, "monitored": 2}}, "S10", id="current though one is silent"),
        pytest.param({"metrics": {"responding": 0, "monitored": 0}}, "S10", id="none of none"),
        pytest.param({"metrics": {"peers": 0}}, "S11", id="current without a peer"),
        pytest.param(
            {"status": "degraded", "reason": "behind", "metrics": {"position": 6, "head": 6}}, "S4", id="without a lag"
        ),
        pytest.param({"reason": "synced"}, "R9", id="synced without a position"),
        pytest.param({"metrics": {"responding": 1}}, "R9", id="responding alone"),
    ],
)
def test_a_row_that_breaks_them_fails(fields: dict[str, Any], broken: str) -> None:
    assert clauses(findings_of(ANSWERING | fields), "fail") == {broken}


@pytest.mark.clause("R14")
def test_a_row_of_no_chain_is_the_only_one_of_its_service() -> None:
    assert clauses(findings_of(ANSWERING | {"chainId": None}, ANSWERING), "fail") == {"R14"}
    apart = findings_of(ANSWERING | {"chainId": None, "service": "relayer"}, ANSWERING)
    assert clauses(apart, "fail") == set()


@pytest.mark.clause("R14", "C5", "V1")
@pytest.mark.parametrize("fields", [{"reason": "brand-new"}, {"status": "splendid"}, {"metrics": {"latency": 5}}])
def test_what_may_be_of_a_newer_contract_is_no_failure(fields: dict[str, Any]) -> None:
    assert clauses(findings_of(ANSWERING | fields), "fail") == set()
