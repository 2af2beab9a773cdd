"""Recorded logs with the exact documents that they lead to."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lookout.base.clock import format_instant, parse_instant
from lookout.cli import main
from lookout.config.file import read_config
from lookout.replay.replay import Replay, read_log, run_log
from tests.oracles.history import expected_history
from tests.replayed import published

VECTORS = Path(__file__).parent.parent / "data" / "vectors"
EDGES: list[dict[str, Any]] = json.loads((VECTORS / "edges.json").read_text())


def replayed(log: Path, config: str, folder: Path, *options: str) -> dict[str, Any]:
    """Both documents, as the command writes them."""
    live, history = folder / "live.json", folder / "history.json"
    arguments = [str(log), "-c", str(VECTORS / config), "--live", str(live), "--history", str(history), *options]
    outcome = CliRunner().invoke(main, ["replay", *arguments], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return {"live": json.loads(live.read_bytes()), "history": json.loads(history.read_bytes())}


@pytest.mark.clause("S1", "S2", "S3", "S4", "S5", "S8", "S9", "S13", "R13", "H4", "H6", "H8", "H10", "M7")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in EDGES])
def test_an_edge_case_gives_exactly_its_documents(case: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(line + "\n" for line in case["log"]))
    until = ["--until", case["until"]] if case["until"] else []
    assert replayed(log, "edges.toml", tmp_path, *until) == {"live": case["live"], "history": case["history"]}


@pytest.mark.clause("S3", "S5", "S9", "S10", "S13", "S15", "R12", "H2", "H9", "H16")
@pytest.mark.parametrize("name", ["replay-11", "replay-12"])
def test_a_recorded_log_gives_exactly_its_documents(name: str, tmp_path: Path) -> None:
    expected = json.loads((VECTORS / f"{name}.expected.json").read_text())
    assert replayed(VECTORS / f"{name}.jsonl", "replay.toml", tmp_path) == expected


@pytest.mark.clause("H6", "H8", "H9", "H17")
@pytest.mark.parametrize("name", ["replay-11", "replay-12"])
@pytest.mark.parametrize("instants", [4, pytest.param(12, marks=pytest.mark.long)])
def test_at_any_instant_the_history_is_what_the_oracle_says(name: str, instants: int) -> None:
    """Each of these instants cuts the log somewhere else; the publications up to there give the history."""
    plan = read_config(VECTORS / "replay.toml").plan()
    with (VECTORS / f"{name}.jsonl").open("rb") as lines:
        numbered = list(read_log(lines, []))
    events = [event for _, event in numbered]
    for until_at in random.Random(name).sample(range(events[0].at, events[-1].at + 600_000), instants):
        _, publications = published([event for event in events if event.at <= until_at], plan, until_at)
        expected = expected_history(publications, plan.span)
        replay = Replay(plan)
        run_log(numbered, replay, until_at=until_at)
        view = replay.ledger.view()
        assert {row.check: row.buckets for row in view.rows} == expected.buckets
        assert view.published_at == publications[-1].at


def test_until_the_last_instant_is_the_whole_log(tmp_path: Path) -> None:
    log = VECTORS / "replay-11.jsonl"
    last = json.loads(log.read_text().splitlines()[-1])["at"]
    assert replayed(log, "replay.toml", tmp_path, "--until", last) == replayed(log, "replay.toml", tmp_path)


@pytest.mark.clause("M5")
def test_after_the_log_heartbeats_go_on_until_the_instant_asked_for(tmp_path: Path) -> None:
    log = VECTORS / "replay-11.jsonl"
    last_at = parse_instant(json.loads(log.read_text().splitlines()[-1])["at"])
    later = format_instant(last_at + 3_600_000)
    documents = replayed(log, "replay.toml", tmp_path, "--until", later)
    assert documents["live"]["generatedAt"] == documents["history"]["generatedAt"] == later
    assert {row["buckets"][-1] for row in documents["history"]["rows"]} == {"?", "."}  # every row has expired
