"""The documents as JSON: their types, their canonical bytes with the ETag, and their schemas."""

import zlib
from collections.abc import Iterable
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from lookout.core.history import HistoryView, Uptime
from lookout.core.instants import format_instant, format_second, parse_instant
from lookout.core.model import Metrics, Row

SCHEMA_VERSION: Final = 1
_GZIP: Final = 31  # zlib's word for gzip's format with the largest window; the header's instant is then always 0
_LEVEL: Final = 6  # from here on each per cent of a history's size takes a multiple of the time

_SECOND = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}"
Instant = Annotated[str, Meta(pattern=_SECOND + r"\.\d{3}Z$", description="UTC, to the millisecond")]
Second = Annotated[str, Meta(pattern=_SECOND + "Z$", description="UTC, to the second")]

# Plain strings where the contract's set of values is open: a reader has to bear values that do not exist yet.
ServiceName = Annotated[str, Meta(description="today messaging, ppoi, broadcasters, indexer or hosted-indexer")]
ChainId = Annotated[int, Meta(ge=1)]


class LiveRow(Struct, frozen=True, rename="camel"):
    """One row of the live report."""

    service: ServiceName
    chain_id: Annotated[ChainId | None, Meta(description="null for a check that is of no chain: messaging")]
    status: Annotated[
        str, Meta(description="today current, catching-up, degraded, unavailable, unknown or unmonitored")
    ]
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
    chain_id: Annotated[ChainId | None, Meta(description="null for a check that is of no chain: messaging")]
    buckets: Annotated[
        str,
        Meta(
            description="a character per bucket, oldest first: today c current, k catching-up, d degraded,"
            " u unavailable, ? unknown, . unmonitored, - no data; the last one can still change"
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


class Document(Struct, frozen=True):
    """A document as it is stored and served: the same bytes and ETag on every server."""

    body: bytes
    etag: str
    generated_at: int


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


def live_document(published_at: int, rows: Iterable[LiveRow]) -> Document:
    return _document(published_at, LiveReport(SCHEMA_VERSION, format_instant(published_at), list(rows)))


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


def schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas (2020-12) of both documents, by name. They describe today's documents and accept additions (V1)."""
    return {"liveness": _schema(LiveReport), "history": _schema(HistoryReport)}


def _schema(document: type[Struct]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(document)}


def _document(generated_at: int, report: Struct) -> Document:
    body = msgspec.json.encode(report)
    return Document(body, etag(body), generated_at)


def etag(body: bytes) -> str:
    """A strong validator: a quoted hash of 16 characters (A4)."""
    return f'"{blake2b(body, digest_size=8).hexdigest()}"'


def compress(body: bytes) -> bytes:
    """As gzip. Nothing in it says when it was made."""
    return zlib.compress(body, _LEVEL, _GZIP)


def unpacks_to(packed: bytes, body: bytes) -> bool:
    """Whether this is exactly that body as gzip. No more of it is unpacked than the body is long."""
    unpacking = zlib.decompressobj(_GZIP)
    try:
        unpacked = unpacking.decompress(packed, len(body) + 1)
    except zlib.error:
        return False
    return unpacking.eof and unpacked == body and not unpacking.unused_data


class _Assembled(Struct):
    at: str = field(name="generatedAt")


def assembled_at(body: bytes) -> int | None:
    """When a document says that it was assembled, None if it does not. Its ETag vouches for that, while nothing vouches
    for an instant that is stored beside it."""
    try:
        return parse_instant(msgspec.json.decode(body, type=_Assembled).at)
    except (ValueError, RecursionError):
        return None


def _instant(at: int | None) -> str | None:
    return None if at is None else format_instant(at)


def paths(protocol: str) -> tuple[str, str]:
    """Where the live report and the history are (A1)."""
    return f"/api/v1/{protocol}/liveness", f"/api/v1/{protocol}/liveness/history"
