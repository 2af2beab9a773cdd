"""Whether anything grows while the whole service lives fast for twenty minutes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.campaign.part import Outcome, Part
from tests.system.soak import fast


def _run(seconds: float) -> Outcome:
    with ThreadPoolExecutor(len(fast.SIZES)) as pool:
        outcomes = list(pool.map(lambda size: fast.run(size, seconds), fast.SIZES))
    tried = {what: number for outcome in outcomes for what, number in outcome.tried.items()}
    return Outcome(tried, tuple(failure for outcome in outcomes for failure in outcome.failures))


PART: Final = Part(
    "the service at many times its pace: nothing grows, with 21 rows and with 2,101", 20, _run, mostly_waits=True
)
