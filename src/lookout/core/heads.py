"""A chain's reference heads of the last hour: how old the newest is, and how fast the chain moves."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from lookout.base.instants import move

PACE_WINDOW_MS: Final = 3_600_000
PACE_MIN_SPAN_MS: Final = 600_000
PACE_MIN_BLOCKS: Final = 10
STANDSTILL_MS: Final = 600_000
FRESH_BLOCK_MS: Final = 600_000
FINAL_MS: Final = 60_000
"""A final block has at least this much chain time above it, whatever its confirmations (S17)."""
# A chain is reported to stand still once its head has not risen for both.
_STANDS_AFTER_MS: Final = 300_000
_STANDS_AFTER_BLOCKS: Final = 20
_SETBACK_MS: Final = 60_000  # a head that is further below the highest rises from there


class Pace(NamedTuple):
    """A chain's block time as the exact fraction ``ms / blocks``, so that thresholds compare without rounding (S15)."""

    ms: int
    blocks: int

    def takes_longer(self, blocks: int, span_ms: int) -> bool:
        return blocks * self.ms > span_ms * self.blocks


class Reading(Struct, frozen=True, gc=False, array_like=True):
    """A block height with its timestamp, and when it was read."""

    at: int
    height: int
    block_at: int

    @property
    def is_fresh(self) -> bool:
        """Whether its block was new enough, when it was read, to measure the pace (S15)."""
        return self.at - self.block_at <= FRESH_BLOCK_MS


class Reference(Struct, frozen=True, gc=False):
    """What an indexer's position is compared with: ``target`` is the head less its confirmations."""

    head: int
    target: int
    read_at: int
    pace: Pace


class ChainProgress(NamedTuple):
    """How far a chain is, and how fast it moves; ``head`` is None while no head can be compared with."""

    head: Reading | None
    pace: Pace
    stands_since_at: int | None = None
    """Since when it has a head that does not rise; None while it rises, or is not known to stand still."""


class Heads:
    def __init__(self, block_time: Pace, readings: Iterable[Reading] = ()) -> None:
        self.block_time = block_time
        self.newest_of_run: Reading | None = None
        """The newest head since the monitor started, or its clock was set."""
        self._before_step: tuple[Reading, ...] = ()
        """Heads read before the clock was set forward; their age is unknown."""
        # Both cached until there is a new head, since each judgement needs them.
        self._tuple: tuple[Reading, ...] | None = None
        self._pace: Pace | None = None
        self._take_all(readings)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Of the last hour, after the one since which the head has not risen. The same object until the next head, so
        that a change is cheap to detect."""
        if self._tuple is None:
            risen = self._risen
            is_older = risen is not None and risen.at < self._readings[0].at
            self._tuple = (risen, *self._readings) if risen is not None and is_older else tuple(self._readings)
        return self._tuple

    @property
    def stands_since_at(self) -> int | None:
        """Since when the head has not risen; None unless that is long for this chain."""
        risen = self._risen
        if risen is None or (waited_ms := self._readings[-1].at - risen.at) < _STANDS_AFTER_MS:
            return None
        before = (reading for reading in self._readings if reading.at <= risen.at)
        pace = self._measure_pace(before)  # which does not slow down while the chain stands still
        return None if pace.takes_longer(_STANDS_AFTER_BLOCKS, waited_ms) else risen.at

    def is_new(self, answer: Reading) -> bool:
        """Whether an agreed answer differs from the last head of this run, and was not read before it (M8)."""
        last = self.newest_of_run
        return last is None or (answer != last and answer.at >= last.at)

    def read(self, reading: Reading) -> None:
        """Take the newest head; forget what was read more than an hour before it."""
        self._take(reading)
        self.newest_of_run = reading

    def start(self, set_by_ms: int = 0) -> None:
        """A run begins. If the clock was set back meanwhile, heads and their blocks keep their age. After a step
        forward there is no head until the next reading, and the pace is measured from the start: how much of the
        skipped time really passed is unknown, since a sleeping machine looks the same."""
        self.newest_of_run = None
        if set_by_ms:
            moved = tuple(_move(reading, set_by_ms) for reading in self.readings)
            self._before_step = moved if set_by_ms > 0 else ()
            self._take_all(() if set_by_ms > 0 else moved)

    def reference(self, confirmations: int) -> Reference | None:
        """The newest head net of ``confirmations``, never below 0 (R11); None before the first."""
        if not self._readings:
            return None
        newest = self._readings[-1]
        return Reference(newest.height, max(0, newest.height - confirmations), newest.at, self.pace())

    def progress(self, oldest_at: int) -> ChainProgress:
        """The newest head and the pace, without a head if it was read before ``oldest_at`` (S13)."""
        newest = self._readings[-1] if self._readings else None
        if newest is None or newest.at < oldest_at:
            return ChainProgress(None, self.pace())
        return ChainProgress(newest, self.pace(), self.stands_since_at)

    def highest_before(self, at: int) -> int:
        """The highest head that was read at most an hour before this instant; 0 if there is none."""
        known = (*self._before_step, *self._readings)
        return max((r.height for r in known if at - PACE_WINDOW_MS <= r.at <= at), default=0)

    def pace(self) -> Pace:
        """Measured over the window once that is long enough, the configured block time until then (S15)."""
        if self._pace is None:
            self._pace = self._measure_pace(self._readings)
        return self._pace

    def _measure_pace(self, readings: Iterable[Reading]) -> Pace:
        fresh = [reading for reading in after_the_last_standstill(tuple(readings)) if reading.is_fresh]
        if not fresh:
            return self.block_time
        oldest, newest = fresh[0], fresh[-1]
        span_ms = newest.at - oldest.at
        blocks = newest.height - oldest.height
        if span_ms < PACE_MIN_SPAN_MS or blocks < PACE_MIN_BLOCKS:
            return self.block_time
        return Pace(span_ms, blocks)

    def _take_all(self, readings: Iterable[Reading]) -> None:
        self._readings: deque[Reading] = deque()
        self._risen: Reading | None = None  # the first reading of the present height
        self._tuple = self._pace = None
        for reading in readings:
            self._take(reading)

    def _take(self, reading: Reading) -> None:
        while self._readings and self._readings[0].at < reading.at - PACE_WINDOW_MS:
            self._readings.popleft()
        self._readings.append(reading)
        fallen = 0 if self._risen is None else self._risen.height - reading.height
        if self._risen is None or fallen < 0 or self.block_time.takes_longer(fallen, _SETBACK_MS):
            self._risen = reading
        self._tuple = self._pace = None


def find_final_block(height: int, pace: Pace, confirmations: int) -> int:
    """The highest block deep enough below this height to be final (S17)."""
    return height - max(confirmations, -(-FINAL_MS * pace.blocks // pace.ms))


def after_the_last_standstill(readings: Sequence[Reading]) -> Sequence[Reading]:
    """The readings from the end of the last standstill on; all of them if the chain never stood still (S15).

    A chain stood still if ten minutes passed between the first reading of a highest height and the first reading of
    a higher one.
    """
    if not readings:
        return readings
    begin = 0
    highest = readings[0]
    for number, reading in enumerate(readings):
        if reading.height > highest.height:
            if reading.at - highest.at >= STANDSTILL_MS:
                begin = number
            highest = reading
    return readings[begin:]


def of_the_hour(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    return tuple(reading for reading in readings if reading.at >= readings[-1].at - PACE_WINDOW_MS)


def _move(reading: Reading, by_ms: int) -> Reading:
    return Reading(move(reading.at, by_ms), reading.height, move(reading.block_at, by_ms))
