"""Worlds of several places, by the thousand."""

import logging
import multiprocessing
import os
from typing import Final

from tests.campaign.part import Outcome, Part
from tests.simulation.places import live

_log: Final = logging.getLogger("campaign.places")
_WORLDS: Final = 10_000
_PROCESSES: Final = 2


def run(_seconds: float) -> Outcome:
    with multiprocessing.get_context("spawn").Pool(_PROCESSES, initializer=os.nice, initargs=(5,)) as pool:
        lived = pool.map(live, range(_WORLDS), chunksize=20)
    failures = tuple(outcome.problem for outcome in lived if outcome.problem)
    _log.info(f"{len(lived):,} worlds, {len(failures)} failures")
    return Outcome({"worlds": len(lived), "publications": sum(outcome.publications for outcome in lived)}, failures)


PART: Final = Part("several places that watch the same services, one of them faulty", 12, run)
