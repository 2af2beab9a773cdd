"""Node, and the JavaScript reader that it runs."""

import shutil
import subprocess
from pathlib import Path

import pytest

READER = Path(__file__).parent.parent / "readers" / "js"
OLDEST = 18


def find_node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: the JavaScript reader was not tested")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST:
        pytest.skip(f"node is {version}, older than v{OLDEST}: the JavaScript reader was not tested")
    return found
