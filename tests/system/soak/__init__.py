"""Whether anything grows: over a simulated year, and while the whole service lives fast for twenty minutes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from tests.campaign.part import Outcome, Part
from tests.system.soak import fast, year

Size = TypeVar("Size")


def _years(_seconds: float) -> Outcome:
    return _together(lambda size: year.run(size, year.DAYS[size]), tuple(year.DAYS))


def _lives(seconds: float) -> Outcome:
    return _together(lambda size: fast.run(size, seconds), fast.SIZES)


def _together(live: Callable[[Size], Outcome], sizes: tuple[Size, ...]) -> Outcome:
    with ThreadPoolExecutor(len(sizes)) as pool:
        outcomes = list(pool.map(live, sizes))
    tried = {what: number for outcome in outcomes for what, number in outcome.tried.items()}
    return Outcome(tried, tuple(failure for outcome in outcomes for failure in outcome.failures))


YEAR: Final = Part("on the virtual clock nothing grows: a year with 21 rows, five months with 2,101", 20, _years)
LIFE: Final = Part(
    "the service at many times its pace: nothing grows, with 21 rows and with 2,101", 20, _lives, mostly_waits=True
)
