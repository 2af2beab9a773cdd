"""``lookout backup`` and ``lookout restore``: while everything runs, from either kind of store into either."""

import asyncio
import json
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from lookout.app.backup import back_up, restore
from lookout.base.instants import parse_instant
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.documents.document import Document, DocumentName
from lookout.documents.reports import history_document, live_document
from lookout.state.codec import decode_state
from lookout.state.differ import all_pieces
from lookout.store.backup import read_file
from lookout.store.kinds import kind_of
from lookout.store.postgres import writer as postgres
from lookout.store.protocol import Snapshot, StoreError
from lookout.store.sqlite import writer as sqlite
from tests.builders import NOON
from tests.commands import LOOKOUT, a_command
from tests.integration.fast import a_world, run
from tests.integration.planted import a_fresh_ledger
from tests.integration.served import a_free_port
from tests.integration.whole_service import BUCKET_S, a_place
from tests.leases import or_skipped
from tests.postgres import Postgres, a_postgres, from_a_wheel
from tests.wait import until, until_async

TIME_S: Final = 90


@pytest.fixture(scope="module", params=[from_a_wheel()])
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    with or_skipped(a_postgres(request.param)) as server:
        yield server


def limited(folder: Path, *arguments: str | Path, **limits: int) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; ``fsize`` is the size that files may have."""

    def limit() -> None:
        for name, size in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (size, size))

    return subprocess.run(
        [LOOKOUT, *arguments], cwd=folder, capture_output=True, text=True, timeout=TIME_S, check=False, preexec_fn=limit
    )


def a_store(folder: Path, url: str = "sqlite:lookout.db") -> Settings:
    """The settings of a store in a new folder."""
    folder.mkdir()
    (folder / "lookout.toml").write_text(f'[store]\nurl = "{url}"\n[admin]\nmonitor = ""\nserver = ""\n')
    return read_config(folder / "lookout.toml")


def fill(folder: Path, at: int = NOON, **more: bytes) -> Snapshot:
    """Publish into the folder's file as a monitor would, with further pieces; what it then holds."""
    ledger = a_fresh_ledger(at)
    pieces = all_pieces(ledger.state(), {f"other/{name}": piece for name, piece in more.items()})
    writer = sqlite.open_writer(folder / "lookout.db")
    try:
        documents: dict[DocumentName, Document] = {
            "live": live_document(ledger.report()),
            "history": history_document(ledger.view()),
        }
        writer.write(documents, pieces)
    finally:
        writer.close()
    return read_file(folder / "lookout.db")


@pytest.mark.first
@pytest.mark.clause("M7", "H16")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_a_backup_of_a_running_service_restores_into_either_store_and_the_monitor_goes_on(
    kind: str, server: Postgres, tmp_path: Path
) -> None:
    def url(of: str) -> str:
        return "sqlite:lookout.db" if of == "sqlite" else server.url(server.a_database())

    async def scenario() -> None:
        async with a_world(tmp_path) as world:
            first = a_place(tmp_path / "first", world.base, url(kind), a_free_port())
            backups: list[Snapshot] = []
            with a_command(first, "monitor", "-c", "lookout.toml"):

                async def has_some_buckets() -> bool:
                    with suppress(StoreError):  # nothing was published yet
                        backups.append(await backed_up(first))
                    return len(backups) > 2 and len(characters(backups[-1])) > 4

                await until_async(has_some_buckets, "a few buckets have ended", TIME_S)
            for snapshot in backups:  # all of each is of one publication
                state = decode_state(snapshot.pieces)
                assert state is not None
                assert state.history is not None
                assert state.history.progress.published_at == snapshot.documents["live"].generated_at
            await asyncio.sleep(2 * BUCKET_S)  # so that there is a bucket in which nothing is published
            newest = max(first.glob("backup*.db"))
            before = characters(backups[-1])
            for other in ("sqlite", "postgresql"):
                second = a_place(tmp_path / other, world.base, url(other), a_free_port())
                done = limited(second, "restore", "-c", "lookout.toml", newest)
                assert (done.returncode, done.stderr) == (0, "")
                assert "21 rows, the history from 20" in done.stdout
                with a_command(second, "monitor", "-c", "lookout.toml"):
                    await until_async(partial(goes_on, second, before), f"{other} goes on", TIME_S)

    async def goes_on(folder: Path, before: str) -> bool:
        """Whether the history is longer now, with all that was in it, and a gap."""
        after = characters(await backed_up(folder))
        assert after.startswith(before[:-1])
        return "-" in after[len(before) :] and after[-1] != "-"

    run(scenario())


