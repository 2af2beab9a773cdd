"""Durations as people read them."""

from typing import Final

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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
