"""All kinds of crash points, as a part of the campaign."""

from typing import Final

from tests.campaign.part import Outcome, Part
from tests.system.crashes import sqlite_points
from tests.system.crashes.kinds import Kind, LeftOut, try_points

KINDS: Final[dict[str, Kind]] = sqlite_points.KINDS


def run(_seconds: float) -> Outcome:
    """Every point of every kind: there are only so many of them."""
    tried: dict[str, int] = {}
    failures: list[str] = []
    left_out: list[str] = []
    for name, kind in KINDS.items():
        try:
            outcome = try_points(name, kind)
        except LeftOut as why:
            left_out.append(f"{kind.what} ({why})")
            continue
        tried[kind.what] = outcome.points
        failures += outcome.failures
    return Outcome(tried, tuple(failures), "; ".join(left_out))


PART: Final = Part("the store killed and failing at every place where it can be", 10, run)
