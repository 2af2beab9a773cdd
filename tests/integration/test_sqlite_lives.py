"""Monitors whose SQLite store is taken away under them: its file, its lock, the room on its disk."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lookout.app.monitor import writer_of
from lookout.base.pieces import Pieces
from lookout.config.file import read_config
from lookout.core.ledger import State
from lookout.documents.document import Document
from lookout.state.codec import decode_state
from lookout.store.protocol import StoreError, Writer
from lookout.store.sqlite import SqliteReader, open_writer
from tests.commands import TIME_S, a_command, said
from tests.integration.fast import a_config, a_world
from tests.integration.small_disks import a_small_disk, fill
from tests.leases import or_skipped
from tests.logs import capture_logs
from tests.wait import until_async

CANNOT_BE_USED = "the store cannot be used; trying again every second"
STANDS_BY = "another monitor may have taken over; standing by"


def what_is_stored(path: Path) -> State:
    """StateError if it is not what was stored."""
    with closing(open_writer(path)) as writer:
        state = decode_state(writer.load())
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


@pytest.mark.clause("M7", "M14")
async def test_of_two_monitors_without_a_lock_one_stands_by_and_the_store_stays_whole(tmp_path: Path) -> None:
    path, lock = tmp_path / "lookout.db", tmp_path / "lookout.db-lock"

    def is_overtaken() -> bool:
        with suppress(FileNotFoundError):
            lock.unlink()  # again: the first one makes it again whenever it writes
        return STANDS_BY in said(tmp_path)

    async with a_world(tmp_path) as world:
        (tmp_path / "lookout.toml").write_text(a_config(world.base))
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as first:
            await world.until_healthy()
            with a_command(tmp_path, "monitor", "-c", "lookout.toml") as second:
                await until_async(is_overtaken, "one of them stands by")
                at = world.document()["generatedAt"]
                await world.until(lambda: world.document()["generatedAt"] > at, "the other one goes on")
                await world.until_healthy()
                for process in (second, first):
                    assert process.poll() is None
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(TIME_S) == 0
        assert what_is_stored(path).checks
    assert "Traceback" not in said(tmp_path)


async def test_only_a_monitor_that_has_not_stood_by_ends_of_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (tmp_path / "lookout.toml").write_text(a_config("http://127.0.0.1:9").replace("sqlite:", "sqlite:data/"))
    settings = read_config(tmp_path / "lookout.toml")

    with pytest.raises(StoreError, match="there is no folder"):
        await writer_of(settings, tmp_path)
    with capture_logs() as log:
        opening = asyncio.create_task(writer_of(settings, tmp_path, has_stood_by=True))
        await until_async(lambda: bool(log), "it says so")
        folder.mkdir()
        writer, has_stood_by = await opening
        writer.close()
        assert has_stood_by
    assert [line["event"] for line in log] == [CANNOT_BE_USED]


@pytest.fixture
def disk() -> Iterator[Path]:
    with or_skipped(a_small_disk(1.5)) as disk:
        yield disk


def publish(writer: Writer, times: int) -> None:
    """As a monitor does: a little each time, and a history now and then."""
    for n in range(times):
        live = Document(b"%d" % n * 3_000, '"x"', n)
        history = {} if n % 20 else {"history": Document(b"%d" % n * 20_000, '"x"', n)}
        writer.write({"live": live, **history}, Pieces({f"{n % 50}": b"%d" % n * 1_500}))  # type: ignore[dict-item]


@pytest.mark.clause("M7")
def test_a_small_disk_is_not_filled_by_the_log_ahead_and_is_written_to_once_there_is_room(disk: Path) -> None:
    path, wal = disk / "lookout.db", disk / "lookout.db-wal"
    with closing(open_writer(path)) as writer, closing(SqliteReader(path)) as reader:
        assert reader.changed()  # a server keeps the log from being removed
        publish(writer, 200)
        for _ in range(10):  # until others have taken all that the log ahead had and gave back
            fill(disk)
            with suppress(StoreError):
                writer.write({}, Pieces({"large": bytes(200_000)}))
        for _ in range(3):
            with pytest.raises(StoreError, match=r"full|I/O error"):
                publish(writer, 1)
        (disk / "ballast").unlink()
        publish(writer, 200)
        assert wal.stat().st_size <= 512 * 1024
        live = reader.read("live")
        assert live is not None
        assert live.generated_at == 199
