"""Worlds of lists and of nodes beside them, by the thousand: of the rules alone, and of the real monitor."""

import logging
import multiprocessing
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from tests.campaign.part import Outcome, Part
from tests.simulation.listed import live_monitor
from tests.simulation.lists import Outcome as Lived
from tests.simulation.lists import live
from tests.simulation.silence import without_logs

_log: Final = logging.getLogger("campaign.lists")
_KINDS: Final = {"lists beside the chain": 10_000, "monitors": 300}
_PROCESSES: Final = 2


def run(_seconds: float) -> Outcome:
    tried, failures, hours = dict[str, int](), list[str](), 0.0
    with multiprocessing.get_context("spawn").Pool(_PROCESSES, initializer=os.nice, initargs=(5,)) as pool:
        for kind, worlds in _KINDS.items():
            lived = pool.map(partial(_live, kind), range(worlds), chunksize=20)
            tried[kind] = len(lived)
            hours += sum(outcome.hours for outcome in lived)
            failures += [outcome.problem for outcome in lived if outcome.problem]
            _log.info(f"{len(lived):,} {kind}, {hours:,.0f} hours in all, {len(failures)} failures")
    return Outcome({**tried, "simulated hours": round(hours)}, tuple(failures))


def _live(kind: str, seed: int) -> Lived:
    if kind == "lists beside the chain":
        return live(seed)
    with without_logs(), tempfile.TemporaryDirectory() as folder:
        return live_monitor(Path(folder), seed)


PART: Final = Part("worlds of lists that lose entries, and of ppoi nodes beside them", 12, run)
