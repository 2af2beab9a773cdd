"""Who may read the memory of a process."""

import ctypes
import sys
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # in Linux' sys/prctl.h


def hide_memory() -> None:
    """Keep other processes of the same user, such as a server's workers, from reading the memory and the environment of
    this one, and the system from writing them to a file when it crashes. What this one starts is not hidden."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
