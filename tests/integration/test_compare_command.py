"""``lookout replay --compare`` as a person uses it, on a recorded log."""

import json
import re
from collections import Counter
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lookout.base.instants import format_second, parse_second
from lookout.cli import main
from lookout_reader.statuses import CHARACTERS

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


def stretches(was: str, would_be: str, begin_at: int) -> list[str]:
    """A line for neighbouring buckets that differ in the same way."""
    lines, words = [], {**{status: name for name, status in CHARACTERS.items()}, "-": "no data"}
    for found in re.finditer(
        r"((..) )(?:\2 )*", "".join(f"{pair[0]}{pair[1]} " for pair in zip(was, would_be, strict=True))
    ):
        old, new, count = found[2][0], found[2][1], len(found[0]) // 3
        begin = format_second(begin_at + found.start() // 3 * 300_000)
        if old != new:
            lines.append(f"  {begin}, {count} bucket{'s' * (count > 1)}: {words[old]} → {words[new]}")
    return lines


def test_it_says_what_two_separate_replays_give(folder: Path) -> None:
    outcome = run(folder, "--compare", "stricter.toml")
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    before, after = (history(folder, config) for config in ("now.toml", "stricter.toml"))
    expected = []
    for was, would_be in zip(before["rows"], after["rows"], strict=True):
        differ = stretches(was["buckets"], would_be["buckets"], parse_second(before["from"]))
        windows = {window: (share, would_be["uptime"][window]) for window, share in was["uptime"].items()}
        if differ or was["uptime"] != would_be["uptime"]:
            name = was["service"] if was["chainId"] is None else f"{was['service']} {was['chainId']}"
            changed = sum(old != new for old, new in zip(was["buckets"], would_be["buckets"], strict=True))
            shares = ", ".join(f"{window} {old:.2%} → {new:.2%}" for window, (old, new) in windows.items())
            same = was["uptime"] == would_be["uptime"]
            expected += [
                f"{name}: {changed} bucket{'s' * (changed != 1)}; {'the same uptime' if same else shares}",
                *differ,
            ]
    *rows, span, total = outcome.stdout.splitlines()
    assert rows == expected
    assert span.endswith("in 13 of 21 rows:")
    assert total.startswith("19 of 1,029 buckets would change: ")


def test_the_alerts_that_would_have_been_sent_are_listed(folder: Path) -> None:
    alerts = '\n[alerts.targets]\nops = "json://127.0.0.1"\n[[alerts.rules]]\nservices = ["messaging"]\nfor_s = {}\n'
    for config, for_s in (("now.toml", 300), ("stricter.toml", 0)):
        (folder / config).write_text((folder / config).read_text() + alerts.format(for_s))
    shown = run(folder, "--compare", "stricter.toml").stdout
    (counts,) = re.findall(r"(\d+) alerts would have been sent instead of (\d+); \+ is new, - is gone:", shown)
    signs = Counter(re.findall(r"^([+-]) \S+Z ops: .+$", shown, re.MULTILINE))
    assert signs["+"] > 0 < signs["-"]
    assert int(counts[0]) - int(counts[1]) == signs["+"] - signs["-"]
    assert int(counts[0]) > signs["+"]  # the others are sent by both


def test_buckets_of_different_lengths_are_not_compared(folder: Path) -> None:
    outcome = run(folder, "--compare", "coarser.toml")
    assert outcome.exit_code == 2
    assert outcome.stderr == "lookout: history.bucket_s differs: buckets of different lengths cannot be compared\n"
