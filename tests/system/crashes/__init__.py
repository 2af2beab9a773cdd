"""Crash points: the monitor's store hit at every single place where it can be, one place at a time."""

from typing import Final

from tests.campaign.part import Outcome, Part


def _run(seconds: float) -> Outcome:
    from tests.system.crashes.points import run  # not above: each victim, and there are thousands, imports this package

    return run(seconds)


PART: Final = Part("the store killed, failing, torn and cut off at every place where it can be", 15, _run)
