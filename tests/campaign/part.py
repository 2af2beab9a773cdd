"""What every part of the campaign is: it tries as much as its time allows, and says how much, and what failed.

Meanwhile it logs how far it is, to a logger below "campaign".
"""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple


def show_progress() -> None:
    logging.basicConfig(format="  %(name)s: %(message)s")
    logging.getLogger("campaign").setLevel(logging.INFO)


class Outcome(NamedTuple):
    tried: Mapping[str, int]
    """How many of what: {"worlds": 4000, "publications": 12345678}."""
    failures: tuple[str, ...] = ()
    """What went wrong, each with how to see it again."""
    left_out: str = ""
    """Why it could not be tried here, and what would be needed; empty if it was."""


class Part(NamedTuple):
    what: str
    """In a line, for the list of parts."""
    minutes: float
    """How long it takes if nothing else is asked for."""
    run: Callable[[float], Outcome]
    """Takes the seconds that it may last. One whose work is fixed may take longer, but leaves none of it out."""
    mostly_waits: bool = False
    """Whether it leaves the processor to others, and so runs beside those that compute."""
