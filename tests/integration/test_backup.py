"""``lookout backup`` and ``lookout restore``: while everything runs, from either kind of store into either."""

import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

import psycopg
import pytest

from lookout.app.backup import Contents, back_up, restore
from lookout.base.clock import SystemClock
from lookout.config.file import read_config
from lookout.documents.reports import documents_of
from lookout.monitor.assembly import build_monitor
from lookout.state.codec import encode_state
from lookout.state.errors import StateError
from lookout.store import sqlite
from lookout.store.kinds import kind_of
from lookout.store.protocol import Snapshot, StoreError
from lookout.store.sqlite import read_snapshot, write_file
from tests.builders import NOON
from tests.commands import lookout
from tests.integration.planted import a_fresh_ledger
from tests.leases import or_skipped
from tests.machines import a_machine
from tests.postgres import Postgres, a_postgres, from_a_wheel
from tests.stores import damage
from tests.unit.running_monitor import InLine
from tests.wait import until

TIME_S: Final = 90
SQLITE: Final = "sqlite:lookout.db"


@pytest.fixture(scope="module", params=[from_a_wheel()])
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with or_skipped(a_postgres(request.param)) as server:
        yield server


class Place:
    """A folder with a configuration, and the store that this names."""

    def __init__(self, folder: Path, url: str = SQLITE) -> None:
        folder.mkdir()
        (folder / "lookout.toml").write_text(f'[store]\nurl = "{url}"\n[admin]\nmonitor = ""\nserver = ""\n')
        self.folder = folder
        self.file = folder / "lookout.db"
        self.settings = read_config(folder / "lookout.toml")

    def fill(self, at: int = NOON, more: Mapping[str, bytes] = {}) -> Snapshot:
        """Publish into the file as a monitor would, with further documents of its state; what it then holds."""
        ledger = a_fresh_ledger(at)
        state = encode_state(ledger.state(), more).documents
        with closing(sqlite.open_writer(self.file)) as writer:
            writer.write(documents_of(ledger), state)
        return read_snapshot(self.file)

    def back_up(self, name: str = "out.db") -> Path:
        back_up(self.settings, self.folder, self.folder / name)
        return self.folder / name

    def restore(self, backup: Path, *, force: bool = False) -> Contents:
        return restore(self.settings, self.folder, backup, force=force)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


@pytest.fixture
def held(place: Place) -> Snapshot:
    """What the place's store holds."""
    return place.fill()


@pytest.fixture(params=["sqlite", "postgresql"])
def other(request: pytest.FixtureRequest, server: Postgres, tmp_path: Path) -> Place:
    """An empty store of either kind."""
    return Place(tmp_path / "other", SQLITE if request.param == "sqlite" else server.url(server.a_database()))


def test_a_backup_is_for_its_owner_alone_and_says_what_it_holds(place: Place, held: Snapshot) -> None:
    done = lookout(place.folder, "backup", "-c", "lookout.toml", "out.db")
    out = place.folder / "out.db"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "out.db: 9 rows, the history from 2026-11-04T10:00:00Z to 2026-11-05T12:00:00Z,"
        f" a report of 2026-11-05T12:00:00.000Z; {out.stat().st_size:,} bytes\n"
    )
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert read_snapshot(out) == held
    files = {"lookout.toml", "lookout.db", "lookout.db-lock", "lookout.db-shm", "lookout.db-wal", "out.db"}
    assert {path.name for path in place.folder.iterdir()} == files


def test_a_store_comes_back_as_it_was_from_a_database_and_into_one(
    place: Place, held: Snapshot, server: Postgres, tmp_path: Path
) -> None:
    there, back = Place(tmp_path / "there", server.url(server.a_database())), Place(tmp_path / "back")
    one = place.back_up()
    there.restore(one)
    two = there.back_up()
    back.restore(two)
    assert [read_snapshot(path) for path in (one, two, back.file, back.back_up())] == [held] * 4


