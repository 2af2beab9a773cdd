"""A file of environment variables is read as systemd reads it, or refused with a sentence."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookout.config.environment_file import parse_environment
from tests.commands import lookout

# It reads its files with the parser that units have, and prints what it found. But it puts variables in the place of
# $NAME, and leaves out what is empty.
SYSTEMD: Final = Path("/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator")

needs_systemd: Final = pytest.mark.skipif(not SYSTEMD.exists(), reason=f"needs {SYSTEMD}; on Debian: systemd")

RULE: Final = (
    "is not NAME=value; put '' around a value with a quotation mark or a backslash; leave out export,"
    " control characters, and a backslash at the end of a comment"
)
READ: Final = {
    "a key with an ampersand": ("A=k&x=1&y", "k&x=1&y"),
    "spaces between words": ("A=two  words", "two  words"),
    "a hash and a semicolon are characters": ("A=a#b ;c", "a#b ;c"),
    "space around name and value is not of them": ("  A  =  a b \t", "a b"),
    "a line that ends as on Windows": ("A=a\r\nB=b", "a"),
    "quotation marks inside are characters": ('A=it\'s a "key"', 'it\'s a "key"'),
    "quotation marks around are not of the value": ('A=" a b "', " a b "),
    "single ones keep everything": ("A='\\n $x \"'", '\\n $x "'),
    "a dollar sign is one": ("A=$HOME${B}", "$HOME${B}"),
    "nothing": ("A=", ""),
    "comments and empty lines": ("# a\n\n; b\n  # c\nA=a", "a"),
    "the later of two": ("A=a\nA=b", "b"),
}


@pytest.mark.parametrize(("text", "value"), READ.values(), ids=READ)
def test_a_value_is_what_a_unit_would_get(text: str, value: str) -> None:
    variables, problems = parse_environment(text)
    assert (variables["A"], problems) == (value, [])


@pytest.mark.parametrize(
    "line",
    [
        *("A", "export A=xyzzy", "1A=xyzzy", "=xyzzy"),
        *("A= 'xy' 'zzy'", 'A="xyzzy', "A='xy'zzy'", "A=xy\\zzy", 'A="xy\\zzy"', "A='xy'\"zzy\"", "A=xyzzy\\"),
        *("A='xy\x07zzy'", "A=xy\rzzy", "A=xy\0zzy", "# a comment that goes on\\"),
    ],
)
def test_what_systemd_leaves_out_or_reads_in_several_ways_is_refused_without_its_value(line: str) -> None:
    assert parse_environment(f"B=1\n\n{line}")[1] == [f"line 3: {RULE}"]


def ask_systemd(text: str, folder: Path) -> dict[str, str]:
    """What systemd finds in a file, as it prints it for a shell."""
    (folder / "environment.d").mkdir(exist_ok=True)
    (folder / "environment.d" / "a.conf").write_bytes(text.encode())
    said = subprocess.run(
        [SYSTEMD], env={"XDG_CONFIG_HOME": str(folder)}, capture_output=True, check=True, encoding="utf-8"
    ).stdout
    pairs = (line.split("=", 1) for line in said.splitlines())
    return {name: unquote(value) for name, value in pairs if len(name) == 1}  # the system has files of its own


def unquote(value: str) -> str:
    body = value[1:-1] if value.startswith('"') else value
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1]), body)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environment")


PARTS: Final = ["A=", "\nB=", "a", " ", "\t", "'", '"', "'a b'", '"a b"', "\\", "\n", "\r", "#", ";", "=", "&", "é"]


@needs_systemd
@settings(max_examples=300)
@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_whatever_is_not_refused_is_what_systemd_reads(folder: Path, text: str) -> None:
    variables, problems = parse_environment(text)
    if not problems:
        empty = {name: "" for name, value in variables.items() if value == ""}
        assert variables == ask_systemd(text, folder) | empty


def test_a_command_has_the_variables_of_its_files_and_the_later_file_counts(tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text('[server]\nlisten = "${LISTEN}"\n[messaging]\nurl = "${URL}"\n')
    (tmp_path / "environment").write_text("LISTEN=nonsense\nURL=http://127.0.0.1:1/?a=1&key=2\n")
    (tmp_path / "server.environment").write_text("LISTEN='127.0.0.1:8080'\n")
    for files, environment in (
        (("--env-file", "environment", "--env-file", "server.environment"), {"LISTEN": "nonsense"}),
        ((), {"LOOKOUT_ENV_FILE": "environment:server.environment"}),
    ):
        ran = lookout(tmp_path, *files, "check-config", environment=environment)
        assert (ran.returncode, ran.stdout) == (0, "ok\n")
    ran = lookout(tmp_path, "--env-file", "environment", "check-config")
    assert (ran.returncode, "server.listen" in ran.stderr) == (2, True)


def test_all_that_is_wrong_with_the_files_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "environment").write_text("A\nexport B=xyzzy\n")
    ran = lookout(tmp_path, "--env-file", "none", "--env-file", "environment", "check-config")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "lookout: none: cannot be read: No such file or directory\n"
        f"lookout: environment: line 1: {RULE}\n"
        f"lookout: environment: line 2: {RULE}\n"
    )
