"""Instants: milliseconds since 1970, read from the documents' and from HTTP's text."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Final

_INSTANT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?Z", re.ASCII
)
_HTTP_DATE: Final = re.compile(
    r"[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT", re.ASCII
)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS: Final = ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed")  # from the epoch's on
_DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def instant_now() -> int:
    """The instant of this machine's clock."""
    return time.time_ns() // 1_000_000


def parse_instant(value: object) -> int | None:
    """The instant in ``YYYY-MM-DDTHH:mm:ss.sssZ``, with or without the fraction; None for anything else."""
    parts = _INSTANT.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        return None
    *calendar, fraction = parts.groups(default="")
    second_at = _utc(*map(int, calendar))
    return None if second_at is None else second_at + int(fraction[:3].ljust(3, "0"))


def parse_http_date(value: object) -> int | None:
    """The instant in a ``Date`` header; None for anything else."""
    parts = _HTTP_DATE.fullmatch(value) if isinstance(value, str) else None
    if parts is None or parts[2] not in _MONTHS:
        return None
    at = _utc(int(parts[3]), _MONTHS.index(parts[2]) + 1, int(parts[1]), *map(int, parts.groups()[3:]))
    return at if at is not None and parts[0].startswith(_WEEKDAYS[at // _DAY_MS % 7]) else None


def _utc(*calendar: int) -> int | None:
    year, month, day, hour, minute, second = calendar
    try:
        found = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:  # there is no 31st of June
        return None
    return None if year < _EPOCH.year else (found - _EPOCH) // timedelta(milliseconds=1)
