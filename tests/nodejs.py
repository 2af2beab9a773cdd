"""Node, the JavaScript reader that it runs, and what is built of it."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READER = ROOT / "readers" / "js"
OLDEST = 18
_BUILDER = ROOT / "tools" / "js"


def find_node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: the JavaScript reader was not tested")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0]) < OLDEST:
        pytest.skip(f"node is {version}, older than v{OLDEST}: the JavaScript reader was not tested")
    return found


def find_npm() -> str:
    found = shutil.which("npm")
    if found is None:
        pytest.skip("npm is not installed: the package was not tried with other packages")
    return found


def build_scripts(what: str, where: Path) -> None:
    """What tools/js/build.mjs builds: the "page", as a file, or the "reader", in a folder."""
    if not (_BUILDER / "node_modules" / "esbuild").is_dir():
        pytest.skip("esbuild is not installed, which make does where npm is: what it builds was not tested")
    command = [find_node(), str(_BUILDER / "build.mjs"), what, str(where)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def pack_reader(folder: Path) -> Path:
    """The reader's package for npm, made in this folder."""
    command = [find_npm(), "pack", "--loglevel=error", "--pack-destination", str(folder)]
    with tempfile.TemporaryDirectory() as name:
        built = Path(name) / "reader"
        shutil.copytree(READER, built)
        build_scripts("reader", built)
        subprocess.run(command, cwd=built, check=True, capture_output=True, timeout=60)
    (tarball,) = folder.glob("*.tgz")
    return tarball
