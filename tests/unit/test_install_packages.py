"""Packages for tests leave nothing running. What installs them is real; apt-get and systemctl are stand-ins."""

import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.wait import until

ROOT: Final = Path(__file__).parent.parent.parent
# As packages do: ask whether the daemon may be started, and have it started at boot.
APT_GET: Final = """
echo "apt-get $*" >> said
"$POLICY" prometheus start >> said && echo "the daemon runs" >> said
touch "$BOOT/prometheus.service"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "ssh.service").touch()
    program(tmp_path / "systemctl", 'echo "systemctl $*" >> said')
    program(tmp_path / "apt-get", APT_GET)
    return tmp_path


def program(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def start(folder: Path) -> "subprocess.Popen[bytes]":
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "POLICY": str(folder / "policy-rc.d"),
        "BOOT": str(folder / "boot"),
    }
    return subprocess.Popen([ROOT / "tools" / "install-packages", "prometheus", "varnish"], cwd=folder, env=environment)


def said(folder: Path) -> list[str]:
    return (folder / "said").read_text().splitlines()


ASKED: Final = "apt-get install -qq -y --no-install-recommends prometheus varnish"


def test_no_daemon_is_started_while_packages_are_installed_or_at_the_next_boot(folder: Path) -> None:
    assert start(folder).wait(20) == 0
    assert said(folder) == [ASKED, "systemctl --quiet disable prometheus.service"]
    assert not (folder / "policy-rc.d").exists(), "others may start theirs again"


def test_an_installation_that_fails_or_is_ended_leaves_no_policy_behind(folder: Path) -> None:
    program(folder / "apt-get", "exit 100")
    assert start(folder).wait(20) == 100
    assert not (folder / "policy-rc.d").exists()
    program(folder / "apt-get", "touch began; sleep 2")
    process = start(folder)
    until((folder / "began").exists, "it installs")
    assert stat.S_IMODE((folder / "policy-rc.d").stat().st_mode) == 0o755
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 1
    assert not (folder / "policy-rc.d").exists()


def test_a_policy_that_was_there_stays_and_decides(folder: Path) -> None:
    program(folder / "policy-rc.d", "echo asked the operator; exit 101")
    before = (folder / "policy-rc.d").read_text()
    assert start(folder).wait(20) == 0
    assert said(folder)[:2] == [ASKED, "asked the operator"]
    assert (folder / "policy-rc.d").read_text() == before


def test_the_policy_of_an_installation_that_was_killed_does_not_stay_for_good(folder: Path) -> None:
    program(folder / "apt-get", "kill -9 $PPID")
    assert start(folder).wait(20) == -signal.SIGKILL
    assert (folder / "policy-rc.d").exists()
    program(folder / "apt-get", "exit 0")
    assert start(folder).wait(20) == 0
    assert not (folder / "policy-rc.d").exists()
