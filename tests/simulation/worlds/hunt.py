"""Worlds by the thousand, in two processes, until the time is over or a rule is broken."""

import multiprocessing
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from hypothesis import strategies as st
from msgspec.structs import replace

from tests.campaign.part import Outcome, show_progress
from tests.fuzz.hunt import Found, Kind, hunt
from tests.simulation.worlds.script import Script, draw, encode_script
from tests.simulation.worlds.world import Lived, live

CASES: Final = Path(__file__).parent / "cases"
_PROCESSES: Final = 2
_HOURS_MS: Final = 3_600_000


@st.composite
def _scripts(choose: st.DrawFn) -> Script:
    """The world of a seed, without some of what goes wrong in it: it shrinks to what a failure needs."""
    script = draw(choose(st.integers(0, 10**12)))
    odds = st.integers(0, 19)
    faults = tuple(fault for fault in script.faults if choose(odds))
    return replace(script, faults=faults, episodes=tuple(episode for episode in script.episodes if choose(odds)))


class _Tried(NamedTuple):
    worlds: int
    simulated_ms: int
    publications: int
    failures: list[str]


def run(seconds: float) -> Outcome:
    """Try as many worlds as the time allows; the smallest in which a rule is broken is kept as a case."""
    # Spawned: a fork would copy whatever threads of this process hold.
    with multiprocessing.get_context("spawn").Pool(_PROCESSES, initializer=os.nice, initargs=(5,)) as pool:
        tried = pool.map(_hunt, [seconds] * _PROCESSES)
    worlds, simulated_ms, publications, failures = map(list, zip(*tried, strict=True))
    figures = {"worlds": sum(worlds), "simulated hours": sum(simulated_ms) // _HOURS_MS}
    return Outcome(
        {**figures, "publications": sum(publications)}, tuple(failure for each in failures for failure in each)
    )


def _hunt(seconds: float) -> _Tried:
    lived: list[Lived] = []

    def judge(script: Script) -> str:
        outcome = live(script)
        lived.append(outcome)
        if outcome.rule:
            shorter = replace(script, lasts_ms=outcome.simulated_ms + 1)
            smallest = shorter if live(shorter).rule == outcome.rule else script
            raise Found(
                f"{describe(outcome)}\nSee it again: python -m tests.simulation.worlds --case", encode_script(smallest)
            )
        return outcome.trace

    show_progress()
    worlds, failures = hunt("worlds", Kind(_scripts(), lambda: nullcontext(judge)), seconds, CASES)
    return _Tried(worlds, sum(each.simulated_ms for each in lived), sum(each.publications for each in lived), failures)


def describe(outcome: Lived) -> str:
    """What was broken, and what had happened just before."""
    return "\n".join((outcome.message or "every rule held", *(f"    {line}" for line in outcome.last)))
