"""``lookout check-config`` on a folder of bad files, each beside the exact words about it, and one of good files."""

import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from lookout.cli import main
from tests.commands import lookout

FOLDER: Final = Path(__file__).parent
BAD: Final = sorted((FOLDER / "bad").glob("*.toml"))
GOOD: Final = sorted((FOLDER / "good").glob("*.toml"))
# The key ends in the newline of the file that it came from, as such keys do.
ENVIRONMENT: Final = {"LOOKOUT_TEST_KEY": "hunter2\n", "LOOKOUT_TEST_WORD": "hunter2"}


def words(path: Path) -> str:
    return path.stem.replace("-", " ")


def check_config(path: Path) -> tuple[int, str, str]:
    """In this process: starting one for each file would take longer than all else here."""
    outcome = CliRunner().invoke(main, ["check-config", "-c", str(path)], env=ENVIRONMENT)
    return outcome.exit_code, outcome.stdout, outcome.stderr


def without_lines(complaint: str) -> str:
    return re.sub(r" \(line \d+\)$", "", complaint, flags=re.MULTILINE)


@pytest.mark.parametrize("path", [BAD[0], GOOD[0]], ids=words)
def test_a_process_of_its_own_says_the_same(path: Path) -> None:
    outcome = lookout(path.parent, "check-config", "-c", path, environment=ENVIRONMENT)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == check_config(path)


@pytest.mark.parametrize("path", BAD, ids=words)
def test_everything_wrong_with_a_bad_file_is_reported_in_these_words(path: Path) -> None:
    messages = path.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    reported = "".join(f"lookout: {path}: {message}\n" for message in messages)
    assert messages
    code, shown, complaint = check_config(path)
    assert (code, shown, without_lines(complaint)) == (2, "", reported)


@pytest.mark.parametrize("path", BAD, ids=words)
def test_the_line_that_is_named_is_of_the_key_or_of_its_table(path: Path) -> None:
    lines = path.read_bytes().decode(errors="replace").splitlines()
    for message in check_config(path)[2].splitlines():
        if (named := re.fullmatch(r"lookout: [^:]+: ([^: ]+): .+[( ]line (\d+)\)", message)) is not None:
            written = re.findall(r"[\w-]+", lines[int(named[2]) - 1].partition("=")[0])
            assert set(written) <= set(re.findall(r"[\w-]+", named[1]))


@pytest.mark.parametrize("path", GOOD, ids=words)
def test_a_good_file_is_ok_with_the_warnings_beside_it(path: Path) -> None:
    beside = path.with_suffix(".txt")
    warnings = beside.read_text(encoding="utf-8").splitlines() if beside.exists() else []
    assert check_config(path) == (0, "ok\n", "".join(f"lookout: warning: {path}: {each}\n" for each in warnings))


def test_every_bad_file_has_its_words_and_all_words_have_their_file() -> None:
    assert sorted((FOLDER / "bad").glob("*.txt")) == [path.with_suffix(".txt") for path in BAD]
    assert {path.with_suffix(".toml") for path in (FOLDER / "good").glob("*.txt")} <= set(GOOD)
    assert {path.suffix for folder in ("bad", "good") for path in (FOLDER / folder).iterdir()} == {".toml", ".txt"}
