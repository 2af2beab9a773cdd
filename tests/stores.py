"""Opening a store for writing that another writer may just be leaving."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from lookout.store.protocol import StoreBusyError, Writer

_LOOK_EVERY_S: Final = 0.05

W = TypeVar("W", bound=Writer)


def once_free(open_writer: Callable[[], W], within_s: float = 30) -> W:
    """The writer, as soon as nobody else is one; StoreBusyError if somebody still is after so long."""
    until = time.monotonic() + within_s
    while True:
        try:
            return open_writer()
        except StoreBusyError:
            if time.monotonic() >= until:
                raise
            time.sleep(_LOOK_EVERY_S)
