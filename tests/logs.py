"""What this very process logs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookout.base.logger import LogLine, set_sink


@contextmanager
def capture_logs() -> Iterator[list[dict[str, Any]]]:
    """The lines logged meanwhile: their fields, ``event`` and ``log_level``."""
    lines: list[dict[str, Any]] = []

    def keep(line: LogLine) -> None:
        lines.append({**line.fields, "event": line.event, "log_level": line.level})

    before = set_sink(keep)
    try:
        yield lines
    finally:
        set_sink(before)
