"""Durations as people read and write them."""

import re
from typing import Final

from lookout.base.text import shorten

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
    """In at most so many units, such as ``2 h 5 min``, the largest of them being there at least ``least`` times.

    Rounded down: nothing becomes older than it is by rounding.
    """
    rest_s = duration_ms // 1000
    first = next((n for n, (unit_s, _) in enumerate(_UNITS) if rest_s >= least * unit_s), len(_UNITS) - 1)
    parts = []
    for unit_s, name in _UNITS[first : first + units]:
        count, rest_s = divmod(rest_s, unit_s)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 s"
