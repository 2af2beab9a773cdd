"""What other processes get of the environment and the memory of this one."""

import ctypes
import re
import sys
from collections.abc import Mapping
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # in Linux' sys/prctl.h
# Where programs, libraries and files are, the language, the time zone, and what Python and libraries are set up by.
_ORDINARY: Final = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|NO_COLOR|FORCE_COLOR"
    r"|PYTHON[A-Z0-9]+|LD_[A-Z_]+|MALLOC_[A-Z_]+|SSL_CERT_(FILE|DIR)|FAKETIME\w*"
)


def pick_ordinary(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that any program needs; an operator's own, which may be secrets, are not among them."""
    return {name: value for name, value in environment.items() if _ORDINARY.fullmatch(name)}


def hide_memory() -> None:
    """Keep other processes of the same user, such as a server's workers, from reading the memory and the environment of
    this one, and the system from writing them to a file when it crashes. What this one starts is not hidden."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
