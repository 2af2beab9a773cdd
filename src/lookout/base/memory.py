"""Memory of a process that others may not read, and memory that it passes on."""

import ctypes
import os
import sys
import tempfile
from typing import Final

_PR_SET_DUMPABLE: Final = 4  # in Linux' sys/prctl.h


def hide_memory() -> None:
    """Keep other processes of the same user, such as a server's workers, from reading the memory and the environment of
    this one, and the system from writing them to a file when it crashes. What this one starts is not hidden."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def nameless_file() -> int:
    """Memory, where the system can make a file of it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("lookout")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
