"""Instants as text: exactly the two forms that the contract knows."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Far enough from the calendar's ends that adding a row's lifetime or a window can never leave it.
_YEARS = range(1970, 9999)


def parse_instant(text: str) -> int:
    """Read ``YYYY-MM-DDTHH:mm:ss.sssZ`` and nothing else; ValueError says what was found instead."""
    second_ms = text[17:19] + text[20:23]
    if (
        len(text) != 24
        or text[16] + text[19] + text[23] != ":.Z"
        or not (second_ms.isascii() and second_ms.isdigit() and second_ms < "60000")
    ):
        raise ValueError(f"{text!r} is not an instant like 2026-11-01T00:00:00.000Z")
    return _minute_at(text[:16]) + int(second_ms)


def format_instant(at: int) -> str:
    """``YYYY-MM-DDTHH:mm:ss.sssZ`` (R4)."""
    second, millisecond = divmod(at, 1000)
    return f"{_second_text(second)}.{millisecond:03d}Z"


def format_second(at: int) -> str:
    """``YYYY-MM-DDTHH:mm:ssZ``, for the borders of the history."""
    return f"{_second_text(at // 1000)}Z"


@lru_cache(maxsize=64)
def _minute_at(minute: str) -> int:
    try:
        found = datetime.strptime(minute, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC)
    except ValueError:
        found = _EPOCH
    if f"{found:%Y-%m-%dT%H:%M}" != minute or found.year not in _YEARS:
        raise ValueError(f"{minute!r} is not a minute between the years {_YEARS[0]} and {_YEARS[-1]}")
    return (found - _EPOCH) // _MILLISECOND


@lru_cache(maxsize=256)
def _second_text(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
