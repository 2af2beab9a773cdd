"""Where log lines go, and how they look."""

import logging
import os
from contextlib import suppress
from typing import Final

from lookout.base.logger import structlog
from lookout.config.tables import LogTable

_STANDARD_ERROR: Final = 2


def configure_log(settings: LogTable) -> None:
    """Lines on standard error: for people on a terminal, as JSON elsewhere, unless the settings choose."""
    for_people = settings.format == "console" or (settings.format == "auto" and os.isatty(_STANDARD_ERROR))
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    steps, dev = structlog.processors, structlog.dev
    without_variables = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)  # they may hold secrets
    structlog.configure(
        processors=[
            steps.add_log_level,
            steps.TimeStamper(fmt="iso", utc=True),
            *([] if for_people else [steps.ExceptionRenderer(without_variables)]),
            dev.ConsoleRenderer(exception_formatter=dev.plain_traceback) if for_people else steps.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(),
    )


class _Lines:
    """Lines on standard error. One that cannot be written is lost: a full disk or a closed pipe ends no monitor."""

    def msg(self, line: str) -> None:
        with suppress(OSError):  # and nothing is left in a buffer to fail again at the end
            os.write(_STANDARD_ERROR, f"{line}\n".encode(errors="replace"))

    debug = info = warning = error = critical = exception = msg
