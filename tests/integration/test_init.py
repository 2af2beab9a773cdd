"""``lookout init`` and ``lookout completion``, as people meet them."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.config.file import read_config
from tests.commands import LOOKOUT
from tests.integration.terminal import a_terminal_of

ROOT: Final = Path(__file__).parent.parent.parent
EXAMPLE: Final = ROOT / "lookout.example.toml"
TIME_S: Final = 60


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands are used."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> tuple[int, str, str]:
    """A command's exit code, what it said, and what it complained of."""
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("path", ["lookout.toml", "-"])
def test_without_options_and_a_terminal_it_says_how_to_use_it(path: str, folder: Path) -> None:
    why = "say what to watch by options (lookout init --help), or use it on a terminal, where it asks"
    assert invoke("init", path) == (2, "", f"lookout: {why}\n")
    assert list(folder.iterdir()) == []


def test_a_file_that_is_there_is_replaced_only_by_force(folder: Path) -> None:
    path = folder / "mine.toml"
    path.write_text("precious")
    path.chmod(0o644)
    why = "lookout: mine.toml: already exists; choose another name, or replace it with --force\n"
    assert invoke("init", "mine.toml") == (2, "", why)
    assert path.read_text() == "precious"
    assert invoke("init", "--force", "--no-probe", "--messaging=https://waku.example", "mine.toml")[0] == 0
    assert [table.address() for table in read_config(path).sources["messaging"]] == ["https://waku.example"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640, "for its owner, and the group that could read it before"


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
