"""An operator's note in words: what it is about, and when."""

from collections.abc import Sequence

from lookout.base.instants import format_second


def scope_text(services: Sequence[str], chain_names: Sequence[str]) -> str:
    """The rows that it is about, such as ``indexer, ppoi on Polygon``."""
    if not services and not chain_names:
        return "everything"
    what = ", ".join(services) or "all services"
    return f"{what} on {', '.join(chain_names)}" if chain_names else what


def time_text(from_at: int, until_at: int | None) -> str:
    """Both ends in UTC, and the day once if it is one."""
    begin = _minute_text(from_at)
    if until_at is None:
        return f"from {begin} UTC on"
    end = _minute_text(until_at)
    day, _, time = end.partition(" ")
    return f"from {begin} to {time if begin.startswith(day) else end} UTC"


def _minute_text(at: int) -> str:
    """Without seconds, where there are none."""
    return format_second(at).removesuffix("Z").removesuffix(":00").replace("T", " ")
