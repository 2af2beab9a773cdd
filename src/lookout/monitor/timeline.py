"""The instants of a run: they never go back, and a wall clock that was set is noticed (M12)."""

import asyncio
from typing import Final, NamedTuple

from lookout.base.clock import Clock

STALL_MS: Final = 2_000  # the clock is read twice a second: after a longer gap, the event loop stood still
STEP_MS: Final = 5_000  # a jump of the wall clock from which on it was set


class Step(NamedTuple):
    """The wall clock was set: where it would be otherwise, and where it is."""

    expected_at: int
    at: int


class Timeline:
    """Gives each event its instant."""

    def __init__(self, clock: Clock) -> None:
        self.stepped = asyncio.Event()  # the clock was set, and not everything is being asked again yet
        self._clock = clock
        self._last_at = self._wall_at = self._elapsed_ms = 0
        self._stalled_ms = -1  # when the event loop last went on after it had stood still

    def start(self, last_at: int | None) -> int:
        """The instant of a start after a publication of ``last_at``."""
        self._wall_at, self._elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        self._last_at = self._wall_at
        if last_at is not None and self._wall_at < last_at <= self._wall_at + STEP_MS:
            # The clock of the monitor before may have been a little ahead: generatedAt never goes back.
            self._last_at = last_at
        return self._last_at

    def detect_step(self) -> Step | None:
        """Read the clock. If it was set, time goes on from where it is now."""
        now, elapsed_ms = self._clock.now(), self._clock.elapsed_ms()
        expected_at = self._wall_at + elapsed_ms - self._elapsed_ms
        if elapsed_ms - self._elapsed_ms > STALL_MS:
            self._stalled_ms = elapsed_ms
        self._wall_at, self._elapsed_ms = now, elapsed_ms
        if abs(now - expected_at) <= STEP_MS:
            return None
        self._last_at = now
        self.stepped.set()
        return Step(expected_at, now)

    def has_stalled_since(self, since_ms: int) -> bool:
        """Whether the event loop stood still meanwhile: the process was stopped, or the machine too busy."""
        return self._stalled_ms >= since_ms or self._clock.elapsed_ms() - self._elapsed_ms > STALL_MS

    def now(self, not_before: int = 0) -> int:
        """The instant at which the clock was last read, and never before the instant last used: a clock that is slowed
        down a little must not unorder events."""
        self._last_at = max(self._last_at, self._wall_at, not_before)
        return self._last_at
