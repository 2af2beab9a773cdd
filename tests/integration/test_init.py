"""``lookout init`` and ``lookout completion``, as people meet them."""

import os
import re
import shutil
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.cli.init import read_template
from lookout.config.file import read_config
from lookout.config.settings import Settings
from tests.commands import LOOKOUT, lookout
from tests.integration.terminal import a_terminal_of

ROOT: Final = Path(__file__).parent.parent.parent
EXAMPLE: Final = ROOT / "lookout.example.toml"
TIME_S: Final = 60
TO_FILL_IN: Final = [
    "chains[0].rpc[0]",
    "chains[0].rpc[1]",
    "chains[0].rpc[2]",
    "ppoi.url",
    "indexer[0].url",
    "hosted-indexer[0].url",
    "messaging.url",
    "broadcasters.url",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands are used."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> tuple[int, str, str]:
    """A command's exit code, what it said, and what it complained of."""
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_what_init_writes_says_what_to_fill_in_and_is_fine_once_it_is(folder: Path) -> None:
    path = folder / "lookout.toml"
    done = lookout(folder, "init")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == 'lookout.toml: replace each "FILL IN" with your own address\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    exit_code, _, problems = invoke("check-config", "-c", "lookout.toml")
    assert exit_code == 2
    assert [line.split(": ")[2] for line in problems.splitlines()] == TO_FILL_IN
    text = path.read_text()
    assert text.count('"FILL IN"') == len(TO_FILL_IN) + 1  # and once in what it says of itself
    numbers = count()
    path.write_text(re.sub('"FILL IN"', lambda _: f'"https://service.example/{next(numbers)}"', text))
    assert invoke("check-config", "-c", "lookout.toml") == (0, "ok\n", "")
    settings = read_config(path)
    assert [chain.id for chain in settings.chains] == [1]
    assert len(settings.plan().monitored) == 5  # every service, once
    launch = read_config(EXAMPLE)
    for table in ("server", "admin", "log", "store", "monitor", "policy", "history", "edge"):
        assert getattr(settings, table) == getattr(launch, table) == getattr(Settings(), table)


def test_its_settings_and_their_comments_are_those_of_the_example() -> None:
    def settings(text: str) -> set[str]:
        return set(re.findall(r"^(?:\[+[a-z.-]+\]+|# (?:\w+ = |\[).*|\w+ =)", text, re.MULTILINE))

    assert settings(read_template()) == settings(EXAMPLE.read_text())


def test_a_file_that_is_there_is_replaced_only_by_force(folder: Path) -> None:
    path = folder / "mine.toml"
    path.write_text("precious")
    path.chmod(0o644)
    why = "lookout: mine.toml: already exists; choose another name, or replace it with --force\n"
    assert invoke("init", "mine.toml") == (2, "", why)
    assert path.read_text() == "precious"
    assert invoke("init", "--force", "mine.toml")[0] == 0
    assert path.read_text() == read_template()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "for its owner, and the group that could read it before"


def test_init_writes_to_the_standard_output_if_asked_to(folder: Path) -> None:
    assert invoke("init", "-") == (0, read_template(), "")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no/such/lookout.toml", "there is no folder no/such; make it first"),
        ("a-folder", "is a folder; name a file in it"),
        ("a-file/lookout.toml", "there is no folder a-file; make it first"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_with_what_to_do(path: str, why: str, folder: Path) -> None:
    (folder / "a-folder").mkdir()
    (folder / "a-file").touch()
    assert invoke("init", path) == (2, "", f"lookout: {path}: {why}\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_and_file_names(folder: Path) -> None:
    (folder / "my-watch.toml").touch()
    environment = {
        "PATH": f"{LOOKOUT.parent}:{os.environ['PATH']}",
        "TERM": "dumb",
        "PS1": "ready$ ",
        "INPUTRC": os.devnull,
    }
    with a_terminal_of(folder, ["bash", "--norc", "--noprofile", "-i"], **environment) as terminal:
        terminal.answer("ready$ ", 'eval "$(lookout completion bash)"; echo do"ne"')
        terminal.wait_for("done\nready$ ")
        for keys, completed in (
            ("lookout check-co\t", "check-config "),
            ("lookout restore --fo\t", "--force "),
            ("lookout completion ba\t", "completion bash "),
            ("lookout check-config -c my-\t", "-c my-watch.toml "),
            ("lookout init my-\t", "init my-watch.toml "),
            ("lookout \t\t", "edge-config"),
        ):
            terminal.type(f"\x15{keys}")  # after clearing the line
            terminal.wait_for(completed)


def test_completing_a_command_reads_none_of_their_modules() -> None:
    program = "import sys; from lookout.cli import main; main(prog_name='lookout', complete_var='_LOOKOUT_COMPLETE')"
    watched = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {program}"
    environment = {**os.environ, "_LOOKOUT_COMPLETE": "bash_complete", "COMP_WORDS": "lookout ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", watched], capture_output=True, text=True, timeout=TIME_S, check=True, env=environment
    )
    assert "plain,monitor\nplain,serve\n" in done.stdout
    loaded = set(done.stderr.split())
    assert "lookout.cli" in loaded
    assert not loaded & {"lookout.cli.commands", "lookout.config.settings", "msgspec", "aiohttp", "httptools"}


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -"), ("zsh", "#compdef lookout"), ("fish", "complete ")]
)
def test_there_is_a_completion_for_each_shell(shell: str, word: str) -> None:
    exit_code, script, complaint = invoke("completion", shell)
    assert (exit_code, complaint) == (0, "")
    assert word in script
    assert "_LOOKOUT_COMPLETE" in script
