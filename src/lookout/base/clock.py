"""The only reader of the system's clocks."""

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """The wall clock, in milliseconds since 1970. It may jump."""

    def elapsed_ms(self) -> int:
        """A clock that never jumps; only differences mean anything."""


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def elapsed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
