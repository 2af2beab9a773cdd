"""The destination and the format of log lines."""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from lookout.base.logger import LogLine, set_sink
from lookout.config.tables import LogTable

_STANDARD_ERROR: Final = 2
_LEVELS: Final = ("debug", "info", "warning", "error")
_COLOURS: Final = {"warning": "33", "error": "31"}


def configure_log(settings: LogTable) -> None:
    """Lines on standard error: for people on a terminal, as JSON elsewhere, unless the settings choose."""
    is_terminal = os.isatty(_STANDARD_ERROR)
    for_people = settings.format == "console" or (settings.format == "auto" and is_terminal)
    has_colours = is_terminal and "NO_COLOR" not in os.environ
    shown = _LEVELS[_LEVELS.index(settings.level) :]

    def write(line: LogLine) -> None:
        if line.level in shown:
            at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
            fields = {**line.fields, "event": line.event, "level": line.level, "timestamp": at}
            text = _for_people(line, at, has_colours) if for_people else json.dumps(fields, default=repr)
            with suppress(OSError):  # a full disk or a closed pipe loses the line, and does not end the monitor
                os.write(_STANDARD_ERROR, f"{text}\n".encode(errors="replace"))

    set_sink(write)


def _for_people(line: LogLine, at: str, has_colours: bool) -> str:
    fields = dict(line.fields)
    exception = fields.pop("exception", None)
    level = f"{line.level:<7}"
    if has_colours and line.level in _COLOURS:
        level = f"\x1b[{_COLOURS[line.level]}m{level}\x1b[0m"
    shown = "".join(f" {name}={_show(value)}" for name, value in sorted(fields.items()))
    return f"{at} [{level}] {line.event:<30}{shown}".rstrip() + ("" if exception is None else f"\n{exception}")


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text) if any(character in text for character in " \t\r\n\"'=") else text
