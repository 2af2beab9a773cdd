"""Mistakes that people make at a prompt: each is answered with a sentence, and ends the command."""

import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from tests.commands import LOOKOUT, lookout, lookout_here

TIME_S: Final = 60


def invoke(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what was said and complained of."""
    ran = lookout_here(folder, *arguments)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("command", ["watch", "verify"])
@pytest.mark.parametrize("protocol", ["", "a b", "../x?", "..", "a/b"])
def test_a_protocol_that_is_no_segment_of_a_path_is_refused(command: str, protocol: str, tmp_path: Path) -> None:
    rule = "a text of letters, digits and . _ ~ - that is neither . nor .."
    assert invoke(tmp_path, command, "http://127.0.0.1:9", "--protocol", protocol) == (
        2,
        "",
        f"lookout: --protocol: {protocol!r} is not {rule}\n",
    )


def test_watch_ends_with_whatever_ends_its_polling() -> None:
    """The option's check is passed by: this is what it keeps people from."""
    program = "from lookout.cli.watch import watch; watch.callback('http://127.0.0.1:9', '', True)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIME_S, check=False)
    assert ran.returncode == 1
    assert ran.stderr.endswith("ValueError: no protocol given\n")


def test_probing_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()
    assert invoke(tmp_path, "probe", "-c", "empty.toml") == (
        2,
        "",
        "lookout: empty.toml: nothing is configured to be probed; add [[chains]] with rpc, or the table of a service\n",
    )


OF_A_CONFIGURATION: Final = [
    pytest.param((*words.split(), *more), id=words)
    for words, *more in [
        ["run"],
        ["monitor"],
        ["serve"],
        ["reload"],
        ["probe"],
        ["check-config"],
        ["replay", "log.jsonl", "--live", "live.json"],
        ["edge-config"],
        ["alerts test"],
        ["backup", "out.db"],
        ["restore", "in.db"],
    ]
]


@pytest.mark.parametrize("command", OF_A_CONFIGURATION)
def test_without_a_configuration_a_command_says_where_it_looked_and_how_to_begin(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = "-c is not given, LOOKOUT_CONFIG names none, and there is no lookout.toml in this folder"
    nothing = f"lookout: there is no configuration: {looked}; begin with lookout init, which writes one\n"
    monkeypatch.delenv("LOOKOUT_CONFIG", raising=False)
    assert invoke(tmp_path, *command) == (2, "", nothing)
    monkeypatch.setenv("LOOKOUT_CONFIG", "")
    assert invoke(tmp_path, *command) == (2, "", nothing)
    monkeypatch.setenv("LOOKOUT_CONFIG", "nowhere.toml")
    assert invoke(tmp_path, *command) == (2, "", "lookout: nowhere.toml: cannot be read: No such file or directory\n")


def test_the_file_that_is_given_wins_over_the_variable_and_that_over_the_one_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("given", "named", "lookout"):
        (tmp_path / f"{name}.toml").write_text(f"{name} = 1\n")
    monkeypatch.setenv("LOOKOUT_CONFIG", "named.toml")
    assert "given.toml: given: unknown key" in invoke(tmp_path, "check-config", "-c", "given.toml")[2]
    assert "named.toml: named: unknown key" in invoke(tmp_path, "check-config")[2]
    monkeypatch.setenv("LOOKOUT_CONFIG", "")
    assert "lookout.toml: lookout: unknown key" in invoke(tmp_path, "check-config")[2]


def test_a_file_that_is_given_and_not_there_is_not_replaced_by_another(tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").touch()
    said = "lookout: nowhere.toml: cannot be read: No such file or directory\n"
    assert invoke(tmp_path, "check-config", "-c", "nowhere.toml") == (2, "", said)


@pytest.mark.parametrize(
    "words", ["probe -", "backup ", "alerts test --"], ids=["options", "a file", "options of a command in a group"]
)
def test_completion_needs_no_configuration(words: str, tmp_path: Path) -> None:
    completing = {"_LOOKOUT_COMPLETE": "bash_complete", "COMP_WORDS": f"lookout {words}"}
    environment = completing | {"COMP_CWORD": str(len(words.split(" "))), "LOOKOUT_CONFIG": "nowhere.toml"}
    completed = lookout(tmp_path, environment=environment)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout


def test_sim_claims_nothing_before_it_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = lookout(tmp_path, "sim", "--listen", address)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"lookout: --listen: {address}: Address already in use\n"


def test_sim_says_where_it_listens_once_it_does(tmp_path: Path) -> None:
    with subprocess.Popen(
        [LOOKOUT, "sim", "--listen", "127.0.0.1:0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            where = re.match(r"simulated upstreams on (http://127\.0\.0\.1:[1-9][0-9]*)/ ", process.stdout.readline())
            assert where is not None
            with urlopen(f"{where[1]}/control", timeout=TIME_S) as answer:  # noqa: S310 - its scheme is above
                assert answer.status == 200
        finally:
            process.terminate()
        assert process.wait(TIME_S) == 0


def test_a_store_in_a_folder_that_is_not_there_is_named_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text('[store]\nurl = "sqlite:nowhere/x.db"\n')
    ran = lookout(tmp_path, "monitor", "-c", "lookout.toml")
    folder = tmp_path.resolve() / "nowhere"
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == (
        f"lookout: {folder}/x.db: there is no folder {folder}; make it first, or change store.url"
    )


@pytest.mark.clause("A16")
def test_it_is_doubted_that_one_address_is_to_have_all_connections(tmp_path: Path) -> None:
    for of_address, doubts in ((1_000_000, 1), (100, 0)):
        (tmp_path / "lookout.toml").write_text(f"[server]\nconnections_per_address = {of_address}\nworkers = 2\n")
        code, said, complained = invoke(tmp_path, "check-config")
        assert (code, said) == (0, "ok\n")
        assert complained.count("lets one address have 2000000 connections, 1000000 to each worker") == doubts
