"""A SQLite store whose file, or whose lock, is taken away or replaced while a monitor writes to it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from lookout.store.protocol import LostStoreError, Reader, StoreBusyError, StoreError, Writer
from lookout.store.sqlite import LARGEST_WAL_BYTES, SqliteReader, open_writer
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened

READING = """
import sys
from pathlib import Path
from lookout.store.sqlite import SqliteReader
reader = SqliteReader(Path(sys.argv[1]))
assert reader.read("live") is not None
print("in", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(path: Path, opened: Opened) -> Writer:
    """A monitor's, which goes on from what another one wrote, and has written twice."""
    with closing(open_writer(path)) as before:
        before.write({}, {"before": b"0"})
    writer = opened(open_writer(path))
    writer.write({"live": LIVE, "history": HISTORY}, {"a": b"1", "b": b"1"})
    writer.write({}, {"a": b"1", "c": b"1"})
    return writer


@pytest.fixture
def reader(path: Path, opened: Opened) -> Reader:
    return opened(SqliteReader(path))


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def stored(path: Path) -> dict[str, bytes]:
    """The state as another process finds it."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, piece FROM pieces"))


def remove_all(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def empty(path: Path) -> None:
    path.unlink()
    path.touch()


def another_programs(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE mine (x); INSERT INTO mine VALUES (7);")


def no_database(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"my diary, not a database, and long enough to show it" * 100)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


LOST: dict[str, tuple[Callable[[Path], object], str]] = {
    "was removed": (Path.unlink, "the file is gone"),
    "was moved away": (lambda path: path.rename(path.with_name("away.db")), "the file is gone"),
    "was removed with all that is beside it": (remove_all, "the file is gone"),
    "was replaced by an empty one": (empty, "another store was put in its place"),
}


@pytest.mark.clause("M7")
@pytest.mark.parametrize(("lose", "why"), LOST.values(), ids=LOST)
def test_a_store_is_lost_and_another_one_begun_when_its_file(
    lose: Callable[[Path], object], why: str, path: Path, writer: Writer, reader: Reader, opened: Opened
) -> None:
    assert reader.read("live") == LIVE
    lose(path)
    for use in (lambda: writer.write({"live": LIVE}, {"d": b"1"}), writer.load):
        with pytest.raises(LostStoreError, match=why):
            use()
    writer.close()
    another = opened(open_writer(path))
    assert another.load() == {}
    another.write({"live": HISTORY}, {"another": b"1"})
    assert stored(path) == {"another": b"1"}
    assert (reader.changed(), reader.read("live")) == (True, HISTORY)


@pytest.mark.parametrize(
    ("put", "said"),
    [
        pytest.param(another_programs, "of another program; .* or move it away", id="another program's database"),
        pytest.param(no_database, "is damaged .* or move it away to begin a new store", id="no database"),
        pytest.param(a_folder, "unable to open database file", id="a folder"),
    ],
)
def test_what_is_not_a_store_is_left_alone_in_its_place(
    put: Callable[[Path], object], said: str, path: Path, writer: Writer
) -> None:
    put(path)
    before = path.read_bytes() if path.is_file() else b""
    for _ in range(2):
        with pytest.raises(StoreError, match=said) as caught:
            writer.write({"live": LIVE}, {"d": b"1"})
        assert not isinstance(caught.value, LostStoreError)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_folder_that_is_away_is_named_and_waited_for(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "folder"
    folder.mkdir()
    with closing(open_writer(folder / "lookout.db")) as writer:
        writer.write({"live": LIVE}, {"a": b"1"})
        folder.rename(tmp_path / "away")
        with pytest.raises(StoreError, match=r"there is no folder .*; make it first"):
            writer.write({"live": LIVE}, {"a": b"1"})
        (tmp_path / "away").rename(folder)
        writer.write({"live": LIVE}, {"a": b"1"})
        assert stored(folder / "lookout.db") == {"a": b"1"}


@pytest.mark.clause("M7")
@pytest.mark.parametrize("name", ["other.db", "1.sqlite"])
def test_another_store_in_its_place_is_not_written_over_but_gone_on_from(
    name: str, path: Path, writer: Writer, reader: Reader
) -> None:
    there = path.with_name(name)
    if name == "other.db":
        with closing(open_writer(there)) as other:
            for n in range(30):
                other.write({"live": LIVE}, {f"{n}": b"other" * 1_000})
    else:  # as an earlier version wrote it
        shutil.copy(Path(__file__).parents[2] / "data" / "stores" / name, there)
    theirs = stored(there)
    assert theirs
    assert reader.read("live") == LIVE
    there.replace(path)
    for _ in range(2):
        with pytest.raises(LostStoreError, match="another store was put in its place"):
            writer.write({"live": LIVE}, {"d": b"1"})
    assert stored(path) == theirs
    writer.close()
    with closing(open_writer(path)) as again:
        assert again.load() == theirs


def remove_lock(path: Path) -> None:
    beside(path, "-lock").unlink()


@pytest.mark.clause("M7")
@pytest.mark.parametrize(
    ("remove", "has_ended"),
    [
        pytest.param(remove_lock, False, id="its lock was removed"),
        pytest.param(remove_lock, True, id="its lock was removed, and the other has ended: only the epoch shows it"),
        pytest.param(remove_all, False, id="its file and lock were removed"),
    ],
)
def test_a_monitor_that_was_overtaken_writes_nothing(
    remove: Callable[[Path], None], has_ended: bool, path: Path, writer: Writer, opened: Opened
) -> None:
    remove(path)
    second = opened(open_writer(path))
    whole = {**second.load(), "second": b"1"}
    assert (whole == {"second": b"1"}) == (remove is remove_all)
    second.write({"live": HISTORY}, whole)
    if has_ended:
        second.close()
    write = partial(writer.write, {"live": LIVE}, {"d": b"1"})
    for use in (write, write, writer.load):
        with pytest.raises(
            LostStoreError, match="another" if remove is remove_all else "another monitor has taken over"
        ):
            use()
    if not has_ended:
        second.write({"live": HISTORY}, whole)
        with pytest.raises(StoreBusyError):
            open_writer(path)
    remove_lock(path)
    with pytest.raises(LostStoreError):
        write()
    assert stored(path) == whole


def test_a_second_one_on_a_new_file_is_left_alone_by_a_first_one_of_as_many_writes(path: Path) -> None:
    """Both began from nothing, and have written as often: their epochs are not the same, all the same."""
    first = open_writer(path)
    first.write({"live": LIVE}, {"first": b"1"})
    remove_all(path)
    second = open_writer(path)
    second.write({"live": LIVE}, {"second": b"1"})
    second.close()
    with pytest.raises(LostStoreError):
        first.write({"live": LIVE}, NOTHING)
    first.close()
    assert stored(path) == {"second": b"1"}


def test_a_new_file_is_not_read_together_with_what_another_process_still_holds(path: Path, writer: Writer) -> None:
    """What SQLite keeps beside a file would be taken for the new one's: it is a server's that reads the old one."""
    with subprocess.Popen(
        [sys.executable, "-c", READING, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    ) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"in\n"
        path.unlink()
        writer.close()
        with closing(open_writer(path)) as again:
            assert again.load() == {}
            again.write({"live": LIVE}, {"new": b"1"})
            assert stored(path) == {"new": b"1"}
        reading.kill()


def test_neither_many_writes_nor_a_large_one_leave_a_large_log_ahead(path: Path, writer: Writer) -> None:
    """Half a megabyte is kept, for the next writes: on a small disk, a log that stays grown leaves no room for them."""
    wal, largest, state = beside(path, "-wal"), 0, dict[str, bytes]()
    for n in range(300):
        state = {**state, f"{n % 20}": b"%d" % n * 4_000}
        writer.write({"live": LIVE}, state)
        largest = max(largest, wal.stat().st_size)
    assert largest <= LARGEST_WAL_BYTES == 524_288
    large = {"large": b"1" * 4_000_000}
    writer.write({}, large)
    assert wal.stat().st_size > 4_000_000
    writer.write({"live": HISTORY}, large)
    assert wal.stat().st_size <= LARGEST_WAL_BYTES
