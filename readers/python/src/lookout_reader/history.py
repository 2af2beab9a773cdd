"""The history: a character per bucket and row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from lookout_reader.document import Check, Fields, Unreadable, UnreadableRow, is_object, read_document, read_rows, whole
from lookout_reader.instants import parse_instant
from lookout_reader.statuses import CHARACTERS, NO_DATA, PublishedStatus

Window = Literal["24h", "7d", "14d"]
#: The windows of uptime and coverage, in seconds.
WINDOWS: Final[dict[Window, int]] = {"24h": 86_400, "7d": 604_800, "14d": 1_209_600}

_BUCKETS_MOST: Final = 250_000  # of a row: 14 days of 5 seconds
_STATUSES: Final[dict[str, PublishedStatus]] = {character: word for word, character in CHARACTERS.items()}
_UNKNOWN_CHARACTER: Final = re.compile(f"[^{re.escape(''.join(_STATUSES))}]")


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """The history of one check; characters that this reader does not know are ``-`` (C5).

    ``uptime`` is as published: the share of current buckets among the known ones, None where there is no figure.
    """

    service: str
    chain_id: int | None
    buckets: str
    uptime: Mapping[Window, float | None]

    @property
    def check(self) -> Check:
        return (self.service, self.chain_id)


@dataclass(frozen=True, slots=True)
class History:
    """The last days of the rows: ``length`` buckets, of which the last, which began at ``to_at``, is still filling."""

    generated_at: int | None
    bucket_seconds: int
    retention_days: int | None
    from_at: int
    to_at: int
    length: int
    rows: tuple[HistoryRow | UnreadableRow, ...]

    @property
    def unreadable_rows(self) -> int:
        return sum(isinstance(row, UnreadableRow) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket of one row. Show a filling bucket as provisional (C13)."""

    begins_at: int
    ends_at: int
    character: str
    status: PublishedStatus | None
    filling: bool


def parse_history(text: str | bytes) -> History | Unreadable:
    """The history in ``text``, or why it cannot be read. Never raises."""
    found = read_document(text, "rows")
    if isinstance(found, Unreadable):
        return found
    fields, rows = found
    bucket_seconds = whole(fields.get("bucketSeconds"), 1)
    from_at, to_at = parse_instant(fields.get("from")), parse_instant(fields.get("to"))
    if bucket_seconds is None or from_at is None or to_at is None:
        return Unreadable("its from, to and bucketSeconds do not fit together")
    ended, rest = divmod(to_at - from_at, bucket_seconds * 1000)
    if ended < 0 or rest:
        return Unreadable("its from, to and bucketSeconds do not fit together")
    length = ended + 1
    if length > _BUCKETS_MOST:
        return Unreadable("its buckets are too many")
    return History(
        generated_at=parse_instant(fields.get("generatedAt")),
        bucket_seconds=bucket_seconds,
        retention_days=whole(fields.get("retentionDays"), 1),
        from_at=from_at,
        to_at=to_at,
        length=length,
        rows=read_rows(rows, lambda raw, check: _read_row(raw, check, length)),
    )


def bucket_begins_at(history: History, index: int) -> int:
    return history.from_at + index * history.bucket_seconds * 1000


def buckets_of(history: History, row: HistoryRow | UnreadableRow) -> list[Bucket]:
    """The buckets of a row with their instants; none if the row is unreadable."""
    return [
        Bucket(
            begins_at=bucket_begins_at(history, index),
            ends_at=bucket_begins_at(history, index + 1),
            character=character,
            status=_STATUSES.get(character),
            filling=index == history.length - 1,
        )
        for index, character in enumerate(characters_of(row))
    ]


def characters_of(row: HistoryRow | UnreadableRow) -> str:
    return row.buckets if isinstance(row, HistoryRow) else ""


def _read_row(raw: Fields, check: Check, length: int) -> HistoryRow | str:
    uptime, buckets = raw.get("uptime"), raw.get("buckets")
    if not is_object(uptime):
        return "its uptime is missing"
    if not isinstance(buckets, str):
        return "its buckets are not text"
    if len(buckets) != length:
        return "its buckets have the wrong length"
    shares: dict[Window, float | None] = {window: _share(uptime.get(window)) for window in WINDOWS}
    return HistoryRow(*check, _UNKNOWN_CHARACTER.sub(NO_DATA, buckets), shares)


def _share(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None
