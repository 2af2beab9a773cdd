"""The effective status of a live report's row at an instant (C1 to C4)."""

from math import isfinite
from typing import Final

from lookout_reader.clocks import Clocks, clocks_of
from lookout_reader.document import UnreadableRow
from lookout_reader.report import Row
from lookout_reader.statuses import KNOWN_STATUSES, EffectiveStatus

_KNOWN: Final[dict[str | None, EffectiveStatus]] = {word: word for word in KNOWN_STATUSES}
FUTURE_MS: Final = 30_000  # C2
OLD_MS: Final = 300_000  # C3


def effective_status(
    row: Row | UnreadableRow | None,
    now: Clocks | float | None = None,
    received_ago_ms: float | None = None,
    clock_ahead_ms: float | None = None,
) -> EffectiveStatus:
    """The row's effective status at this moment, by the clocks of the reader that it came to, or else the wall clock.

    An unreadable or missing row is unknown, and so is every monitored row for a reader without a clock. Tests give
    ``Clocks`` as ``now``; the three numbers of 2.0.0 are deprecated.
    """
    arrival = row.arrival if isinstance(row, Row) else None
    return judge_row(row, clocks_of(arrival, now, received_ago_ms, clock_ahead_ms))


def judge_row(row: Row | UnreadableRow | None, clocks: Clocks) -> EffectiveStatus:
    """A row is at least as old as its report's arrival, and no row is judged by a clock that is known to be behind."""
    now, received_ago_ms, clock_ahead_ms, _ = clocks
    if not isinstance(row, Row):
        return "unknown"
    if row.published_status == "unmonitored":  # C1
        return "unmonitored"
    status = _KNOWN.get(row.published_status)
    if status is None or not isfinite(now):  # C1
        return "unknown"
    if row.observed_at is None or row.expires_at is None:  # C2
        return "unknown"
    if row.observed_at - now > FUTURE_MS or row.expires_at <= row.observed_at:  # C2
        return "unknown"
    if (clock_ahead_ms or 0) < -FUTURE_MS:  # C2
        return "unknown"
    if row.expires_at <= now or now - row.observed_at >= OLD_MS:  # C3
        return "stale"
    if not (received_ago_ms or 0) < min(row.expires_at - row.observed_at, OLD_MS):  # C3, even if the clock is slow
        return "stale"
    return status  # C4