async def backed_up(folder: Path) -> Snapshot:
    out = folder / f"backup{time.monotonic_ns()}.db"
    await asyncio.to_thread(back_up, read_config(folder / "lookout.toml"), folder, out)
    return read_file(out)


def characters(snapshot: Snapshot) -> str:
    """The history of the first row."""
    history: Any = json.loads(snapshot.documents["history"].body)
    return str(history["rows"][0]["buckets"])


def test_a_backup_is_for_its_owner_alone_and_says_what_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    a_store(folder)
    held = fill(folder)
    done = limited(folder, "backup", "-c", "lookout.toml", "out.db")
    out = folder / "out.db"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "out.db: 9 rows, the history from 2026-11-04T10:00:00Z to 2026-11-05T12:00:00Z,"
        f" a report of 2026-11-05T12:00:00.000Z; {out.stat().st_size:,} bytes\n"
    )
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert read_file(out) == held
    files = {"lookout.toml", "lookout.db", "lookout.db-lock", "lookout.db-shm", "lookout.db-wal", "out.db"}
    assert {path.name for path in folder.iterdir()} == files


def test_a_store_comes_back_as_it_was_from_a_database_and_into_one(server: Postgres, tmp_path: Path) -> None:
    here, there, back = (tmp_path / name for name in ("here", "there", "back"))
    a_store(here)
    held = fill(here)
    one, two, three = here / "1.db", there / "2.db", back / "3.db"
    back_up(read_config(here / "lookout.toml"), here, one)
    restore(a_store(there, server.url(server.a_database())), there, one, force=False)
    back_up(read_config(there / "lookout.toml"), there, two)
    restore(a_store(back), back, two, force=False)
    back_up(read_config(back / "lookout.toml"), back, three)
    assert read_file(one) == read_file(two) == read_file(three) == read_file(back / "lookout.db") == held


