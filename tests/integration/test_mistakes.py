"""Mistakes that people make at a prompt: each is answered with a sentence, and ends the command."""

from pathlib import Path

import pytest

from tests.commands import lookout_here


def invoke(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, and what was said and complained of."""
    ran = lookout_here(folder, *arguments)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize("protocol", ["", "a b", "../x?", "..", "a/b"])
def test_a_protocol_that_is_no_segment_of_a_path_is_refused(protocol: str, tmp_path: Path) -> None:
    rule = "a text of letters, digits and . _ ~ - that is neither . nor .."
    assert invoke(tmp_path, "verify", "http://127.0.0.1:9", "--protocol", protocol) == (
        2,
        "",
        f"lookout: --protocol: {protocol!r} is not {rule}\n",
    )


def test_probing_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").touch()
    assert invoke(tmp_path, "probe", "-c", "empty.toml") == (
        2,
        "",
        "lookout: empty.toml: nothing is configured to be probed; add [[chains]] with rpc, or the table of a service\n",
    )


@pytest.mark.parametrize("command", [("run",), ("serve",), ("replay", "log.jsonl", "--live", "l"), ("alerts", "test")])
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