def test_a_backup_of_a_database_is_of_one_moment_whatever_is_written_meanwhile(
    place: Place, held: Snapshot, server: Postgres, tmp_path: Path
) -> None:
    database = server.a_database()
    there = Place(tmp_path / "there", server.url(database))
    there.restore(place.file)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(server.url(database)) as writing:
        writing.execute("LOCK TABLE lookout.pieces")  # which is read after the documents
        out = pool.submit(there.back_up)
        waits = "SELECT FROM pg_stat_activity WHERE application_name = 'lookout backup' AND wait_event_type = 'Lock'"
        until(lambda: bool(server.ask(database, waits)), "the backup waits", TIME_S)
        writing.execute("UPDATE lookout.documents SET generated_at = generated_at + 1")
        writing.execute("DELETE FROM lookout.pieces WHERE name = 'days'")
        writing.commit()
        assert read_snapshot(out.result(TIME_S)) == held


@pytest.mark.usefixtures("held")
def test_a_store_that_a_monitor_writes_to_is_not_restored_into(place: Place, other: Place) -> None:
    url = other.settings.store.url
    with closing(kind_of(url).open_writer(url, other.folder)) as writer:
        with pytest.raises(StoreError, match=r"another monitor is writing to it; stop it first$"):
            other.restore(place.file, force=True)
        assert writer.load() == {}


def test_what_is_stored_is_replaced_only_by_force(place: Place, held: Snapshot, other: Place, tmp_path: Path) -> None:
    newer = Place(tmp_path / "newer")
    now = newer.fill(NOON + 3_600_000, {"other/gone": b"1"})
    other.restore(newer.file)
    with pytest.raises(StoreError) as refused:
        other.restore(place.file)
    assert str(refused.value) == (
        "the store holds a report of 2026-11-05T13:00:00.000Z, and the backup one of 2026-11-05T12:00:00.000Z;"
        " --force replaces what is stored"
    )
    first = other.back_up("1.db")
    url = other.settings.store.url
    with closing(kind_of(url).open_reader(url, other.folder, "store.url")) as reader:  # of a server that is running
        assert (reader.changed(), reader.read("live")) == (True, now.documents["live"])
        other.restore(place.file, force=True)
        until(reader.changed, "the reader notices", TIME_S)
        assert reader.read("live") == held.documents["live"]
    assert (read_snapshot(first), read_snapshot(other.back_up("2.db"))) == (now, held)


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(";".join(statements))


def overwrite_a_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xa5" * 4096)


def put_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


