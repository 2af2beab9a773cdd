"""The two documents held against the contract, by rules written anew from it: nothing of the monitor is used here."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from lookout.documents.document import Document

ORDER = ["messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer"]
REASONS = {
    "current": {"synced", "responding"},
    "catching-up": {"behind"},
    "degraded": {"behind", "partial-coverage"},
    "unavailable": {"unreachable"},
    "unknown": {"unreachable", "no-observation", "incompatible-reference"},
    "unmonitored": {"not-configured"},
}
KEYS = {"service", "chainId", "status", "reason", "observedAt", "lastSuccessAt", "expiresAt", "metrics"}
MILLISECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LIFETIME = timedelta(seconds=150)
BUCKET = timedelta(seconds=300)


def assert_report_is_right(document: Document) -> dict[str, Any]:
    """The live report keeps R1 to R12."""
    report: dict[str, Any] = json.loads(document.body)
    assert report.keys() == {"schemaVersion", "generatedAt", "checks"}
    assert report["schemaVersion"] == 1
    assert MILLISECONDS.fullmatch(report["generatedAt"])
    _assert_in_order(report["checks"])
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
    _assert_in_order(history["rows"])
    for row in history["rows"]:
        assert row.keys() == {"service", "chainId", "buckets", "uptime"}
        assert len(row["buckets"]) == length
        assert set(row["buckets"]) <= set("ckdu?.-")
        assert row["uptime"] == {
            name: recounted(row["buckets"][-1 - days * 288 :]) for name, days in (("24h", 1), ("7d", 7), ("14d", 14))
        }
    return history


def recounted(buckets: str) -> float | None:
    """Uptime, counted anew (H9 to H11)."""
    current = buckets.count("c")
    known = current + buckets.count("k") + buckets.count("d") + buckets.count("u")
    if known < 12:
        return None
    if current == known:
        return 1.0
    share = (Decimal(current) / Decimal(known)).quantize(Decimal("0.0001"), ROUND_HALF_EVEN)
    return float(min(share, Decimal("0.9999")))


def _assert_in_order(rows: list[dict[str, Any]]) -> None:
    """Each check once, by service and ascending chain (R1, R12)."""
    places = [(ORDER.index(row["service"]), row["chainId"] or 0) for row in rows]
    assert places == sorted(set(places))


def _assert_row_is_right(row: dict[str, Any]) -> None:
    assert row.keys() == KEYS
    service, status, metrics = row["service"], row["status"], row["metrics"]
    assert row["reason"] in REASONS[status]
    assert (row["chainId"] is None) == (service == "messaging")
    for name in ("observedAt", "lastSuccessAt", "expiresAt"):
        assert row[name] is None or MILLISECONDS.fullmatch(row[name])
    if status in ("unknown", "unmonitored"):
        assert row["expiresAt"] is None
    else:
        assert _instant(row["expiresAt"]) - _instant(row["observedAt"]) == LIFETIME
    if status in ("current", "catching-up", "degraded"):
        assert row["lastSuccessAt"] == row["observedAt"]
    assert metrics.keys() == _metric_names(service, status, row["reason"])
    assert all(type(value) is int and 0 <= value < 2**53 for value in metrics.values())
    assert metrics.get("responding", 0) <= metrics.get("monitored", 0)


def _metric_names(service: str, status: str, reason: str) -> set[str]:
    """R8, R9, R13."""
    if reason == "incompatible-reference":
        return {"position"} if service.endswith("indexer") else set()
    if status in ("unknown", "unavailable", "unmonitored"):
        return set()
    return {"messaging": {"peers"}, "broadcasters": {"responding", "monitored"}}.get(service, {"position", "head"})


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
