"""A status is declared once: what shows it anywhere is derived from its row."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from lookout_reader import statuses
from lookout_reader.statuses import (
    CHARACTERS,
    NO_DATA,
    STATUSES,
    TROUBLE_STATUSES,
    EffectiveStatus,
    PublishedStatus,
    TroubleStatus,
)
from lookout_reader.words import REASON_TEXTS, Reason
from tests.nodejs import find_node
from tools.statuses import READER, fill_in

ROOT = READER.parent.parent
DEGRADED = '    StatusEntry(\n        "degraded",'
MADE_UP = """\
    StatusEntry(
        "half-awake",
        "half awake",
        "h",
        45,
        "trouble",
        "It answers, but in its sleep.",
        Appearance(
            Palette("123456", "234567", "345678"),
            Palette("456789", "56789a", "6789ab"),
            '<path d="M1 2h3"/>',
            ("☾", "("),
            "magenta",
        ),
        Statuspage("partial_outage", "major"),
    ),
"""
IN_JAVASCRIPT = """
import * as reader from "./src/page.js";
const instant = (s) => new Date(Date.UTC(2026, 10, 15, 12, 0, s)).toISOString();
const row = { service: "indexer", chainId: 1, status: "half-awake", observedAt: instant(0), expiresAt: instant(90) };
const report = reader.parseReport(JSON.stringify({ schemaVersion: 1, checks: [row] }));
const history = reader.parseHistory(JSON.stringify({
  schemaVersion: 1, bucketSeconds: 300, from: "2026-11-15T11:50:00Z", to: "2026-11-15T12:00:00Z",
  rows: [{ service: "indexer", chainId: 1, buckets: "khc", uptime: {} }],
}));
const now = Date.parse(instant(1));
console.log(JSON.stringify({
  effective: reader.effectiveStatus(report.rows[0], now),
  severity: reader.EFFECTIVE_STATUSES,
  text: reader.statusText("half-awake"),
  headline: reader.headlineOf(report, { now, chains: [1] }).text,
  buckets: reader.bucketsOf(history, history.rows[0]).map(({ status }) => status),
  worst: reader.incidentsOf(history, history.rows[0]).map(({ worst }) => worst),
  known: reader.coverageOf(history, history.rows[0], "24h").known,
}));
"""


def test_the_types_name_what_the_tables_hold() -> None:
    assert list(get_args(EffectiveStatus)) == [status.word for status in STATUSES]
    assert list(get_args(PublishedStatus)) == list(CHARACTERS)
    assert set(get_args(TroubleStatus)) == set(TROUBLE_STATUSES)
    assert list(get_args(Reason)) == list(REASON_TEXTS)
    assert len({*CHARACTERS.values(), NO_DATA}) == len(CHARACTERS) + 1
    assert len({status.severity for status in STATUSES}) == len(STATUSES)


def test_the_javascript_reader_has_the_statuses_of_the_python_one() -> None:
    for path, content in fill_in().items():
        assert path.read_text(encoding="utf-8") == content, "run: make schemas"


@pytest.mark.parametrize("name", ["src/statuses.js", "src/sentences.js", "src/page.d.ts"])
def test_a_reader_that_was_changed_by_hand_is_not_fresh(name: str, tmp_path: Path) -> None:
    shutil.copytree(READER, tmp_path / "js")
    changed = tmp_path / "js" / name
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace('"catching-up"', '"behind"', 1), encoding="utf-8")
    assert fill_in(tmp_path / "js")[changed] == text != changed.read_text(encoding="utf-8")


def test_types_without_their_marks_are_not_filled_in(tmp_path: Path) -> None:
    shutil.copytree(READER, tmp_path / "js")
    types = tmp_path / "js" / "src" / "page.d.ts"
    types.write_text(types.read_text(encoding="utf-8").replace("// ---- Until here\n", ""), encoding="utf-8")
    with pytest.raises(ValueError, match="lacks one of the marks"):
        fill_in(tmp_path / "js")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both readers, whose table has a status that nobody else knows of."""
    folder = tmp_path_factory.mktemp("readers")
    shutil.copytree(READER, folder / "js")
    package = folder / "lookout_reader"
    shutil.copytree(Path(statuses.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    table = package / "statuses.py"
    text = table.read_text(encoding="utf-8").replace('Literal["catching-up", ', 'Literal["catching-up", "half-awake", ')
    table.write_text(text.replace(DEGRADED, MADE_UP + DEGRADED), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shown(reader: Path) -> Any:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (reader, ROOT / "src", ROOT)))}
    command = [sys.executable, "-m", "tests.unit.status_views", "half-awake", str(reader / "js")]
    ran = subprocess.run(command, cwd=reader, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_made_up_status_is_in_the_rules(shown: Any) -> None:
    assert shown["characters"]["half-awake"] == shown["bucket"] == "h"
    assert list(shown["characters"].values()) == ["c", "k", "h", "d", "u", "?", "."]
    assert shown["severity"][:4] == ["unavailable", "degraded", "half-awake", "catching-up"]
    assert shown["alerts from"] == "half-awake"
    assert "catching-up, half-awake, degraded" in shown["schemas"]
    assert "k catching-up, h half-awake, d degraded" in shown["schemas"]


def test_a_made_up_status_is_in_the_feeds(shown: Any) -> None:
    assert "half awake" in shown["badge"]
    assert "#123456" in shown["badge"]
    summary = json.loads(shown["feeds"]["/summary.json"])
    assert summary["components"][-1]["status"] == "partial_outage"
    assert summary["components"][-1]["description"].startswith("half awake: It answers, but in its sleep.")


def test_a_made_up_status_is_on_the_page_and_in_the_terminal(shown: Any) -> None:
    assert '<symbol id="shape-half-awake" viewBox="0 0 16 16"><path d="M1 2h3"/></symbol>' in shown["page"]
    assert "<td>half awake</td>" in shown["page"]
    assert "--half-awake: #123456; --half-awake-bar: #234567; --tint-half-awake: #345678;" in shown["style"]
    assert "--half-awake: #456789; --half-awake-bar: #56789a; --tint-half-awake: #6789ab;" in shown["style"]
    assert "--bar: var(--half-awake-bar);" in shown["style"]
    assert "☾ half awake" in shown["terminal"]


def test_a_made_up_status_is_in_the_javascript_reader(shown: Any, reader: Path) -> None:
    assert '"half-awake"' in (reader / "js" / "src" / "page.d.ts").read_text(encoding="utf-8")
    (reader / "js" / "script.mjs").write_text(IN_JAVASCRIPT, encoding="utf-8")
    ran = subprocess.run([find_node(), "script.mjs"], cwd=reader / "js", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "effective": "half-awake",
        "severity": shown["severity"],
        "text": "It answers, but in its sleep.",
        "headline": "1 of 5 checks: half awake",
        "buckets": ["catching-up", "half-awake", "current"],
        "worst": ["half-awake"],
        "known": 3,
    }
