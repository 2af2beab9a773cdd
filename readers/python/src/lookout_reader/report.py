"""The live report."""

from dataclasses import dataclass, field, fields, replace

from lookout_reader.clocks import Arrival
from lookout_reader.document import (
    DEEPEST,
    Check,
    Fields,
    Unreadable,
    UnreadableRow,
    is_object,
    read_document,
    read_json,
    read_row,
    read_rows,
    whole,
)
from lookout_reader.instants import parse_instant


@dataclass(frozen=True, slots=True)
class Metrics:
    """The numbers that are known; None is not 0 (C5)."""

    position: int | None = None
    head: int | None = None
    responding: int | None = None
    monitored: int | None = None
    peers: int | None = None
    missing: int | None = None
    extra: int | None = None
    breaks: int | None = None
    gap: int | None = None
    views: int | None = None
    agreeing: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One row as published. ``effective_status`` gives its status now."""

    service: str
    chain_id: int | None
    published_status: str | None
    reason: str | None
    observed_at: int | None
    last_success_at: int | None
    expires_at: int | None
    metrics: Metrics
    arrival: Arrival | None = field(default=None, repr=False, compare=False)

    @property
    def check(self) -> Check:
        return (self.service, self.chain_id)


@dataclass(frozen=True, slots=True)
class LiveReport:
    """What one monitor saw, as of ``generated_at``."""

    generated_at: int | None
    rows: tuple[Row | UnreadableRow, ...]

    @property
    def unreadable_rows(self) -> int:
        return sum(isinstance(row, UnreadableRow) for row in self.rows)

    @property
    def arrival(self) -> Arrival | None:
        return next((row.arrival for row in self.rows if isinstance(row, Row)), None)

    def arrived(self, arrival: Arrival) -> "LiveReport":
        """The same, judged by the clocks of the reader that it came to."""
        rows = (replace(row, arrival=arrival) if isinstance(row, Row) else row for row in self.rows)
        return replace(self, rows=tuple(rows))


def parse_report(text: str | bytes) -> LiveReport | Unreadable:
    """The live report in ``text``, or why it cannot be read. Never raises."""
    found = read_document(text, "checks")
    if isinstance(found, Unreadable):
        return found
    fields, checks = found
    return LiveReport(parse_instant(fields.get("generatedAt")), read_rows(checks, read_report_row))


def parse_row(text: bytes) -> Row | UnreadableRow | Unreadable:
    """The row in ``text``, a part of a report, as ``parse_report`` reads it."""
    raw = read_json(text, DEEPEST - 2)  # the report and its list are around it
    return raw if isinstance(raw, Unreadable) else read_row(raw, read_report_row)


def read_report_row(raw: Fields, check: Check) -> Row:
    return Row(
        *check,
        published_status=_text(raw.get("status")),
        reason=_text(raw.get("reason")),
        observed_at=parse_instant(raw.get("observedAt")),
        last_success_at=parse_instant(raw.get("lastSuccessAt")),
        expires_at=parse_instant(raw.get("expiresAt")),
        metrics=_read_metrics(raw.get("metrics")),
    )


def _read_metrics(raw: object) -> Metrics:
    if not is_object(raw):
        return Metrics()
    return Metrics(**{field.name: whole(raw.get(field.name), 0) for field in fields(Metrics)})


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
