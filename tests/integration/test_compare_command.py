"""``lookout replay --compare`` as a person uses it, on a simulated fortnight."""

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lookout.config.tables import Policy
from lookout.demo.rehearsal import Life, Listeners, rehearse
from lookout.demo.sim.world import drawn_world
from lookout.state.log import Event, format_event
from tests.builders import DAY, NOON
from tests.commands import lookout
from tests.simulation.rehearsed import ONE_CHAIN, plan_of

CONFIG = """
[[chains]]
id = 1
name = "Ethereum"
block_time_s = 12
rpc = ["http://127.0.0.1"]
[ppoi]
url = "http://127.0.0.1"
required_list = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
chains = [1]
[[indexer]]
chain = 1
kind = "squid"
url = "http://127.0.0.1"
confirmations = 5
[[hosted-indexer]]
chain = 1
kind = "squid"
url = "http://127.0.0.1"
confirmations = 5
[broadcasters]
url = "http://127.0.0.1"
chains = [1]
[messaging]
url = "http://127.0.0.1"
[policy]
"""
STRICTER = "failures_for_unavailable = 1\nallowance_s = 30\ndegraded_lag_s = 600\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fortnight's log of a world in which much goes wrong, and two configurations."""
    folder = tmp_path_factory.mktemp("compare")
    world = drawn_world(ONE_CHAIN, 3, NOON, NOON + 14 * DAY, intensity=5)
    plan = plan_of(ONE_CHAIN, Policy(recheck_s=240, row_lifetime_s=300))
    with (folder / "log.jsonl").open("wb") as log:

        def note(event: Event) -> None:
            log.write(format_event(event))

        rehearse(plan, world, (Life(NOON, NOON + 14 * DAY),), Random(3), listeners=Listeners(event=note))
    (folder / "now.toml").write_text(CONFIG)
    (folder / "stricter.toml").write_text(CONFIG + STRICTER)
    (folder / "coarser.toml").write_text(CONFIG + "[history]\nbucket_s = 600\n")
    return folder


def run(folder: Path, *options: str, config: str = "now.toml") -> subprocess.CompletedProcess[str]:
    return lookout(folder, "replay", "log.jsonl", "-c", config, *options)


def history(folder: Path, config: str) -> Any:
    assert run(folder, "--history", f"{config}.json", config=config).returncode == 0
    return json.loads((folder / f"{config}.json").read_text())


def test_what_it_says_is_what_two_separate_replays_give(folder: Path) -> None:
    outcome = run(folder, "--compare", "stricter.toml", "--json")
    assert outcome.returncode == 0
    assert outcome.stderr == ""
    comparison = json.loads(outcome.stdout)
    before, after = (history(folder, config) for config in ("now.toml", "stricter.toml"))
    assert [(row["service"], row["chainId"]) for row in comparison["rows"]] == [
        (row["service"], row["chainId"]) for row in before["rows"]
    ]
    for told, was, would_be in zip(comparison["rows"], before["rows"], after["rows"], strict=True):
        differing = [pair for pair in zip(was["buckets"], would_be["buckets"], strict=True) if pair[0] != pair[1]]
        assert told["changed"] == len(differing)
        assert [
            (stretch["was"], stretch["wouldBe"]) for stretch in told["stretches"] for _ in range(stretch["buckets"])
        ] == differing
        assert {window: figure["was"] for window, figure in told["uptime"].items()} == was["uptime"]
        assert {window: figure["wouldBe"] for window, figure in told["uptime"].items()} == would_be["uptime"]
    assert comparison["total"]["changed"] > 100
    assert comparison["total"]["uptime"]["14d"]["wouldBe"] < comparison["total"]["uptime"]["14d"]["was"]


def test_a_person_gets_a_table_and_a_sentence(folder: Path) -> None:
    outcome = run(folder, "--compare", "stricter.toml")
    assert outcome.returncode == 0
    assert "now.toml → stricter.toml" in outcome.stdout
    assert "indexer 1" in outcome.stdout
    assert "buckets would change, in 5 of 5 rows:" in " ".join(outcome.stdout.split())


def test_the_same_configuration_changes_nothing(folder: Path) -> None:
    outcome = run(folder, "--compare", "now.toml")
    assert outcome.returncode == 0
    assert "0 of 20,160 buckets would change, in 0 of 5 rows." in outcome.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--compare", "coarser.toml"], "history.bucket_s differs: buckets of different lengths cannot be compared"),
        (["--compare", "nowhere.toml"], "nowhere.toml: cannot be read: No such file or directory"),
        (["--live", "live.json", "--json"], "--json is for --compare"),
        (["--live", "stricter.toml", "--compare", "stricter.toml"], "stricter.toml would be overwritten"),
    ],
    ids=["other buckets", "no such file", "JSON of nothing", "the other configuration as output"],
)
def test_a_mistake_is_told_in_a_sentence(folder: Path, options: list[str], sentence: str) -> None:
    outcome = run(folder, *options)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert sentence in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
