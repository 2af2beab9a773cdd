"""A file of environment variables is read as systemd reads it, or refused with a sentence."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookout.config.environment_file import parse_environment, read_environment_file
from lookout.config.file import ConfigError
from tests.commands import lookout

# It reads its files with the parser that units have, and prints what it found. But it puts variables in the place of
# $NAME, and leaves out what is empty.
SYSTEMD: Final = Path("/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator")

needs_systemd: Final = pytest.mark.skipif(not SYSTEMD.exists(), reason=f"needs {SYSTEMD}; on Debian: systemd")

NAME: Final = "a name has letters, digits and _, and begins with no digit"
QUOTED: Final = "put '' around all of it"
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
    ("text", "problem"),
    [
        *(
            pytest.param(f"B=1\n\n{line}", f"line 3: is not NAME=value{hint}; {NAME}", id=line)
            for line, hint in (("A", ""), ("export A=xyzzy", " (without export)"), ("1A=xyzzy", ""), ("=xyzzy", ""))
        ),
        *(
            pytest.param(line, f"line 1: the value has a quotation mark or a backslash; {QUOTED}", id=line)
            for line in ('A="xyzzy', "A='xy'zzy'", "A=xy\\zzy", 'A="xy\\zzy"', "A='xy'\"zzy\"", "A=xyzzy\\")
        ),
        pytest.param("B=1\nA='xy\x07zzy'", "line 2: the value has a control character; remove it", id="a bell"),
        pytest.param("A=xy\rzzy", "line 1: the value has a control character; remove it", id="a carriage return"),
        pytest.param("A=xy\0zzy", "line 1: the value has a control character; remove it", id="a NUL"),
        pytest.param("# a\\\nA=xyzzy", "line 1: a comment ends in a backslash; remove it", id="a comment that goes on"),
    ],
)
def test_what_systemd_leaves_out_or_reads_in_several_ways_is_refused_without_its_value(text: str, problem: str) -> None:
    assert parse_environment(text)[1] == [problem]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(None, "cannot be read: No such file or directory", id="no file"),
        pytest.param(b"A=\xff", "not valid UTF-8: invalid start byte at byte 2", id="bytes that are no text"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(content: bytes | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "environment"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        read_environment_file(path)
    assert refused.value.messages == [f"{path}: {problem}"]


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
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ok\n", "")
    ran = lookout(tmp_path, "--env-file", "environment", "check-config")
    assert (ran.returncode, "server.listen" in ran.stderr) == (2, True)


def test_all_that_is_wrong_with_the_files_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "environment").write_text("A\nexport B=xyzzy\n")
    ran = lookout(tmp_path, "--env-file", "none", "--env-file", "environment", "check-config")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        "lookout: none: cannot be read: No such file or directory\n"
        f"lookout: environment: line 1: is not NAME=value; {NAME}\n"
        f"lookout: environment: line 2: is not NAME=value (without export); {NAME}\n"
    )
