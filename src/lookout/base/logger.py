"""The library for log lines. It loads Rich if that is there, for tracebacks that are never drawn here: a fifth of the
time in which a process starts. So it is loaded as if Rich were not there, and by this module alone."""

import sys
from typing import Any

_rich: Any = sys.modules.get("rich")
sys.modules["rich"] = _rich  # None stands for a module that cannot be found
try:
    import structlog
finally:
    if _rich is None:
        del sys.modules["rich"]

# A command prints its result on standard output, and a log line beside it.
structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))

__all__ = ["get_logger", "structlog"]

get_logger = structlog.get_logger
