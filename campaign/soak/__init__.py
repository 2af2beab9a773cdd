"""Whether anything grows: over a simulated year, and while the whole service lives fast for twenty minutes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from campaign.part import Outcome, Part, Tell
from campaign.soak import fast, year

DAYS: Final = 365


def run(seconds: float, tell: Tell) -> Outcome:
    """The years first, then the fast lives for as long as may be."""
    with ThreadPoolExecutor(2) as pool:
        years = list(pool.map(lambda size: year.lived(size, DAYS, tell), year.SIZES))
    with ThreadPoolExecutor(2) as pool:
        lives = list(pool.map(lambda size: fast.lived(size, seconds, tell), fast.SIZES))
    outcomes = [*years, *lives]
    tried = {what: number for outcome in outcomes for what, number in outcome.tried.items()}
    return Outcome(tried, tuple(failure for outcome in outcomes for failure in outcome.failures))


PART: Final = Part(
    "a year on the virtual clock and a fast life: nothing grows, with 21 rows and with 2,101",
    20,
    run,
    mostly_waits=True,
)
