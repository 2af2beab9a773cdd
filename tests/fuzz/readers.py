"""Hostile documents to both readers: they make the same of them, never raise, and nothing is healthier than it says.

The two share no line of code, so each is the other's judge. That a row is current is also held against the row itself.
"""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from lookout.documents.reports import history_document, live_document
from lookout_reader import (
    WINDOWS,
    Clocks,
    HistoryRow,
    Row,
    Unreadable,
    UnreadableRow,
    buckets_of,
    coverage_of,
    effective_status,
    incidents_of,
    parse_history,
    parse_report,
    roll_up,
)
from tests.fuzz.changes import changed_json
from tests.fuzz.hunt import Found, Kind
from tests.integration.served import a_ledger

NODE: Final = shutil.which("node") or ""
_SCRIPT: Final = Path(__file__).with_name("readers.mjs")
NOW: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOW_AT: Final = int(NOW.timestamp() * 1000)
_METRICS: Final = ("position", "head", "responding", "monitored", "peers")


def read_with_python(body: bytes) -> dict[str, Any]:
    return {"report": _report(body), "history": _history(body)}


def _report(body: bytes) -> dict[str, Any]:
    read = parse_report(body)
    summary = roll_up(read, Clocks(NOW_AT))
    rolled = {"status": summary.status, "healthy": summary.healthy}
    if isinstance(read, Unreadable):
        return {"problem": read.problem, **rolled}
    rows = [
        [
            row.service,
            row.chain_id,
            isinstance(row, Row),
            effective_status(row, Clocks(NOW_AT)),
            _metrics(row),
            _why(row),
        ]
        for row in read.rows
    ]
    return {"problem": None, **rolled, "counts": dict(summary.counts), "generatedAt": read.generated_at, "rows": rows}


def _metrics(row: Row | UnreadableRow) -> dict[str, int]:
    known = {} if isinstance(row, UnreadableRow) else {name: getattr(row.metrics, name) for name in _METRICS}
    return {name: number for name, number in known.items() if number is not None}


def _why(row: object) -> str | None:
    return row.problem if isinstance(row, UnreadableRow) else None


def _history(body: bytes) -> dict[str, Any]:
    read = parse_history(body)
    if isinstance(read, Unreadable):
        return {"problem": read.problem}
    rows = [
        [
            row.service,
            row.chain_id,
            row.buckets if isinstance(row, HistoryRow) else None,
            dict(row.uptime) if isinstance(row, HistoryRow) else None,
            _why(row),
            sum(bucket.status == "current" for bucket in buckets_of(read, row)),
            [[incident.begins_at, incident.ends_at, incident.worst] for incident in incidents_of(read, row)],
            [coverage_of(read, row, window).known for window in WINDOWS],
        ]
        for row in read.rows
    ]
    return {"problem": None, "length": read.length, "from": read.from_at, "to": read.to_at, "rows": rows}


def compare_readers(body: bytes, python: dict[str, Any], javascript: dict[str, Any] | None) -> str:
    """``javascript`` is None where there is no Node to ask."""
    report, history = python["report"], python["history"]
    for number, row in enumerate(report.get("rows", ())):
        if row[3] == "current" and not _is_current(
            json.loads(body.decode("utf-8-sig"), parse_int=float)["checks"][number]
        ):
            raise Found(f"row {number} is taken for current, and does not say so", body)
    if report["problem"] is not None and report["healthy"]:
        raise Found("a report that cannot be read is healthy", body)
    # What is the same in both languages is the same in JSON.
    if javascript is not None and json.loads(json.dumps(python)) != javascript:
        raise Found(f"the readers differ: {json.dumps([python, javascript])[:600]}", body)
    kinds = sorted({(row[2], row[3], row[5] or "") for row in report.get("rows", ())})
    return f"{report['problem']} {history['problem']} {report['status']} {kinds}"


def _is_current(row: Any) -> bool:
    """Whether a published row says itself that it is current and still holds: of no reader's code."""
    try:
        observed, expires = (datetime.fromisoformat(row[key]) for key in ("observedAt", "expiresAt"))
    except ValueError:
        return False
    is_fresh = NOW - timedelta(minutes=5) < observed <= NOW + timedelta(seconds=30)
    return row["status"] == "current" and is_fresh and observed < expires and expires > NOW


def _documents() -> list[bytes]:
    ledger = a_ledger()
    at, until = (
        text.isoformat(timespec="milliseconds").replace("+00:00", "Z") for text in (NOW, NOW + timedelta(seconds=150))
    )
    live = json.loads(live_document(ledger.report()).body)
    for row in live["checks"]:
        if row["observedAt"] is not None:
            row |= {"status": "current", "observedAt": at, "expiresAt": until}
    vectors = Path(__file__).parent.parent.parent / "tests" / "data" / "vectors"
    made = json.loads((vectors / "replay-11.expected.json").read_bytes())
    others = (live, made["live"], made["history"])
    return [
        live_document(ledger.report()).body,
        history_document(ledger.view()).body,
        *(json.dumps(each).encode() for each in others),
    ]


@contextmanager
def _judging() -> Iterator[Callable[[bytes], str]]:
    if not NODE:
        yield lambda case: compare_readers(case, read_with_python(case), None)
        return
    command = [NODE, str(_SCRIPT), str(NOW_AT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        asked, answered = node.stdin, node.stdout
        assert asked is not None
        assert answered is not None

        def judge(case: bytes) -> str:
            asked.write(base64.b64encode(case) + b"\n")
            asked.flush()
            return compare_readers(case, read_with_python(case), json.loads(answered.readline()))

        try:
            yield judge
        finally:
            asked.close()


READERS: Final = Kind(changed_json(_documents()), _judging)