def test_a_backup_of_a_database_is_of_one_moment_whatever_is_written_meanwhile(
    server: Postgres, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    a_store(here)
    held = fill(here)
    database = server.a_database()
    settings = a_store(there, server.url(database))
    restore(settings, there, here / "lookout.db", force=False)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(server.url(database)) as writing:
        writing.execute("LOCK TABLE lookout.pieces")  # which is read after the documents
        taken = pool.submit(back_up, settings, there, there / "out.db")
        waits = "SELECT FROM pg_stat_activity WHERE application_name = 'lookout backup' AND wait_event_type = 'Lock'"
        until(lambda: bool(server.ask(database, waits)), "the backup waits", TIME_S)
        writing.execute("UPDATE lookout.documents SET generated_at = generated_at + 1")
        writing.execute("DELETE FROM lookout.pieces WHERE name LIKE 'day/%'")
        writing.commit()
        taken.result(TIME_S)
    assert read_file(there / "out.db") == held


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_store_that_a_monitor_writes_to_is_not_restored_into(kind: str, server: Postgres, tmp_path: Path) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    a_store(folder)
    fill(folder)
    url = "sqlite:lookout.db" if kind == "sqlite" else server.url(server.a_database())
    settings = a_store(other, url)
    with closing(sqlite.open_writer(other / "lookout.db") if kind == "sqlite" else postgres.open_writer(url)) as writer:
        with pytest.raises(StoreError, match=r"another monitor is writing to it; stop it first$"):
            restore(settings, other, folder / "lookout.db", force=True)
        assert writer.load() == {}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_is_stored_is_replaced_only_by_force(kind: str, server: Postgres, tmp_path: Path) -> None:
    older, newer, folder = tmp_path / "older", tmp_path / "newer", tmp_path / "store"
    a_store(older)
    a_store(newer)
    past, now = fill(older, NOON), fill(newer, NOON + 3_600_000, gone=b"1")
    settings = a_store(folder, "sqlite:lookout.db" if kind == "sqlite" else server.url(server.a_database()))
    restore(settings, folder, newer / "lookout.db", force=False)
    with pytest.raises(StoreError) as refused:
        restore(settings, folder, older / "lookout.db", force=False)
    assert str(refused.value) == (
        "the store holds a report of 2026-11-05T13:00:00.000Z, and the backup one of 2026-11-05T12:00:00.000Z;"
        " --force replaces what is stored"
    )
    back_up(settings, folder, folder / "1.db")
    with closing(
        kind_of(settings.store.url).open_reader(settings.store.url, folder, "store.url")
    ) as reader:  # of a server that is running
        assert (reader.changed(), reader.read("live")) == (True, now.documents["live"])
        restore(settings, folder, older / "lookout.db", force=True)
        until(reader.changed, "the reader is told", TIME_S)
        assert reader.read("live") == past.documents["live"]
    back_up(settings, folder, folder / "2.db")
    assert (read_file(folder / "1.db"), read_file(folder / "2.db")) == (now, past)


def damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xa5" * 4096)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


# As a version that made no seals left it.
UNSEALED = "UPDATE pieces SET piece = CAST(json_remove(CAST(piece AS TEXT), '$.seal') AS BLOB) WHERE name = 'progress'"


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
NOT_AS_MADE = "is not as Lookout makes it; use another file"


def enlarged(path: Path) -> None:
    """It claims many pages, which are there and take no room on the disk."""
    pages = 2**28 // 4096 + 1
    with path.open("r+b") as file:
        file.seek(28)
        file.write(pages.to_bytes(4, "big"))
        file.truncate(pages * 4096)


def changed(*statements: str) -> Any:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(";".join(statements))

    return change


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        pytest.param(
            lambda path: path.write_bytes(b"my diary " * 999), "is neither a backup nor a store", id="a diary"
        ),
        pytest.param(lambda path: path.write_bytes(b""), "is neither a backup nor a store", id="nothing at all"),
        pytest.param(changed("PRAGMA application_id = 7"), "is neither a backup nor a store", id="another program's"),
        pytest.param(changed("PRAGMA user_version = 9"), "written by a newer version of Lookout (schema 9", id="newer"),
        pytest.param(damaged, "is damaged", id="a page of other bytes"),
        pytest.param(truncated, "is damaged (database disk image is malformed)", id="half of it"),
        pytest.param(
            changed(
                "UPDATE documents SET body = CAST(replace(body, 'current', 'unknown') AS BLOB) WHERE name = 'live'"
            ),
            "is damaged: the live document is not the one that its ETag was made of",
            id="another document",
        ),
        pytest.param(
            changed("UPDATE documents SET generated_at = 1 << 60 WHERE name = 'live'"),
            "is damaged: the live document has another instant beside it than it says",
            id="another instant",
        ),
        pytest.param(
            changed("DELETE FROM documents WHERE name = 'history'"), "holds no history document", id="one gone"
        ),
        pytest.param(
            changed("UPDATE pieces SET piece = CAST(replace(piece, '-', 'c') AS BLOB) WHERE name LIKE 'day/%/ppoi/1'"),
            "is damaged: the stored pieces are not what was stored",
            id="other buckets",
        ),
        pytest.param(changed("DELETE FROM pieces"), "holds no state that a monitor could go on from", id="no state"),
        pytest.param(
            changed(UNSEALED, "UPDATE pieces SET piece = CAST('x' AS BLOB) WHERE name = 'tally/ppoi/1'"),
            "is damaged: the stored piece tally/ppoi/1 cannot be read",
            id="a broken piece",
        ),
        *(
            pytest.param(
                changed(
                    UNSEALED,
                    "INSERT OR REPLACE INTO pieces VALUES ('NAME', CAST('[[' AS BLOB))".replace("NAME", piece),
                ),
                f"is damaged: the stored piece {piece} cannot be read",
                id=f"a broken {piece}",
            )
            for piece in ("source/broadcasters", "alerts", "alerts/7")
        ),
        pytest.param(
            changed(
                "DROP TABLE pieces", f"CREATE VIEW pieces AS {ENDLESS} 'a' || i AS name, zeroblob(1) AS piece FROM n"
            ),
            f"the view pieces {NOT_AS_MADE}",
            id="pieces that never end",
        ),
        pytest.param(
            changed(
                "ALTER TABLE documents RENAME TO d",
                f"CREATE VIEW Documents AS {ENDLESS} name, body, etag, generated_at FROM n, d",
            ),
            f"the view Documents {NOT_AS_MADE}",
            id="documents that never end",
        ),
        pytest.param(
            changed(f"CREATE TRIGGER t AFTER INSERT ON writer BEGIN {ENDLESS} i FROM n; END"),
            f"the trigger t {NOT_AS_MADE}",
            id="a trigger",
        ),
        pytest.param(
            changed("ALTER TABLE pieces ADD COLUMN more TEXT AS (hex(piece))"),
            f"the table pieces {NOT_AS_MADE}",
            id="a column that is made up",
        ),
        pytest.param(changed("DROP TABLE writer"), f"the table writer {NOT_AS_MADE}", id="no writer"),
        pytest.param(enlarged, "is larger than any store of Lookout's (268,435,456 bytes)", id="too large"),
        pytest.param(lambda path: path.unlink(), "there is no such file", id="no file"),
        pytest.param(lambda path: (path.unlink(), path.mkdir()), "is not a file", id="a folder"),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_the_store_left_alone(harm: Any, why: str, tmp_path: Path) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    settings = a_store(folder)
    fill(folder)
    back_up(settings, folder, folder / "out.db")
    harm(folder / "out.db")
    a_store(other)
    held = fill(other)
    done = limited(other, "restore", "--force", "-c", "lookout.toml", folder / "out.db")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"lookout: {folder / 'out.db'}: ")
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert read_file(other / "lookout.db") == held


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("lookout.db", "already exists; choose another name"),
        ("there.db", "already exists; choose another name"),
        ("a-link.db", "already exists; choose another name"),
        ("no/such/folder.db", r"no/such/folder\.db: there is no folder .*no/such; make it first"),
        (".", "is a folder; name a file in it"),
    ],
)
def test_a_backup_overwrites_nothing(out: str, why: str, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    settings = a_store(folder)
    held = fill(folder)
    (folder / "there.db").write_bytes(b"precious")
    (folder / "a-link.db").symlink_to("elsewhere.db")
    before = sorted(folder.iterdir())
    with pytest.raises(StoreError, match=why):
        back_up(settings, folder, folder / out)
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.db").read_bytes() == b"precious"
    assert read_file(folder / "lookout.db") == held


def test_a_store_without_a_publication_is_not_backed_up(server: Postgres, tmp_path: Path) -> None:
    for name, url, why in (
        ("a", "sqlite:lookout.db", "lookout.db: there is no such file"),
        ("b", server.url(server.a_database()), "there is no store in it"),
    ):
        settings = a_store(tmp_path / name, url)
        with pytest.raises(StoreError, match=why):
            back_up(settings, tmp_path / name, tmp_path / "out.db")
    sqlite.open_writer(tmp_path / "a" / "lookout.db").close()
    with pytest.raises(StoreError, match="the store: holds no live document: no monitor has published into it yet"):
        back_up(read_config(tmp_path / "a" / "lookout.toml"), tmp_path / "a", tmp_path / "out.db")
    assert not (tmp_path / "out.db").exists()


def test_a_full_disk_leaves_no_half_backup_and_no_half_restored_store(tmp_path: Path) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    settings = a_store(folder)
    fill(folder, blob=os.urandom(1_000_000))
    before = sorted(folder.iterdir())
    done = limited(folder, "backup", "-c", "lookout.toml", "out.db", fsize=500_000)
    assert (done.returncode, done.stderr) == (2, "lookout: out.db: File too large\n")
    assert sorted(folder.iterdir()) == before
    back_up(settings, folder, folder / "out.db")
    a_store(other)
    held = fill(other)
    done = limited(other, "restore", "--force", "-c", "lookout.toml", folder / "out.db", fsize=500_000)
    assert done.returncode == 2
    assert done.stderr.startswith("lookout: ")
    assert "Traceback" not in done.stderr
    assert read_file(other / "lookout.db") == held


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_a_backup_finds_no_half_file(name: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    a_store(folder)
    held = fill(folder, blob=os.urandom(64_000_000))
    before = sorted(folder.iterdir())
    for attempt in range(10):  # one may be done before it is told to end
        out = folder / f"out{attempt}.db"
        command = [str(LOOKOUT), "backup", "-c", "lookout.toml", out.name]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            give_up = time.monotonic() + TIME_S
            while process.poll() is None and not list(folder.glob(".lookout-*")):
                assert time.monotonic() < give_up
                time.sleep(0.001)
            process.send_signal(name)
            _, errors = process.communicate(timeout=TIME_S)
        assert b"Traceback" not in errors
        if process.returncode != 0:
            assert sorted(folder.iterdir()) == before
            break
        assert read_file(out) == held
        out.unlink()
    else:
        pytest.fail("no attempt was ended in time")


def test_what_else_is_in_a_backup_is_not_looked_at(tmp_path: Path) -> None:
    """Its own checks would take hours."""
    folder, other = tmp_path / "a", tmp_path / "b"
    a_store(folder)
    held = fill(folder)
    changed(
        "PRAGMA ignore_check_constraints = ON",
        "CREATE TABLE other (x CHECK (length(replace(hex(zeroblob(100000000)), '0', 'ab')) > x))",
        "INSERT INTO other WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i + 1 FROM n LIMIT 10000) SELECT i FROM n",
    )(folder / "lookout.db")
    restore(a_store(other), other, folder / "lookout.db", force=False)
    assert read_file(other / "lookout.db") == held


def test_a_copy_of_a_stores_file_restores_too(tmp_path: Path) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    a_store(folder)
    held = fill(folder)
    shutil.copy(folder / "lookout.db", tmp_path / "copy.db")
    contents = restore(a_store(other), other, tmp_path / "copy.db", force=False)
    assert parse_instant(contents.generated_at) == NOON
    assert read_file(other / "lookout.db") == held
