"""Two histories of the same days, under different settings: which buckets and which uptimes differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import astuple

from lookout.base.instants import format_second
from lookout.core.history import DAY_MS, KNOWN, WINDOW_DAYS, HistoryRow, HistoryView, uptime
from lookout.features.feature import SentMessage
from lookout_reader.history import WINDOWS, Window


class ChangedStretch(Struct, frozen=True, rename="camel"):
    """Neighbouring buckets that differ in the same way; ``until`` is the end of the last bucket."""

    since: str
    until: str
    buckets: int
    was: str
    would_be: str


class Figure(Struct, frozen=True, rename="camel"):
    """An uptime under either settings; None where too few buckets are known (H10)."""

    was: float | None
    would_be: float | None


class ComparedRow(Struct, frozen=True, rename="camel"):
    service: str
    chain_id: int | None
    changed: int
    stretches: list[ChangedStretch]
    uptime: dict[Window, Figure]


class Total(Struct, frozen=True, rename="camel"):
    """All compared rows together. ``changes`` counts buckets: ``{"ck": 12}`` if 12 turn from c to k."""

    rows: int
    changed_rows: int
    buckets: int
    changed: int
    changes: dict[str, int]
    uptime: dict[Window, Figure]


class ComparedMessage(Struct, frozen=True, rename="camel"):
    """An alert of this second, and whether each of the two configurations sends it."""

    at: str
    target: str
    title: str
    was: bool
    would_be: bool


class HistoryComparison(Struct, frozen=True, rename="camel"):
    """How two histories differ; ``left_out`` are rows that only one of the two has."""

    bucket_seconds: int
    since: str
    until: str
    rows: list[ComparedRow]
    total: Total
    left_out: list[str]
    messages: list[ComparedMessage]


def compare_messages(was: Sequence[SentMessage], would_be: Sequence[SentMessage]) -> list[ComparedMessage]:
    """The messages of both, by their time."""
    return [ComparedMessage(*sent, sent in was, sent in would_be) for sent in sorted({*was, *would_be})]


def compare(was: HistoryView, would_be: HistoryView, messages: Sequence[ComparedMessage] = ()) -> HistoryComparison:
    """What another configuration with buckets of the same length would have made of the same log."""
    since_at, last_at = max(was.from_at, would_be.from_at), min(was.to_at, would_be.to_at)
    was_rows = {row.check: row for row in was.rows}
    would_rows = {row.check: row for row in would_be.rows}
    both = [(was_rows[check], would_rows[check]) for check in was_rows if check in would_rows]
    rows: list[ComparedRow] = []
    changes: Counter[str] = Counter()
    for row, would_row in both:
        pairs = list(
            zip(_between(was, row, since_at, last_at), _between(would_be, would_row, since_at, last_at), strict=True)
        )
        stretches = list(_stretches(pairs, since_at, was.span.bucket_ms))
        figures = map(Figure, astuple(row.uptime), astuple(would_row.uptime))
        changed = sum(stretch.buckets for stretch in stretches)
        rows.append(ComparedRow(*row.check, changed, stretches, dict(zip(WINDOWS, figures, strict=True))))
        changes.update(before + after for before, after in pairs if before != after)
    buckets = (last_at - since_at) // was.span.bucket_ms + 1
    totals = map(Figure, _total(was, [row for row, _ in both]), _total(would_be, [row for _, row in both]))
    total = Total(
        len(rows),
        sum(row.changed > 0 for row in rows),
        len(rows) * buckets,
        changes.total(),
        dict(sorted(changes.items())),
        dict(zip(WINDOWS, totals, strict=True)),
    )
    return HistoryComparison(
        was.span.bucket_ms // 1000,
        format_second(since_at),
        format_second(last_at + was.span.bucket_ms),
        rows,
        total,
        [check.name for check in (*was_rows, *would_rows) if (check in was_rows) != (check in would_rows)],
        [*messages],
    )


def _between(view: HistoryView, row: HistoryRow, since_at: int, last_at: int) -> str:
    """The characters of the buckets from the one at ``since_at`` to the one at ``last_at``."""
    first = (since_at - view.from_at) // view.span.bucket_ms
    return row.buckets[first : first + (last_at - since_at) // view.span.bucket_ms + 1]


def _stretches(pairs: Sequence[tuple[str, str]], since_at: int, bucket_ms: int) -> Iterator[ChangedStretch]:
    number = 0
    for (was, would_be), same in groupby(pairs):
        buckets = len(list(same))
        if was != would_be:
            begin_at = since_at + number * bucket_ms
            end_at = begin_at + buckets * bucket_ms
            yield ChangedStretch(format_second(begin_at), format_second(end_at), buckets, was, would_be)
        number += buckets


def _total(view: HistoryView, rows: Sequence[HistoryRow]) -> Iterator[float | None]:
    """The uptime of all these rows' buckets together, for each window (H9, H12)."""
    for days in WINDOW_DAYS:
        counts = Counter("".join(row.buckets[-(days * DAY_MS // view.span.bucket_ms + 1) :] for row in rows))
        yield uptime(counts["c"], sum(counts[character] for character in KNOWN), view.span.min_known_buckets)
