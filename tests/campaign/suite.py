"""The tests that take too long for every day: those marked ``long``."""

import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from tests.campaign.part import Outcome, Part

_log: Final = logging.getLogger("campaign.tests")
_ROOT: Final = Path(__file__).parents[2]


def run(_seconds: float) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-m", "long", "-n", "2", "--dist", "worksteal", "-q"]
        ended = subprocess.run([*command, f"--junitxml={report}"], cwd=_ROOT, check=False)
        if ended.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return Outcome({}, (f"pytest ended with exit code {ended.returncode}; see above",))
        suite = ElementTree.parse(report).getroot().find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    failed = tuple(
        f"{case.get('classname')}::{case.get('name')}; make test ARGS='-m long' runs it again"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    )
    _log.info(f"{suite.get('tests')} tests, {suite.get('skipped')} left out")
    return Outcome({"tests": int(suite.get("tests", 0))}, failed)


PART: Final = Part("the tests that take too long for every day", 12, run)
