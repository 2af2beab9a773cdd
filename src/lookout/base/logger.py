"""Log lines: an event in words, and fields. Where they go is decided once per process (``set_sink``)."""

import sys
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple


class LogLine(NamedTuple):
    level: str  # debug, info, warning or error
    event: str
    fields: dict[str, Any]


Sink = Callable[[LogLine], None]


def _print(line: LogLine) -> None:
    """The default sink: standard error, since commands print results on standard output."""
    fields = "".join(f" {name}={text}" for name, text in line.fields.items())
    sys.stderr.write(f"[{line.level}] {line.event}{fields}\n")


_sink: Sink = _print


def set_sink(sink: Sink) -> Sink:
    global _sink  # one per process, like standard error
    before, _sink = _sink, sink
    return before


class Logger:
    def debug(self, event: str, **fields: Any) -> None:
        _sink(LogLine("debug", event, fields))

    def info(self, event: str, **fields: Any) -> None:
        _sink(LogLine("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        _sink(LogLine("warning", event, fields))

    def error(self, event: str, **fields: Any) -> None:
        _sink(LogLine("error", event, fields))

    def exception(self, event: str, **fields: Any) -> None:
        """An error with the traceback of the exception that is being handled, without local variables: they may hold
        secrets."""
        _sink(LogLine("error", event, {**fields, "exception": traceback.format_exc().rstrip()}))


_logger = Logger()


def get_logger() -> Logger:
    return _logger
