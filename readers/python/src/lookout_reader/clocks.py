"""By what rows are judged: clocks that are read at each call, since a kept instant would keep what is green, too."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

from lookout_reader.instants import instant_now


class Clocks(NamedTuple):
    """An instant; how long ago the report first arrived, by a clock that is never set; how far the first is ahead; how
    long ago the last request ended."""

    now: float
    received_ago_ms: float | None = None
    clock_ahead_ms: float | None = None
    answered_ago_ms: float | None = None


class Arrival:
    """The clocks of the reader that a report came to. Copies lack it: another process has other clocks."""

    def __init__(self, read_clocks: Callable[[], Clocks]) -> None:
        self.read_clocks = read_clocks

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _forget, ()


def _forget() -> None:
    return None


def clocks_of(
    arrival: Arrival | None,
    given: Clocks | float | None = None,
    received_ago_ms: float | None = None,
    clock_ahead_ms: float | None = None,
) -> Clocks:
    """The given clocks, or those of the arrival as they are now, or else the wall clock.

    Three numbers are how 2.0.0 was called.
    """
    if isinstance(given, Clocks):
        return given
    if given is None:
        return Clocks(instant_now()) if arrival is None else arrival.read_clocks()
    warnings.warn(
        "lookout_reader: without now, received_ago_ms and clock_ahead_ms the clocks are read; tests give Clocks(now)",
        DeprecationWarning,
        stacklevel=3,
    )
    return Clocks(given, received_ago_ms, clock_ahead_ms)
