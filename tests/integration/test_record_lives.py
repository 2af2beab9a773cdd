"""Monitors as real processes that record: each to a file of its own, and a standby to the file of the one before it."""

import os
import signal
from pathlib import Path

import pytest

from lookout.replay.replay import read_log
from lookout.state.log import Started
from tests.commands import a_command, said
from tests.integration.fast import World, a_config, a_world
from tests.wait import until_async


def a_place(folder: Path, world: World, record: str, store: str = "lookout.db") -> Path:
    """A folder with the configuration of a monitor that records."""
    folder.mkdir()
    config = a_config(world.base).replace("sqlite:lookout.db", f"sqlite:{store}")
    (folder / "lookout.toml").write_text(f'{config}[monitor]\nrecord = "{record}"\n')
    return folder


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def starts(path: Path) -> int:
    """How often recording began; every line can be read."""
    with path.open("rb") as log:
        return sum(isinstance(event, Started) for _, event in read_log(log, []))


async def test_a_standby_on_the_same_record_takes_over_and_goes_on_with_it(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        first = a_place(tmp_path / "first", world, "../seen.jsonl", "../lookout.db")
        second = a_place(tmp_path / "second", world, "../seen.jsonl", "../lookout.db")
        record = tmp_path / "seen.jsonl"
        with a_command(first, "monitor", "-c", "lookout.toml") as writing:
            await until_async(lambda: lines(record) > 20, "something is recorded")
            with a_command(second, "monitor", "-c", "lookout.toml") as standby:
                await until_async(lambda: "waiting for the other monitor" in said(second), "it stands by")
                writing.terminate()
                await until_async(lambda: starts(record) == 2, "the standby records")
                assert standby.poll() is None
                assert "not recorded" not in said(second)


@pytest.mark.long
async def test_a_standby_takes_over_also_while_somebody_else_has_its_record(tmp_path: Path) -> None:
    """As one that was frozen has, or one whose disk hangs: the record waits for it, the watching does not."""
    async with a_world(tmp_path) as world:
        first = a_place(tmp_path / "first", world, "own.jsonl", "../lookout.db")
        second = a_place(tmp_path / "second", world, "seen.jsonl", "../lookout.db")
        third = a_place(tmp_path / "third", world, "../second/seen.jsonl")
        with a_command(third, "monitor", "-c", "lookout.toml") as holder:
            await until_async(lambda: lines(second / "seen.jsonl") > 20, "something is recorded")
            with a_command(first, "monitor", "-c", "lookout.toml") as writing:
                await world.until_healthy()
                with a_command(second, "monitor", "-c", "lookout.toml"):
                    await until_async(lambda: "waiting for the other monitor" in said(second), "it stands by")
                    writing.terminate()
                    await until_async(lambda: "not recorded" in said(second), "it watches without its record")
                    os.kill(holder.pid, signal.SIGKILL)
                    await until_async(lambda: starts(second / "seen.jsonl") == 2, "it records")
