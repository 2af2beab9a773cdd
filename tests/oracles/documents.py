"""The form of the two documents (clauses R1 to R13, H1 to H5 and H9 to H12)."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from lookout.documents.document import Document
from tests.oracles.history import uptime

ORDER = ["messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer"]
REASONS = {
    "current": {"synced", "responding"},
    "catching-up": {"behind"},
    "degraded": {"behind", "partial-coverage", "incomplete", "inconsistent"},
    "unavailable": {"unreachable"},
    "unknown": {"unreachable", "no-observation", "incompatible-reference"},
    "unmonitored": {"not-configured"},
}
FIELDS = ["service", "chainId", "status", "reason", "observedAt", "lastSuccessAt", "expiresAt", "metrics"]
MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LIFETIME = timedelta(seconds=150)
BUCKET = timedelta(seconds=300)


def assert_report_is_right(document: Document) -> dict[str, Any]:
    """The live report keeps R1 to R12."""
    report: dict[str, Any] = json.loads(document.body)
    assert list(report) == ["schemaVersion", "generatedAt", "checks"]
    assert report["schemaVersion"] == 1
    assert MILLISECONDS.fullmatch(report["generatedAt"])
    assert is_in_order(report["checks"])
    for row in report["checks"]:
        _assert_row_is_right(row)
    return report


def assert_history_is_right(document: Document) -> dict[str, Any]:
    """The history keeps H1 to H5 and H9 to H12: uptime is what a recount of its own characters gives."""
    history: dict[str, Any] = json.loads(document.body)
    assert history.keys() == {
        *("schemaVersion", "generatedAt", "bucketSeconds", "retentionDays", "from", "to", "rows"),
    }
    assert (history["schemaVersion"], history["bucketSeconds"], history["retentionDays"]) == (1, 300, 14)
    assert MILLISECONDS.fullmatch(history["generatedAt"])
    assert SECONDS.fullmatch(history["from"])
    assert SECONDS.fullmatch(history["to"])
    from_at, to_at, generated_at = (_instant(history[name]) for name in ("from", "to", "generatedAt"))
    assert from_at.timestamp() % 300 == to_at.timestamp() % 300 == 0
    assert to_at <= generated_at < to_at + BUCKET
    length = (to_at - from_at) // BUCKET + 1
    assert 1 <= length <= 4033
    assert is_in_order(history["rows"])
    for row in history["rows"]:
        assert row.keys() == {"service", "chainId", "buckets", "uptime"}
        assert len(row["buckets"]) == length
        assert set(row["buckets"]) <= set("ckdu?.-")
        assert row["uptime"] == {
            name: uptime(row["buckets"][-1 - days * 288 :]) for name, days in (("24h", 1), ("7d", 7), ("14d", 14))
        }
    return history


def is_in_order(rows: list[dict[str, Any]]) -> bool:
    """Whether each check is there once, by service and ascending chain (R1, R12)."""
    places = [(ORDER.index(row["service"]), row["chainId"] or 0) for row in rows]
    return places == sorted(set(places))


def _assert_row_is_right(row: dict[str, Any]) -> None:
    assert list(row) == FIELDS
    service, status, metrics = row["service"], row["status"], row["metrics"]
    assert row["reason"] in REASONS[status]
    assert (row["chainId"] is None) == (service == "messaging")
    assert row["chainId"] is None or row["chainId"] > 0
    for name in ("observedAt", "lastSuccessAt", "expiresAt"):
        assert row[name] is None or MILLISECONDS.fullmatch(row[name])
    if status in ("unknown", "unmonitored"):
        assert row["expiresAt"] is None
    else:
        assert _instant(row["expiresAt"]) - _instant(row["observedAt"]) == LIFETIME
    if status in ("current", "catching-up", "degraded"):
        assert row["lastSuccessAt"] == row["observedAt"]
    gaps = metrics.keys() & {"missing", "extra"}
    assert metrics.keys() - gaps == _metric_names(service, status, row["reason"])
    assert gaps >= _GAPS.get(row["reason"], set())
    assert not gaps or row["reason"] in _GAPS
    assert all(type(value) is int and 0 <= value < 2**53 for value in metrics.values())
    assert metrics.get("responding", 0) <= metrics.get("monitored", 0)
    if row["reason"] == "partial-coverage":
        assert 0 < metrics["responding"] < metrics["monitored"]
    if status == "unmonitored":
        assert row["observedAt"] is row["lastSuccessAt"] is None


_GAPS = {"incomplete": {"missing"}, "inconsistent": {"extra"}}


def _metric_names(service: str, status: str, reason: str) -> set[str]:
    """R8, R9, R13, S18."""
    if reason == "incompatible-reference":
        return {"position"} if service.endswith("indexer") else set()
    if status in ("unknown", "unavailable", "unmonitored"):
        return set()
    return {"messaging": {"peers"}, "broadcasters": {"responding", "monitored"}}.get(service, {"position", "head"})


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
