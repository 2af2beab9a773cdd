"""What a measurement gives: a figure, what it is held against, and the target if there is one."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    measured: str
    figure: str
    against: str = ""
    ratio: float | None = None
    target: str = ""
    missed: bool = False


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """The shortest of several runs: what else the machine does can only make a run longer."""
    shortest = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - began)
    return shortest


def percentile(values: Sequence[float], percent: int) -> float:
    """What so many percent of the values stay under; without values there is no saying how much it would be."""
    ordered = sorted(values)
    return ordered[len(ordered) * percent // 100] if ordered else float("inf")


def spread(values_s: Sequence[float]) -> str:
    """Durations as a reader wants them: the usual one, and the one that few are above."""
    return f"median {percentile(values_s, 50):.2f} s, p99 {percentile(values_s, 99):.2f} s"
