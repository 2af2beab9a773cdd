"""Instants as text, in the two forms of the contract, and durations in words."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Final

from msgspec import Meta

from lookout.base.text import shorten

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MINUTE = "%Y-%m-%dT%H:%M:"
# The last two parts of an instant's text, in milliseconds: parsing a log's many instants has to be fast.
_SECONDS = {f"{second:02d}.": second * 1000 for second in range(60)}
_MILLISECONDS = {f"{millisecond:03d}Z": millisecond for millisecond in range(1000)}
# Instants are before this: far enough from the calendar's end that adding a row's lifetime or a window cannot leave it.
END_AT: Final = 253_370_764_800_000  # 9999-01-01T00:00:00Z
# Limits for stored values when they are read: a damaged store makes no instant that cannot be written.
Instant = Annotated[int, Meta(ge=0, lt=END_AT)]
Lasted = Annotated[int, Meta(ge=0, lt=2**53)]


def move(at: int, by_ms: int) -> int:
    """The instant, moved as the clock was set, within the range that can be stored."""
    return min(max(at + by_ms, 1 - END_AT), END_AT - 1)


def parse_instant(text: str) -> int:
    """Read ``YYYY-MM-DDTHH:mm:ss.sssZ`` and nothing else; ValueError says what was found instead."""
    try:
        return _minute_at(text[:17]) + _SECONDS[text[17:20]] + _MILLISECONDS[text[20:]]
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not an instant like 2026-11-01T00:00:00.000Z") from None


def parse_http_date(text: str) -> int:
    """Read an HTTP `Date` in the form that servers send; ValueError for any other text."""
    found = datetime.strptime(text, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    return (found - _EPOCH) // _MILLISECOND


def parse_second(text: str) -> int:
    """Read ``YYYY-MM-DDTHH:mm:ssZ`` and nothing else; ValueError says what was found instead."""
    try:
        return parse_instant(f"{text[:-1]}.000{text[-1:]}")
    except ValueError:
        raise ValueError(f"{text!r} is not an instant like 2026-11-01T00:00:00Z") from None


def format_instant(at: int) -> str:
    """``YYYY-MM-DDTHH:mm:ss.sssZ`` (R4)."""
    second, millisecond = divmod(at, 1000)
    return f"{_second_text(second)}.{millisecond:03d}Z"


def format_second(at: int) -> str:
    """``YYYY-MM-DDTHH:mm:ssZ``, for the borders of the history."""
    return f"{_second_text(at // 1000)}Z"


def format_time(at: int, now: int) -> str:
    """The time in UTC, to the minute; with the date if it is not the date of ``now``."""
    day, _, time = format_second(at).partition("T")
    return f"{time[:5]} UTC" if format_second(now).startswith(day) else f"{day} {time[:5]} UTC"


@lru_cache(maxsize=64)  # a log has many instants in few minutes
def _minute_at(minute: str) -> int:
    found = datetime.strptime(minute, _MINUTE).replace(tzinfo=UTC)
    at = (found - _EPOCH) // _MILLISECOND
    if f"{found:{_MINUTE}}" != minute or not 0 <= at < END_AT:
        raise ValueError(minute)
    return at


@lru_cache(maxsize=256)
def _second_text(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_WRITTEN: Final = re.compile(r"([0-9]{1,7}) ?(s|min|m|h|d)")
_UNIT_MS: Final = {"s": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> int:
    """Read a whole number of one unit, such as ``90min``, in milliseconds; ValueError says what was found instead."""
    written = _WRITTEN.fullmatch(text)
    if written is None or not int(written[1]):
        raise ValueError(f"{shorten(text, 40)!r} is not a duration like 30min, 2h or 1d")
    return int(written[1]) * _UNIT_MS[written[2]]


def format_duration(duration_ms: int, units: int = 2, least: int = 1) -> str:
    """In at most ``units`` units, such as ``2 h 5 min``; the largest has at least the number ``least``.

    Rounded down, so that rounding never makes an age longer.
    """
    rest_s = duration_ms // 1000
    first = next((n for n, (unit_s, _) in enumerate(_UNITS) if rest_s >= least * unit_s), len(_UNITS) - 1)
    parts = []
    for unit_s, name in _UNITS[first : first + units]:
        count, rest_s = divmod(rest_s, unit_s)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 s"
