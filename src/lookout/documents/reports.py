"""The two documents as JSON: their types, their bytes, and their schemas."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from lookout.base.instants import format_instant, format_second
from lookout.core.history import HistoryView, Uptime
from lookout.core.ledger import Ledger
from lookout.core.model import Metrics, Report, Row
from lookout.core.services import SERVICES
from lookout.documents.document import Document, DocumentName, etag, with_compressed
from lookout_reader.statuses import CHARACTERS, NO_DATA

SCHEMA_VERSION: Final = 1

_SECOND = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}"
Instant = Annotated[str, Meta(pattern=_SECOND + r"\.\d{3}Z$", description="UTC, to the millisecond")]
Second = Annotated[str, Meta(pattern=_SECOND + "Z$", description="UTC, to the second")]

# Where the contract's set of values is open, the type is a plain string: readers accept values that do not exist yet.
# ``_schema`` fills in what is in braces.
ServiceName = Annotated[str, Meta(description="{services}; or a service of the operator's own")]
ChainId = Annotated[int, Meta(ge=1)]
RowChainId = Annotated[
    ChainId | None,
    Meta(description="null for a row without a chain: {shared}, and what is shared of the operator's own"),
]
_STATUSES: Final = tuple(CHARACTERS)
_CHARACTERS: Final = ", ".join(f"{character} {status}" for status, character in CHARACTERS.items())


class LiveRow(Struct, frozen=True, rename="camel"):
    """One row of the live report."""

    service: ServiceName
    chain_id: RowChainId
    status: Annotated[str, Meta(description=f"today {', '.join(_STATUSES[:-1])} or {_STATUSES[-1]}")]
    reason: Annotated[str, Meta(description="why; for a reason you do not know, act on the status alone")]
    observed_at: Annotated[Instant | None, Meta(description="when the latest probe completed")]
    last_success_at: Annotated[Instant | None, Meta(description="when the service last answered and was compared")]
    expires_at: Annotated[Instant | None, Meta(description="from when on this row says nothing any more")]
    metrics: Metrics


class LiveReport(Struct, frozen=True, rename="camel"):
    """What one monitor sees now: one row per service and chain."""

    schema_version: int
    generated_at: Annotated[Instant, Meta(description="when the report was assembled")]
    checks: list[LiveRow]


class HistoryJsonRow(Struct, frozen=True, rename="camel"):
    """The history of one row."""

    service: ServiceName
    chain_id: RowChainId
    buckets: Annotated[
        str,
        Meta(
            description=f"a character per bucket, oldest first: today {_CHARACTERS}, {NO_DATA} no data;"
            " the last one can still change"
        ),
    ]
    uptime: Uptime


class HistoryReport(Struct, frozen=True, rename="camel"):
    """The last days of the same rows, in buckets."""

    schema_version: int
    generated_at: Annotated[Instant, Meta(description="when the history was written")]
    bucket_seconds: Annotated[int, Meta(ge=1)]
    retention_days: Annotated[int, Meta(ge=1)]
    from_: Annotated[Second, Meta(description="start of the first bucket")] = field(name="from")
    to: Annotated[Second, Meta(description="start of the last bucket, which is still filling")]
    rows: list[HistoryJsonRow]


def live_row(row: Row) -> LiveRow:
    return LiveRow(
        row.check.service,
        row.check.chain_id,
        row.status,
        row.reason,
        _instant(row.observed_at),
        _instant(row.last_success_at),
        _instant(row.expires_at),
        row.metrics,
    )


def live_document(report: Report) -> Document:
    rows = list(map(live_row, report.rows))
    return _document(report.published_at, LiveReport(SCHEMA_VERSION, format_instant(report.published_at), rows))


def history_document(view: HistoryView) -> Document:
    rows = [HistoryJsonRow(*row.check, row.buckets, row.uptime) for row in view.rows]
    report = HistoryReport(
        schema_version=SCHEMA_VERSION,
        generated_at=format_instant(view.published_at),
        bucket_seconds=view.span.bucket_ms // 1000,
        retention_days=view.span.retention_days,
        from_=format_second(view.from_at),
        to=format_second(view.to_at),
        rows=rows,
    )
    return _document(view.published_at, report)


def documents_of(ledger: Ledger) -> dict[DocumentName, Document]:
    return with_compressed({"live": live_document(ledger.report()), "history": history_document(ledger.view())})


def build_schemas() -> dict[str, dict[str, Any]]:
    return {"liveness": _schema(LiveReport), "history": _schema(HistoryReport)}


def _schema(document: type[Struct]) -> dict[str, Any]:
    shared = (service.name for service in SERVICES if service.is_shared)
    text = msgspec.json.encode(msgspec.json.schema(document)).decode()
    text = text.replace("{services}", ", ".join(SERVICES.names)).replace("{shared}", ", ".join(shared))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.decode(text)}


def _document(generated_at: int, report: Struct) -> Document:
    body = msgspec.json.encode(report)
    return Document(body, etag(body), generated_at)


def _instant(at: int | None) -> str | None:
    return None if at is None else format_instant(at)
