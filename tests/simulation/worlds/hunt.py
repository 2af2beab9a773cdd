"""Worlds by the thousand, in two processes, until the time is over or enough has failed."""

import logging
import multiprocessing
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple

from msgspec.structs import replace

from tests.campaign.part import Outcome
from tests.simulation.worlds.script import Script, draw, write_script
from tests.simulation.worlds.shrink import shrink_script
from tests.simulation.worlds.world import Lived, live

_log: Final = logging.getLogger("campaign.worlds")
CASES: Final = Path(__file__).parent / "cases"
_PROCESSES: Final = 2
_LOG_EVERY_S: Final = 10
_ENOUGH_FAILURES: Final = 5
_SHRINK_S: Final = 60
_HOURS_MS: Final = 3_600_000


class Tried(NamedTuple):
    seed: int
    lived: Lived


def run(seconds: float) -> Outcome:
    """Try as many seeds as the time allows, from one that nobody has chosen; a failure is shrunk and kept as a case."""
    base = SystemRandom().randrange(1_000_000) * 1_000_000
    _log.info(f"seeds from {base}")
    end = time.monotonic() + seconds
    logged = time.monotonic()
    worlds = publications = simulated_ms = 0
    failed: dict[str, Tried] = {}
    # Spawned: a fork would copy whatever threads of this process hold.
    with multiprocessing.get_context("spawn").Pool(_PROCESSES, initializer=os.nice, initargs=(5,)) as pool:
        for tried in pool.imap_unordered(_try, _seeds(base, end)):
            worlds += 1
            publications += tried.lived.publications
            simulated_ms += tried.lived.simulated_ms
            if tried.lived.rule and tried.lived.rule not in failed:
                failed[tried.lived.rule] = tried
                _log.info(f"seed {tried.seed}: {tried.lived.message.splitlines()[-1]}")
            if time.monotonic() - logged >= _LOG_EVERY_S:
                logged = time.monotonic()
                _log.info(
                    f"{worlds:,} worlds, {simulated_ms / _HOURS_MS / 24:.1f} days,"
                    f" {publications:,} publications, {len(failed)} failures"
                )
            if len(failed) >= _ENOUGH_FAILURES or time.monotonic() >= end:
                break
    failures = tuple(_keep_smallest(tried) for tried in failed.values())
    hours = round(simulated_ms / _HOURS_MS)
    return Outcome({"worlds": worlds, "simulated hours": hours, "publications": publications}, failures)


def _seeds(base: int, end: float) -> Iterator[int]:
    for seed in count(base):
        if time.monotonic() >= end:
            return
        yield seed


def _try(seed: int) -> Tried:
    return Tried(seed, live(draw(seed)))


def find_smallest(script: Script, rule: str) -> Script:
    """The smallest world that can be found in this time, in which the same rule is broken."""
    end = time.monotonic() + _SHRINK_S
    script = shrink_script(
        _shorten(script, rule),
        lambda smaller: live(smaller).rule == rule,
        lambda: time.monotonic() < end,
    )
    return _shorten(script, rule)


def _shorten(script: Script, rule: str) -> Script:
    """The same, up to the moment at which it fails, if it then still does."""
    shorter = replace(script, lasts_ms=live(script).simulated_ms + 1)
    return shorter if live(shorter).rule == rule else script


def _keep_smallest(tried: Tried) -> str:
    _log.info(f"shrinking seed {tried.seed}")
    script = find_smallest(draw(tried.seed), tried.lived.rule)
    path = CASES / f"{tried.lived.rule}-{tried.seed}.json"
    write_script(path, script)
    return describe(live(script)) + f"\nSee it again: python -m tests.simulation.worlds --case {path}"


def describe(outcome: Lived) -> str:
    """What was broken, and what had happened just before."""
    return "\n".join((outcome.message or "every rule held", *(f"    {line}" for line in outcome.last)))
