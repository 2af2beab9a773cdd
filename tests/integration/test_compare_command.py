"""``lookout replay --compare`` as a person uses it, on a recorded log."""

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lookout.cli import main

VECTORS = Path(__file__).parent.parent / "data" / "vectors"
STRICTER = {
    "failures_for_unavailable = 3": "failures_for_unavailable = 1",
    "allowance_s = 120": "allowance_s = 30",
    "degraded_lag_s = 1800": "degraded_lag_s = 600",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three configurations: the one of the log, and two that differ from it."""
    now = stricter = (VECTORS / "replay.toml").read_text()
    for setting, instead in STRICTER.items():
        stricter = stricter.replace(setting, instead)
    (tmp_path / "now.toml").write_text(now)
    (tmp_path / "stricter.toml").write_text(stricter)
    (tmp_path / "coarser.toml").write_text(now.replace("bucket_s = 300", "bucket_s = 600"))
    return tmp_path


def run(folder: Path, *options: str, config: str = "now.toml") -> Result:
    with chdir(folder):
        return CliRunner().invoke(main, ["replay", str(VECTORS / "replay-12.jsonl"), "-c", config, *options])


def history(folder: Path, config: str) -> Any:
    assert run(folder, "--history", f"{config}.json", config=config).exit_code == 0
    return json.loads((folder / f"{config}.json").read_text())


def test_what_it_says_is_what_two_separate_replays_give(folder: Path) -> None:
    outcome = run(folder, "--compare", "stricter.toml", "--json")
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    comparison = json.loads(outcome.stdout)
    before, after = (history(folder, config) for config in ("now.toml", "stricter.toml"))
    assert [(row["service"], row["chainId"]) for row in comparison["rows"]] == [
        (row["service"], row["chainId"]) for row in before["rows"]
    ]
    for row, was, would_be in zip(comparison["rows"], before["rows"], after["rows"], strict=True):
        differing = [pair for pair in zip(was["buckets"], would_be["buckets"], strict=True) if pair[0] != pair[1]]
        assert row["changed"] == len(differing)
        assert [
            (stretch["was"], stretch["wouldBe"]) for stretch in row["stretches"] for _ in range(stretch["buckets"])
        ] == differing
        assert {window: figure["was"] for window, figure in row["uptime"].items()} == was["uptime"]
        assert {window: figure["wouldBe"] for window, figure in row["uptime"].items()} == would_be["uptime"]
    assert comparison["total"]["changed"] == 19
    assert comparison["total"]["uptime"]["14d"]["wouldBe"] < comparison["total"]["uptime"]["14d"]["was"]


def test_a_person_gets_lines_and_the_totals(folder: Path) -> None:
    outcome = run(folder, "--compare", "stricter.toml")
    assert outcome.exit_code == 0
    assert "\nindexer 1: " in outcome.stdout
    assert "in 13 of 21 rows:\n19 of 1,029 buckets would change: 6 from unknown" in outcome.stdout


def test_rows_of_one_configuration_alone_are_left_out_and_named(folder: Path) -> None:
    own = '\n[[services]]\nname = "relayer"\nchecks = [{ kind = "http", url = "http://relayer" }]\n'
    (folder / "more.toml").write_text((folder / "stricter.toml").read_text() + own)
    outcome = run(folder, "--compare", "more.toml")
    assert outcome.stdout.endswith("\nleft out, since only one configuration has them: relayer\n")


def test_the_alerts_that_would_have_been_sent_are_listed(folder: Path) -> None:
    alerts = '\n[alerts.targets]\nops = "json://127.0.0.1"\n[[alerts.rules]]\nservices = ["messaging"]\nfor_s = {}\n'
    for config, for_s in (("now.toml", 300), ("stricter.toml", 0)):
        (folder / config).write_text((folder / config).read_text() + alerts.format(for_s))
    messages = json.loads(run(folder, "--compare", "stricter.toml", "--json").stdout)["messages"]
    assert {(sent["was"], sent["wouldBe"]) for sent in messages} == {(True, False), (False, True), (True, True)}
    shown = run(folder, "--compare", "stricter.toml").stdout
    counts = [sum(sent[which] for sent in messages) for which in ("wouldBe", "was")]
    assert "{} alerts would have been sent instead of {}; + is new, - is gone:".format(*counts) in shown
    for sent in messages:
        sign = " " if sent["was"] == sent["wouldBe"] else "+" if sent["wouldBe"] else "-"
        assert (f"{sign} {sent['at']} ops: {sent['title']}\n" in shown) == (sign != " ")


def test_buckets_of_different_lengths_are_not_compared(folder: Path) -> None:
    outcome = run(folder, "--compare", "coarser.toml")
    assert outcome.exit_code == 2
    assert outcome.stderr == "lookout: history.bucket_s differs: buckets of different lengths cannot be compared\n"
