"""What the SQLite file does besides what every store does."""

import os
import re
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lookout.store.protocol import Reader, Snapshot, StoreBusyError, StoreError, Writer
from lookout.store.sqlite import SqliteReader, SqliteWriter, open_writer, write_file
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened
from tests.wait import until

REMEDY = "; use another copy of it, or move it away to begin a new store"


@pytest.fixture
def writer(path: Path, opened: Opened) -> Writer:
    return opened(open_writer(path))


@pytest.fixture
def reader(path: Path, opened: Opened) -> Reader:
    return opened(SqliteReader(path))


def test_the_file_is_for_its_owner_alone(path: Path, writer: Writer) -> None:
    writer.write({"live": LIVE}, NOTHING)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_reader_notices_a_file_that_comes_is_replaced_and_is_taken_away(path: Path, reader: Reader) -> None:
    assert (reader.changed(), reader.read("live")) == (False, None)
    for name, document in (("lookout.db", LIVE), ("other.db", HISTORY)):
        with closing(open_writer(path.with_name(name))) as writer:
            writer.write({"live": document}, NOTHING)
    assert (reader.changed(), reader.read("live")) == (True, LIVE)
    path.with_name("other.db").replace(path)
    assert (reader.changed(), reader.read("live")) == (True, HISTORY)
    path.unlink()
    assert (reader.changed(), reader.read("live")) == (False, None)


def test_a_file_has_one_writer_whatever_it_is_called(path: Path, writer: Writer) -> None:
    writer.write({"live": LIVE}, NOTHING)
    other = path.with_name("other.db")
    other.symlink_to(path)
    with pytest.raises(StoreError, match="another monitor is writing to it"):
        open_writer(other)


@pytest.mark.clause("M7")
def test_a_backup_in_the_stores_place_is_opened_at_once(path: Path, reader: Reader, opened: Opened) -> None:
    write_file(Snapshot({"live": LIVE, "history": HISTORY}, {"a": b"1"}), path)
    writer = opened(open_writer(path))
    assert writer.load() == {"a": b"1"}
    writer.write({}, {"b": b"2"})
    assert writer.load() == {"b": b"2"}
    assert reader.read("history") == HISTORY


def a_diary(path: Path) -> None:
    path.write_bytes(b"my diary, not a database, and long enough to show it" * 100)


def cut_short(path: Path) -> None:
    with closing(open_writer(path)) as writer:
        writer.write({"live": LIVE}, {"a": b"1" * 50_000})
    os.truncate(path, 9_000)


def another_programs(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE mine (x); INSERT INTO mine VALUES (7);")


NO_STORES = {
    "no database": (a_diary, f"is damaged (file is not a database){REMEDY}"),
    "cut short": (cut_short, f"is damaged (database disk image is malformed){REMEDY}"),
    "another program's": (
        another_programs,
        "a database of another program; choose another file in store.url, or move it away",
    ),
}


@pytest.mark.parametrize(("put", "said"), NO_STORES.values(), ids=NO_STORES)
def test_a_file_that_is_no_store_is_refused_and_left_alone(
    put: Callable[[Path], None], said: str, path: Path, reader: Reader
) -> None:
    put(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=re.escape(f"{path}: {said}") + r"\Z"):
        open_writer(path)
    if "damaged" in said:
        with pytest.raises(StoreError, match=re.escape(f"{path}: {said}") + r"\Z"):
            reader.read("live")
    assert path.read_bytes() == before


def test_a_file_that_is_damaged_while_it_is_written_to_is_called_that(path: Path, writer: Writer) -> None:
    state = {f"{n}": b"1" * 5_000 for n in range(40)}
    writer.write({"live": LIVE}, state)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4_096] + b"\xff" * (len(whole) - 4_096))
    with pytest.raises(StoreError, match=re.escape(f"{path}: is damaged (") + ".*" + re.escape(REMEDY) + r"\Z"):
        writer.write({"live": LIVE}, {**state, "7": b"2"})


def test_closing_waits_for_a_write_and_keeps_others_out_meanwhile(path: Path) -> None:
    writer = open_writer(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as holding:
        holding.execute("BEGIN IMMEDIATE")
        writing = threading.Thread(target=writer.write, args=({"live": LIVE}, {"a": b"1"}))
        writing.start()
        until(lambda: writer._using.locked(), "it waits for the database")
        ending = threading.Thread(target=writer.close)
        ending.start()
        with pytest.raises(StoreBusyError):
            open_writer(path)
        holding.execute("COMMIT")
    ending.join()
    writing.join()
    other = open_writer(path)
    assert other.load() == {"a": b"1"}
    other.close()


def test_a_connection_that_failed_is_not_used_again(writer: Writer, reader: Reader) -> None:
    """The connection may keep a lock for ever, if the system did not let go of it."""
    writer.write({"live": LIVE}, NOTHING)
    assert reader.changed()  # a server keeps the files in place
    assert isinstance(writer, SqliteWriter)
    assert writer._connection is not None
    writer._connection.close()
    with pytest.raises(StoreError, match="closed database"):
        writer.write({"live": HISTORY}, NOTHING)
    writer.write({"live": HISTORY}, NOTHING)
    assert reader.changed()
    assert reader.read("live") == HISTORY


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "lookout.db"
    path.with_name("lookout.db-lock").mkdir()
    with pytest.raises(StoreError, match=re.escape(f"{path}-lock: Is a directory") + r"\Z"):
        open_writer(path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "no" / "such" / "lookout.db"
    said = f"{path}: there is no folder {path.parent}; make it first, or change store.url"
    with pytest.raises(StoreError, match=re.escape(said)):
        open_writer(path)
