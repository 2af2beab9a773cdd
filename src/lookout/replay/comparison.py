"""Two histories of the same days, under different settings: which buckets, uptimes and alerts differ."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from msgspec.structs import astuple

from lookout.base.instants import format_second
from lookout.core.history import HistoryView
from lookout.features.feature import SentMessage
from lookout_reader.history import WINDOWS
from lookout_reader.statuses import CHARACTERS, NO_DATA

_WORDS: Final = {**{character: status for status, character in CHARACTERS.items()}, NO_DATA: "no data"}


def compare(
    was: HistoryView,
    would_be: HistoryView,
    sent: Sequence[SentMessage] = (),
    would_send: Sequence[SentMessage] = (),
) -> Iterator[str]:
    """What another configuration with buckets of the same length makes of the same log: lines for each row that
    differs, each alert that only one of the two sends, and the totals."""
    since_at, last_at = max(was.from_at, would_be.from_at), min(was.to_at, would_be.to_at)
    bucket_ms = was.span.bucket_ms
    buckets = (last_at - since_at) // bucket_ms + 1
    was_rows = {row.check: row for row in was.rows}
    would_rows = {row.check: row for row in would_be.rows}
    both = [(was_rows[check], would_rows[check]) for check in was_rows if check in would_rows]
    changes: list[Counter[tuple[str, str]]] = []
    for row, would_row in both:
        first, would_first = ((since_at - view.from_at) // bucket_ms for view in (was, would_be))
        characters = row.buckets[first : first + buckets], would_row.buckets[would_first : would_first + buckets]
        pairs = list(zip(*characters, strict=True))
        changes.append(Counter(pair for pair in pairs if pair[0] != pair[1]))
        if changes[-1] or row.uptime != would_row.uptime:
            shares = _describe_uptimes(astuple(row.uptime), astuple(would_row.uptime))
            yield f"{row.check.name}: {_count_buckets(changes[-1].total())}; {shares}"
            yield from _describe_stretches(pairs, since_at, bucket_ms)
    yield from _compare_messages(sent, would_send)
    total = sum(changes, Counter[tuple[str, str]]())
    end = format_second(last_at + bucket_ms)
    yield f"from {format_second(since_at)} to {end}, in {sum(map(bool, changes))} of {len(both)} rows:"
    words = [f"{number:,} from {_WORDS[old]} to {_WORDS[new]}" for (old, new), number in sorted(total.items())]
    yield f"{total.total():,} of {len(both) * buckets:,} buckets would change: {', '.join(words) or 'none'}"
    if left_out := [check.name for check in (*was_rows, *would_rows) if (check in was_rows) != (check in would_rows)]:
        yield f"left out, since only one configuration has them: {', '.join(left_out)}"


def _compare_messages(sent: Sequence[SentMessage], would_send: Sequence[SentMessage]) -> Iterator[str]:
    if sent or would_send:
        yield f"{len(would_send)} alerts would have been sent instead of {len(sent)}; + is new, - is gone:"
    for message in sorted({*sent} ^ {*would_send}):
        yield f"{'+' if message in would_send else '-'} {message.at} {message.target}: {message.title}"


def _describe_stretches(pairs: Sequence[tuple[str, str]], since_at: int, bucket_ms: int) -> Iterator[str]:
    """A line for neighbouring buckets that differ in the same way."""
    number = 0
    for (was, would_be), same in groupby(pairs):
        buckets = len(list(same))
        if was != would_be:
            begin = format_second(since_at + number * bucket_ms)
            yield f"  {begin}, {_count_buckets(buckets)}: {_WORDS[was]} → {_WORDS[would_be]}"
        number += buckets


def _count_buckets(number: int) -> str:
    return f"{number:,} bucket{'s' * (number != 1)}"


def _describe_uptimes(was: Sequence[float | None], would_be: Sequence[float | None]) -> str:
    """The shares of all windows; a share is None where too few buckets are known (H10)."""
    if [*was] == [*would_be]:
        return "the same uptime"
    windows = zip(WINDOWS, was, would_be, strict=True)
    return ", ".join(f"{window} {_format_share(old)} → {_format_share(new)}" for window, old, new in windows)


def _format_share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"
