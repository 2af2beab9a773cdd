"""Reads a witness's live report by the reader's rules (W2)."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from lookout.base.instants import format_duration
from lookout.core.model import Check, Gaps, Metrics, Reason, Row, Status, unmonitored
from lookout.features.witnesses.rules import BEST_FIRST
from lookout.features.witnesses.settings import WitnessTable
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request, below
from lookout.protocols.client.session import Session
from lookout_reader.document import Fields, Unreadable, UnreadableRow, is_object, read_document, read_rows, whole
from lookout_reader.feed import BODIES_MOST, Answer, Feed, wrong_clock
from lookout_reader.instants import parse_instant
from lookout_reader.report import LiveReport, read_report_row
from lookout_reader.report import Row as ReportRow
from lookout_reader.status import FUTURE_MS

EVERY_MS: Final = 5_000
_COMBINED: Final = "it is combined"
_REASON: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_METRICS: Final = Metrics.__struct_fields__
_FINDINGS: Final = frozenset(Gaps.__struct_fields__)
_FINDINGS_REASONS: Final = ("incomplete", "inconsistent")


class Reading(Struct, frozen=True):
    """What is known of the report that a witness gave last."""

    report_at: int | None = None
    """When the witness made its last report, by its own clock; None if it never gave one."""
    clock_ahead_ms: int | None = None
    """How far our clock seems to be ahead of the witness's; None if that is unknown."""
    doubts: tuple[str, ...] = ()
    """Causes of what is wrong with the last report, though it could be read: its age, its clock, no rows."""


def new_feed(report_at: int | None = None) -> Feed[LiveReport]:
    """After a report that was made at ``report_at``: an older one is not taken (C14), and the same is nothing new."""
    held = None if report_at is None else LiveReport(report_at, ())
    return Feed("liveness", parse_witness, EVERY_MS / 1000, EVERY_MS / 1000, document=held)


async def ask(witness: WitnessTable, path: str, etag: str | None, session: Session) -> Answer:
    """Ask for the live report, which may be unchanged. ProbeFailed if there is no answer."""
    headers = witness.headers if etag is None else {**witness.headers, "If-None-Match": etag}
    access = replace(witness, headers=headers)
    try:
        found = await session.ask(Request("GET", below(witness.url, path), access, limit_bytes=BODIES_MOST["liveness"]))
    except ProbeFailed as failure:
        if failure.code != HTTPStatus.NOT_MODIFIED:
            raise
        return Answer(failure.code)
    etag, date, age = (found.headers.get(name, b"").decode("latin-1") for name in (b"etag", b"date", b"age"))
    return Answer(found.http_code, found.body, etag, date=date, age=age)


def parse_witness(body: str | bytes) -> LiveReport | Unreadable:
    """The report, unless it is combined itself. A row with a metric that is no count is unreadable (R10)."""
    found = read_document(body, "checks")
    if isinstance(found, Unreadable):
        return found
    fields, rows = found
    if any("views" in _metrics_of(row) for row in rows if is_object(row)):
        return Unreadable(_COMBINED)
    return LiveReport(parse_instant(fields.get("generatedAt")), read_rows(rows, _read_row))


def _read_row(raw: Fields, check: tuple[str, int | None]) -> ReportRow | str:
    if any(name in _METRICS and whole(count, 0) is None for name, count in _metrics_of(raw).items()):
        return "a metric is no count"
    return read_report_row(raw, check)


def _metrics_of(row: Fields) -> Fields:
    metrics = row.get("metrics")
    return metrics if is_object(metrics) else {}


def find_cause(feed: Feed[LiveReport]) -> str | None:
    """Why the last answer could not be read."""
    if feed.problem is None:
        return None
    if feed.code == "wrong-version":
        return "other_version"
    return "combined" if feed.problem.endswith(_COMBINED) else f"not_a_report: {feed.problem}"


def describe_reading(feed: Feed[LiveReport], age: str | None, *, has_rows: bool) -> Reading:
    """``age`` is the answer's, and ``has_rows`` whether its report has a row that is asked about."""
    report_at = None if feed.document is None else feed.document.generated_at
    age_s = int(age) if age is not None and _SECONDS.fullmatch(age) else None
    ahead_ms = None if feed.clock_ahead_ms is None else round(feed.clock_ahead_ms)
    doubts = [f"cached: {age_s} s"] if age_s else []
    if ahead_ms is not None and wrong_clock(ahead_ms) is not None:
        doubts.append(f"clocks_differ: {format_duration(abs(ahead_ms))}")
    if feed.document is not None and not has_rows:
        doubts.append("no_rows")
    return Reading(report_at, ahead_ms, tuple(doubts))


def knows_time(feed: Feed[LiveReport]) -> bool:
    """Whether our clock is not known to be behind the witness's (C2)."""
    return feed.clock_ahead_ms is None or feed.clock_ahead_ms >= -FUTURE_MS


def view_of(
    check: Check, found: ReportRow | UnreadableRow | None, at: int, lifetime_ms: int, *, knows_time: bool
) -> Row:
    """The view of a witness whose report, read at this instant, has this row for the check. A row that does not count
    is ``unknown``, and ``unmonitored`` if the witness does not watch the check (W2, W3)."""
    if found is None or (isinstance(found, ReportRow) and found.published_status == "unmonitored"):
        return unmonitored(check)
    if isinstance(found, UnreadableRow) or _REASON.fullmatch(found.reason or "") is None:
        return Row(check, "unknown", "no-observation")
    reason = cast("Reason", found.reason)  # perhaps one of a later version
    status = next((status for status in BEST_FIRST if status == found.published_status), None)
    observed_at, expires_at = found.observed_at, found.expires_at
    if status is None or observed_at is None or expires_at is None or not knows_time:  # C1, C2
        return Row(check, "unknown", reason)
    if observed_at - at > FUTURE_MS or expires_at <= observed_at:  # C2
        return Row(check, "unknown", reason)
    metrics = {name: count for name, count in asdict(found.metrics).items() if count is not None}
    if not _fit(status, reason, metrics):
        return Row(check, "unknown", reason)
    seen_at, lasts_ms = min(observed_at, at), min(expires_at - observed_at, lifetime_ms)
    success_at = None if found.last_success_at is None else min(found.last_success_at, at)  # one that can be stored
    return Row(check, status, reason, seen_at, success_at, seen_at + lasts_ms, Metrics(**metrics))


def _fit(status: Status, reason: Reason, metrics: Mapping[str, int]) -> bool:
    """Whether the row keeps R9 and S18, so that it may be published: one witness must not make ours break them."""
    has_findings = bool(metrics.keys() & _FINDINGS)
    if has_findings != (reason in _FINDINGS_REASONS) or (has_findings and status != "degraded"):
        return False
    members = metrics.keys() & {"responding", "monitored"}
    return not members or (len(members) == 2 and metrics["responding"] <= metrics["monitored"])