OTHER_BUCKETS = "UPDATE pieces SET piece = (SELECT piece FROM pieces WHERE name = 'heads/1') WHERE name = 'days'"
OTHER_TEXT = "UPDATE documents SET body = CAST(replace(body, 'current', 'unknown') AS BLOB) WHERE name = 'live'"
ENDLESS_VIEW = """
DROP TABLE documents;
CREATE VIEW documents AS WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT n FROM endless)
SELECT 'live' AS name, x'00' AS body, 'e' AS etag, n AS generated_at FROM endless
"""
# What is done to a backup's file, or in it, and what is said of it.
BROKEN: Final[dict[str, tuple[str | Callable[[Path], object], str]]] = {
    "a diary": (lambda path: path.write_bytes(b"my diary " * 999), "is damaged (file is not a database)"),
    "another program's": ("PRAGMA application_id = 7", "a database of another program"),
    "of no version": ("PRAGMA user_version = 0", "is neither a backup nor a store of Lookout"),
    "an endless view": (ENDLESS_VIEW, "has other tables, views or indexes than a store of Lookout"),
    "a table more": ("CREATE TABLE more (x)", "has other tables, views or indexes than a store of Lookout"),
    "newer": ("PRAGMA user_version = 9", "written by a newer version of Lookout (schema 9"),
    "a page of other bytes": (overwrite_a_page, "is damaged"),
    "another document": (OTHER_TEXT, "is damaged: the live document is not the one that its ETag was made of"),
    "another gzip form": ("UPDATE documents SET body = x'00' WHERE name = 'live.gzip'", "is damaged: the live.gzip"),
    "one gone": ("DELETE FROM documents WHERE name = 'history'", "holds no history document"),
    "other buckets": (OTHER_BUCKETS, "is damaged: the stored document days is not what was stored"),
    "no buckets": ("DELETE FROM pieces WHERE name = 'days'", "is damaged: the stored document days is missing"),
    "buckets alone": ("DELETE FROM pieces WHERE name <> 'days'", "is damaged: the stored document state is missing"),
    "no state": ("DELETE FROM pieces", "holds no state that a monitor could go on from"),
    "a folder": (put_a_folder, "there is no such file"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A backup's file."""
    place = Place(tmp_path_factory.mktemp("whole") / "place")
    place.fill()
    return place.back_up().read_bytes()


@pytest.mark.clause("S19")
@pytest.mark.parametrize(("harm", "why"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_backup_is_refused_and_the_store_left_alone(
    harm: str | Callable[[Path], object], why: str, whole: bytes, place: Place, held: Snapshot, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    backup.write_bytes(whole)
    if isinstance(harm, str):
        execute(backup, harm)
    else:
        harm(backup)
    with pytest.raises(StoreError) as refused:
        place.restore(backup, force=True)
    assert str(refused.value).startswith(f"{backup}: ")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert read_snapshot(place.file) == held


@pytest.mark.clause("S19", "S20", "S21", "M7")
@pytest.mark.parametrize(
    "name",
    [
        *("source/broadcasters", "alerts", "alerts/1", "notices"),
        *("coverage/indexer/1", "links/indexer/1", "agreement/ppoi/1"),
    ],
)
def test_a_backup_from_which_no_monitor_would_start_is_refused(name: str, place: Place, tmp_path: Path) -> None:
    damaged = Place(tmp_path / "damaged")
    held = damaged.fill(more={name: b"[["})
    backup = tmp_path / "backup.db"
    write_file(held, backup)
    with closing(sqlite.open_writer(place.file)) as writer:
        machine = a_machine(writer, SystemClock(), store=InLine())
        with pytest.raises(StateError, match=rf"the stored document {name} cannot be read: .*; restore a backup"):
            build_monitor(place.settings, held.state, machine)
    for refused in (lambda: place.restore(backup, force=True), damaged.back_up):
        with pytest.raises(StoreError, match=f"is damaged: the stored document {name} cannot be read"):
            refused()


@pytest.mark.clause("M7", "H16")
@pytest.mark.parametrize("tries", [100, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_backup_in_which_a_bit_a_name_or_a_document_is_not_as_it_was_is_refused(
    tries: int, whole: bytes, place: Place, held: Snapshot, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    backup.write_bytes(whole)
    with closing(sqlite3.connect(backup)) as file:
        for seed in range(tries):
            file.execute("DELETE FROM pieces")
            file.executemany("INSERT INTO pieces VALUES (?, ?)", damage(held.state, Random(seed)).items())
            file.commit()
            with pytest.raises(StoreError, match="is damaged"):
                place.restore(backup, force=True)
    assert read_snapshot(place.file) == held


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("lookout.db", "already exists; choose another name"),
        ("a-link.db", "already exists; choose another name"),
        ("no/such/folder.db", r"no/such/folder\.db: there is no folder .*no/such; make it first"),
        (".", "is a folder; name a file in it"),
    ],
)
def test_a_backup_overwrites_nothing(out: str, why: str, place: Place, held: Snapshot) -> None:
    folder = place.folder
    (folder / "there.db").write_bytes(b"precious")
    (folder / "a-link.db").symlink_to("elsewhere.db")
    before = sorted(folder.iterdir())
    with pytest.raises(StoreError, match=why):
        place.back_up(out)
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.db").read_bytes() == b"precious"
    assert read_snapshot(place.file) == held


def test_a_store_without_a_publication_is_not_backed_up(place: Place, server: Postgres, tmp_path: Path) -> None:
    database = Place(tmp_path / "database", server.url(server.a_database()))
    for empty, why in ((place, "lookout.db: there is no such file"), (database, "there is no store in it")):
        with pytest.raises(StoreError, match=why):
            empty.back_up()
    sqlite.open_writer(place.file).close()
    with pytest.raises(StoreError, match="the store: holds no live document: no monitor has published into it yet"):
        place.back_up()
    assert not (place.folder / "out.db").exists()
