"""The whole of Lookout in simulated worlds: in short here, by the thousand in the campaign."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.worlds.hunt import CASES
from tests.simulation.worlds.script import Fault, Script, draw, read_script
from tests.simulation.worlds.world import live

MINUTE = 60_000
SEEDS = [2, 3, 4, 10, 14, 16, 17, 19]  # on either store, with one monitor or two, and nearly every kind of fault
LONG = {"the-one-that-is-told-is-unreachable", "timestamps-of-yesterday", "a-node-at-genesis-beside-a-right-one"}


@pytest.mark.clause(
    *("M1", "M2", "M3", "M5", "M6", "M7", "M8", "M11", "M12", "M14", "M15"),
    *("R1", "R2", "R5", "R6", "R7", "R12", "S1", "S2", "S3", "S8", "S10", "S11", "S13"),
    *("H3", "H4", "H6", "H8", "H9", "H14", "H15", "H16", "H17", "A4", "A11", "A12", "C3", "C4", "C9"),
)
@pytest.mark.parametrize("seed", SEEDS, ids="seed {}".format)
def test_every_rule_holds_in_worlds_in_which_all_goes_wrong(seed: int) -> None:
    outcome = live(draw(seed))
    assert outcome.rule == "", outcome.message
    assert outcome.publications > 0


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem in LONG else ())
        for path in sorted(CASES.glob("*.json"))
    ],
)
def test_what_once_failed_holds(path: Path) -> None:
    outcome = live(read_script(path))
    assert outcome.rule == "", outcome.message


@pytest.mark.long
def test_a_world_is_the_same_each_time_and_everywhere() -> None:
    """Also where hashes, and with them the order of sets, are others."""
    seeds = (3, 17)
    program = (
        "from tests.simulation.worlds.world import live; from tests.simulation.worlds.script import draw;"
        f"print([live(draw(seed)).trace for seed in {seeds}])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert ran.stdout.strip() == str([live(draw(seed)).trace for seed in seeds])


def test_a_world_without_faults_is_green_and_kept_on_a_real_file_too() -> None:
    for store in ("model", "sqlite"):
        outcome = live(
            Script(1, 12 * MINUTE, monitors=2, store=store, faults=(Fault("crash", 6 * MINUTE, 2 * MINUTE, "0"),))
        )
        assert (outcome.rule, outcome.simulated_ms) == ("", 12 * MINUTE), outcome.message
        assert any("monitor 1" in line for line in outcome.last)
