"""A server for the scenario of scenario.js, what has to come of it, and npm projects with the package in them."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.browser.pages import a_check, a_live_report
from tests.nodejs import find_npm, pack_reader
from tests.web import Answering, serving

SCENARIO: Final = Path(__file__).with_name("scenario.js").read_text(encoding="utf-8")
PLAYED: Final = {
    "before": False,
    "polled": True,
    "expired": False,
    "reportCode": "not-available",
    "asked": [0, 30, 60, 75, 105, 165, 285, 485],
    "left": 0,
}
_ETAG: Final = '"0123456789abcdef"'


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]


class Monitor(NamedTuple):
    base: str
    asked: list[Asked]


@contextmanager
def a_monitor() -> Iterator[Monitor]:
    """Answers with a report, then that it is unchanged, and then not at all well."""
    asked: list[Asked] = []
    live = a_live_report([a_check("current", "ppoi", 1), a_check("current", "messaging", None)])

    class Handler(Answering):
        def do_GET(self) -> None:
            asked.append(Asked(self.path, {name.lower(): value for name, value in self.headers.items()}))
            unchanged = self.headers.get("If-None-Match") == _ETAG
            code = 503 if len(asked) > 2 else 304 if unchanged else 200
            self.send(code, live if code == 200 else b"", Access_Control_Allow_Origin="*", ETag=_ETAG)

    with serving(Handler) as base:
        yield Monitor(base, asked)


def check_played(output: str, monitor: Monitor) -> None:
    """It loaded, polled, backed off, let rows expire and left nothing behind; and asked as it should."""
    line = next(line for line in output.splitlines() if line.startswith('{"before"'))
    played = json.loads(line)
    assert {key: played[key] for key in PLAYED} == PLAYED
    assert {each.path for each in monitor.asked} == {"/api/v1/protocol/liveness"}  # nothing was added to it
    assert "if-none-match" in monitor.asked[1].headers


def make_project(folder: Path, *packages: str) -> Path:
    """An npm project with these packages and the reader, all from its tarball."""
    folder.mkdir(parents=True, exist_ok=True)
    tarball = pack_reader(folder)
    (folder / "package.json").write_text('{"name":"wallet","private":true}')
    command = [
        find_npm(),
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--loglevel=error",
        f"./{tarball.name}",
        *packages,
    ]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=900)
    if ran.returncode != 0:
        pytest.skip(f"npm could not install {' '.join(packages)}: {ran.stderr.strip().splitlines()[-1:]}")
    return folder


def run(folder: Path, *command: str | Path) -> str:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
