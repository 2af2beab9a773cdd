"""The whole of Lookout in simulated worlds: in short here, by the thousand in the campaign."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import planted
from tests.simulation.worlds.hunt import CASES, find_smallest
from tests.simulation.worlds.monitors import REAL, Parts
from tests.simulation.worlds.script import Fault, FaultKind, Script, draw, read_script, write_script
from tests.simulation.worlds.world import live

MINUTE = 60_000
HOUR = 60 * MINUTE
SHORT_WORLDS = [seed for seed in range(30) if draw(seed).lasts_ms <= HOUR][:24]


def _planted(parts: Parts) -> str:
    return next(part.__name__ for part in parts if part not in REAL)


@pytest.mark.clause(
    *("M1", "M2", "M3", "M5", "M6", "M7", "M8", "M11", "M12", "M14", "M15"),
    *("R1", "R2", "R5", "R6", "R7", "R12", "S1", "S2", "S3", "S8", "S10", "S11", "S13"),
    *("H3", "H4", "H6", "H8", "H9", "H14", "H15", "H16", "H17", "A4", "A11", "A12", "C3", "C4", "C9"),
)
@pytest.mark.parametrize("first", range(8), ids="every eighth from {}".format)
def test_every_rule_holds_in_worlds_in_which_all_goes_wrong(first: int) -> None:
    for seed in SHORT_WORLDS[first::8]:
        outcome = live(draw(seed))
        assert outcome.rule == "", f"seed {seed}: {outcome.message}"
        assert outcome.publications > 0


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_failed_holds(path: Path) -> None:
    outcome = live(read_script(path))
    assert outcome.rule == "", outcome.message


def test_a_world_is_the_same_each_time_and_everywhere() -> None:
    """Also where hashes, and with them the order of sets, are others."""
    seeds = (3, 17, 40)
    program = (
        "from tests.simulation.worlds.world import live; from tests.simulation.worlds.script import draw;"
        f"print([live(draw(seed)).trace for seed in {seeds}])"
    )
    traces = {str([live(draw(seed)).trace for seed in seeds])}
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        traces.add(ran.stdout.strip())
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("parts", "kinds", "rule"),
    [
        (Parts(publisher=planted.ForgetsWhatFailed), ("write-fails", "crash"), "RemembersAll"),
        (Parts(timeline=planted.StartsByItsOwnClock), ("crash",), "OneWriter"),
        (Parts(timeline=planted.NoticesNoJump), ("clock",), "RowsFollow"),
        pytest.param(Parts(journal=planted.TrustsWhoAnswersFirst), ("clock",), "AgreesOnHeads", marks=pytest.mark.long),
        (Parts(publisher=planted.PublishesTwice), ("write-slow",), "PublishesOnTime"),
        (Parts(publisher=planted.StopsWhenOvertaken), ("session-lost",), "EndsOnlyWhenAsked"),
        (Parts(journal=planted.DoesNotReload), ("reload",), "FollowsThePlan"),
        (Parts(watcher=planted.AsksOnAndOn), ("reload",), "FollowsThePlan"),
        (Parts(watcher=planted.AsksAllAgain), ("reload",), "AsksOnTime"),
        (Parts(alerts=planted.CountsItsAbsence), ("crash",), "SendsWhatIsDue"),
        (Parts(alerts=planted.KeepsWhoLeft), ("reload",), "SendsWhatIsDue"),
        (Parts(alerts=planted.TriesOnce), ("send-fails",), "NoneIsLost"),
        (Parts(alerts=planted.WaitsTooLong), ("send-fails",), "NoneIsLost"),
        pytest.param(
            Parts(alerts=planted.ForgetsWhatWasAccepted),
            ("send-hangs", "stop"),
            "NoneComesTwice",
            marks=pytest.mark.long,
        ),
        (Parts(alerts=planted.SendsAgain), (), "NoneComesTwice"),
        (Parts(alerts=planted.SendsAtOnce), ("write-slow",), "StoredBeforeSent"),
        (Parts(alerts=planted.SendsWithoutTheStore), ("send-hangs",), "StoredBeforeSent"),
        (Parts(alerts=planted.NewestFirst), ("send-hangs",), "InOrder"),
        (Parts(ledger=planted.ForgetsFailures), ("crash",), "RowsFollow"),
        (Parts(ledger=planted.ForgetsSuccess), ("crash",), "RowsFollow"),
        (Parts(ledger=planted.KeepsRowsGreen), (), "RowsFollow"),
        (Parts(ledger=planted.ExcusesOneFailure), (), "RightAgainSoon"),
        (Parts(ledger=planted.RewritesBuckets), (), "EndedBucketsStay"),
        (Parts(poller=planted.DropsOnError), ("read-fails",), "ServersHoldOn"),
        (Parts(poller=planted.ServesDamage), ("damaged",), "OneTagOneBody"),
        (Parts(poller=planted.KeepsHistoryForEver), ("read-fails",), "ServersHoldOn"),
        (Parts(writer=planted.Loses), (), "KeepsWhatItPromised"),
        (Parts(writer=planted.LosesPieces), ("crash",), "RemembersAll"),
    ],
    ids=lambda value: _planted(value) if isinstance(value, Parts) else "",
)
def test_a_planted_bug_is_found_within_a_hundred_worlds(parts: Parts, kinds: tuple[FaultKind, ...], rule: str) -> None:
    assert any(live(draw(seed, kinds), parts).rule == rule for seed in range(100))


def test_a_failing_world_is_shrunk_to_what_it_takes(tmp_path: Path) -> None:
    """Of a monitor that is killed, a store that fails at times and much else only the killing is left."""
    parts = Parts(ledger=planted.ForgetsFailures)
    script = next(script for script in map(_busy, range(40)) if live(script, parts).rule == "RowsFollow")
    smaller = find_smallest(script, "RowsFollow", parts, seconds=600)
    assert {fault.kind for fault in smaller.faults} == {"crash"}
    assert len(smaller.faults) == 1
    assert len(smaller.episodes) == 1
    path = tmp_path / "case.json"
    write_script(path, smaller)
    again = live(read_script(path), parts)
    assert again.rule == "RowsFollow"
    assert again.trace == live(smaller, parts).trace
    assert live(smaller).rule == ""


def _busy(seed: int) -> Script:
    return draw(seed, ("crash", "write-fails", "read-fails"))


def test_a_world_without_faults_is_green_and_kept_on_a_real_file_too() -> None:
    for store in ("model", "sqlite"):
        outcome = live(
            Script(1, 12 * MINUTE, monitors=2, store=store, faults=(Fault("crash", 6 * MINUTE, 2 * MINUTE, "0"),))
        )
        assert (outcome.rule, outcome.simulated_ms) == ("", 12 * MINUTE), outcome.message
        assert any("monitor 1" in line for line in outcome.last)
