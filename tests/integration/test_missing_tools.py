"""The tests themselves, where a program that they need is not to be found."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCENE = """
import shutil
import pytest

@pytest.mark.skipif(shutil.which("useradd") is None, reason="needs useradd")
def test_that_finds_what_only_administrators_have_in_their_path(): ...

@pytest.mark.skipif(shutil.which("no-such-program") is None, reason="needs no-such-program")
def test_that_lacks_a_program(): ...

@pytest.fixture
def asked():
    pytest.skip("needs another machine")

def test_that_learns_in_its_fixture_what_is_missing(asked): ...

def test_that_is_known_to_fail():
    pytest.xfail("somebody else's fault")
"""


@pytest.mark.parametrize(
    ("options", "exit_code", "counted"),
    [
        pytest.param((), 0, "1 passed, 2 skipped, 1 xfailed", id="by default a test is left out"),
        pytest.param(("--no-skips",), 1, "1 passed, 1 xfailed, 2 errors", id="with --no-skips it has failed"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, options: tuple[str, ...], exit_code: int, counted: str) -> None:
    scene = tmp_path / "test_scene.py"
    scene.write_text(SCENE)
    command = (sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest")
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", *options, scene],
        cwd=ROOT,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == exit_code, ran.stdout + ran.stderr
    assert counted in ran.stdout
    assert "needs no-such-program" in ran.stdout
    assert "needs another machine" in ran.stdout
