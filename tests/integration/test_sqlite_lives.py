"""Monitors whose SQLite store is taken away under them: its file, its lock, the room on its disk."""

import signal
from contextlib import closing
from pathlib import Path

import pytest

from lookout.core.ledger import State
from lookout.state.codec import decode_state
from lookout.store.sqlite import open_writer
from tests.commands import TIME_S, a_command, said
from tests.integration.fast import a_config, a_world
from tests.wait import until_async

STANDS_BY = "another monitor may have taken over; standing by"


def what_is_stored(path: Path) -> State:
    """StateError if it is not what was stored."""
    with closing(open_writer(path)) as writer:
        state, _ = decode_state(writer.load())
    assert state is not None
    return state


@pytest.mark.clause("M7")
async def test_a_monitor_whose_file_was_removed_says_so_and_begins_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "lookout.db"
    async with a_world(tmp_path) as world:
        (tmp_path / "lookout.toml").write_text(a_config(world.base))
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
            await world.until_healthy()
            for end in ("", "-wal", "-shm", "-lock"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            await until_async(lambda: "the file is gone" in said(tmp_path), "it is said")
            await world.until(lambda: world.document("history") is not None, "both documents are there")
            await world.until_healthy()
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIME_S) == 0
        assert what_is_stored(path).checks
    assert said(tmp_path).count(STANDS_BY) == 1
    assert "Traceback" not in said(tmp_path)
    assert '"lost": "history, uptimes, notes, silences and alerts"' in said(tmp_path)
