"""The effective status of a live report's row at an instant (C1 to C4)."""

from math import isfinite
from typing import Final

from lookout_reader.document import UnreadableRow
from lookout_reader.report import Row
from lookout_reader.statuses import KNOWN_STATUSES, EffectiveStatus

_KNOWN: Final[dict[str | None, EffectiveStatus]] = {word: word for word in KNOWN_STATUSES}
FUTURE_MS: Final = 30_000  # C2
OLD_MS: Final = 300_000  # C3


def effective_status(
    row: Row | UnreadableRow | None, now: float, received_ago_ms: float | None = 0, clock_ahead_ms: float | None = None
) -> EffectiveStatus:
    """The row's effective status at ``now``, in milliseconds since 1970.

    An unreadable or missing row is unknown, and so is every monitored row for a reader without a clock.
    ``received_ago_ms`` is how long ago its report first arrived, by a clock that is never set: a row is at least that
    old, whatever ``now`` says. With ``clock_ahead_ms``, as an update has it, no row is judged by a clock that is known
    to be behind.
    """
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
