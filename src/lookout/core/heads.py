"""Reference heads: how endpoints agree on one, how old it is, and how fast its chain moves."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

PACE_WINDOW_MS: Final = 3_600_000
PART_MS: Final = 300_000
PACE_MIN_SPAN_MS: Final = 600_000
PACE_MIN_BLOCKS: Final = 10
FUTURE_TOLERANCE_MS: Final = 60_000


class Pace(NamedTuple):
    """A chain's block time as the exact fraction ``ms / blocks``, so that thresholds compare without rounding (S15)."""

    ms: int
    blocks: int


class Reading(Struct, frozen=True, gc=False, array_like=True):
    """A block height with its timestamp, and when it was read."""

    at: int
    height: int
    block_at: int


class Reference(Struct, frozen=True, gc=False):
    """What an indexer's position is compared with: the head net of its confirmations."""

    head: int
    read_at: int
    pace: Pace


def counts(answer: Reading) -> bool:
    """Whether an endpoint's answer may take part: a block from the future is no evidence (M8)."""
    return answer.block_at - answer.at <= FUTURE_TOLERANCE_MS


def agree(answers: Iterable[Reading], at: int, max_age_ms: int) -> Reading | None:
    """The head that the endpoints' latest answers give at the instant one of them answered (M8).

    The second-highest height wins, so that one endpoint that lies high, lies low, lags or is frozen moves nothing
    while two others agree; of two the lower, of one that one.
    """
    usable = sorted(
        (answer for answer in answers if at - answer.at <= max_age_ms and counts(answer)),
        key=lambda answer: (answer.height, answer.block_at),
        reverse=True,
    )
    if not usable:
        return None
    second_highest = usable[1] if len(usable) > 1 else usable[0]
    return Reading(at, second_highest.height, second_highest.block_at)


class Heads:
    """One chain's agreed heads of the last hour.

    They are stored in parts of five minutes, since the hour may come to hundreds of heads and a new one changes but
    the last part.
    """

    __slots__ = ("_readings", "_stored", "_touched", "block_time")

    def __init__(self, block_time: Pace, readings: Iterable[Reading] = ()) -> None:
        self.block_time = block_time
        self._readings = deque(readings)
        self._touched = set(map(_part, self._readings))  # since the last call of changes(); at first, everything
        self._stored: set[int] = set()  # the parts that there were then

    @property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(self._readings)

    def read(self, reading: Reading) -> None:
        """Take the newest head; forget what is read more than an hour before it."""
        readings = self._readings
        if len(readings) > 1 and readings[-2].at == reading.at:
            readings.pop()  # of those of one instant only the first and the last can matter
        readings.append(reading)
        self._touched.add(_part(reading))
        oldest_at = reading.at - PACE_WINDOW_MS
        while readings[0].at < oldest_at:
            readings.popleft()

    def changes(self) -> dict[int, tuple[Reading, ...]]:
        """The parts that are not what they were at the last call; empty ones are to be forgotten. Of a part that ages
        out nothing is told before all of it is gone: ``of_the_hour`` leaves out the rest."""
        there: dict[int, list[Reading]] = {}
        for reading in self._readings:
            there.setdefault(_part(reading), []).append(reading)
        gone = dict.fromkeys(self._stored - there.keys(), ())
        changed = {part: tuple(readings) for part, readings in there.items() if part in self._touched}
        self._stored = set(there)
        self._touched.clear()
        return gone | changed

    def clear(self) -> None:
        self._readings.clear()

    def set_back(self, by_ms: int) -> None:
        """The clock was set back: a head stays as old as it was."""
        self._readings = deque(Reading(r.at - by_ms, r.height, r.block_at) for r in self._readings)
        self._touched.update(map(_part, self._readings))

    def reference(self, confirmations: int) -> Reference | None:
        """The newest head net of ``confirmations``, never below 0 (R11); None before the first."""
        if not self._readings:
            return None
        newest = self._readings[-1]
        return Reference(max(0, newest.height - confirmations), newest.at, self.pace())

    def pace(self) -> Pace:
        """Measured over the window once that is long enough, the configured block time until then (S15)."""
        if not self._readings:
            return self.block_time
        oldest, newest = self._readings[0], self._readings[-1]
        span_ms = newest.block_at - oldest.block_at
        blocks = newest.height - oldest.height
        if span_ms < PACE_MIN_SPAN_MS or blocks < PACE_MIN_BLOCKS:
            return self.block_time
        return Pace(span_ms, blocks)


def of_the_hour(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Those of the hour before the newest."""
    return tuple(reading for reading in readings if reading.at >= readings[-1].at - PACE_WINDOW_MS)


def _part(reading: Reading) -> int:
    return reading.at // PART_MS
