"""The lease of a PostgreSQL store: who gets it and when, and that a monitor without it writes nothing."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from lookout.documents.document import Document
from lookout.store.postgres import PostgresReader, open_writer, transaction
from lookout.store.protocol import LostStoreError, StoreBusyError, StoreError, Writer
from tests.contract.store import kept
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened, write_again
from tests.postgres import Postgres, from_debian
from tests.stores import once_free
from tests.wait import until

TAKEN_OVER_S = 30  # 10 are promised, of a machine that is not busy
FORMER_LOCK = 0x4C6F6F6B6F7574  # of 1.0.0
LARGE = Document(bytes(3_000_000), '"large"', 1)
WRITING = """
import sys
from lookout.store.postgres import open_writer
from lookout.store.protocol import StoreError
writer = open_writer(sys.argv[1])
print("in", flush=True)
for line in sys.stdin:
    try:
        writer.write({}, {"a": b"first"})
    except StoreError as error:
        print(type(error).__name__, flush=True)
"""


def take_over(url: str, opened: Opened) -> Writer:
    began = time.monotonic()
    second = opened(once_free(lambda: open_writer(url)))
    second.write({"live": HISTORY}, {"a": b"second"})
    assert time.monotonic() - began < TAKEN_OVER_S
    return second


@pytest.mark.clause("M7", "M14")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_is_replaced_soon_and_writes_nothing_afterwards_when_it_gets(
    how: signal.Signals, url: str, opened: Opened
) -> None:
    command = [sys.executable, "-c", WRITING, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == b"in\n"
        with pytest.raises(StoreBusyError, match="another monitor is writing to it"):
            open_writer(url)
        os.kill(first.pid, how)
        second = take_over(url, opened)
        if how == signal.SIGSTOP:
            os.kill(first.pid, signal.SIGCONT)
            for _ in range(2):
                first.stdin.write(b"write\n")
                until(lambda: first.stdout is not None and b"LostStoreError" in first.stdout.readline(), "it is lost")
    assert second.load() == {"a": b"second"}


class Line:
    """A line to the server that goes dead, without a word, once so many more bytes have gone to the server."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.left: float = float("inf")
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def end(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with self.listening, suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._path)
                threading.Thread(target=self._carry, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._carry, args=(server, client, False), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket, to_server: bool) -> None:
        with one, other, suppress(OSError):  # the other direction may have closed them
            while got := one.recv(16384):
                if self.left > 0:
                    other.sendall(got)
                self.left -= len(got) if to_server else 0


# On Debian's server too, since PostgreSQL 17 has a limit that ends a transaction which is half sent, and 15 has not.
@pytest.mark.clause("M7", "M14")
@pytest.mark.parametrize("server", [from_debian()], indirect=True)
@pytest.mark.parametrize("left", [0, 1_000_000], ids=["between writes", "while it sends a large document"])
def test_a_monitor_whose_network_is_cut_is_replaced_soon(
    left: int, server: Postgres, database: str, url: str, opened: Opened
) -> None:
    line = Line(f"{server.folder}/.s.PGSQL.5432")
    address = f"postgresql://postgres@127.0.0.1:{line.port}/{database}?sslmode=disable&gssencmode=disable"
    first = opened(open_writer(address))
    first.write({"live": LIVE}, {"a": b"first"})
    line.left = left

    def write() -> None:
        with suppress(StoreError):
            first.write({"live": LARGE}, {"a": b"first"})

    writing = threading.Thread(target=write)
    writing.start()
    second = take_over(url, opened)
    line.left = float("inf")
    writing.join()
    with pytest.raises(LostStoreError, match="another monitor has taken over"):
        write_again(first, {"a": b"first"})
    first.close()
    assert second.load() == {"a": b"second"}
    line.end()


@pytest.mark.clause("M7")
def test_a_monitor_that_is_stopped_inside_a_transaction_holds_nobody_up(url: str, opened: Opened) -> None:
    first = opened(open_writer(url))

    def stop_inside() -> None:
        with first._used() as session, transaction(session):
            session.execute("UPDATE lookout.lease SET renewed_at = clock_timestamp()")
            take_over(url, opened)

    with pytest.raises(StoreError, match="idle-in-transaction timeout"):
        stop_inside()


@pytest.mark.clause("M7")
def test_a_lease_that_expired_and_nobody_took_is_renewed_with_the_same_epoch(
    server: Postgres, database: str, url: str, writer: Writer
) -> None:
    def expire(hours: int) -> None:
        server.ask(database, "UPDATE lookout.lease SET renewed_at = now() + make_interval(hours => %s)", hours)

    renewed = "SELECT FROM lookout.lease WHERE renewed_at BETWEEN clock_timestamp() - interval '6 s' AND now()"
    epoch = server.ask(database, "SELECT epoch FROM lookout.lease")
    expire(-1)
    writer.write({"live": LIVE}, NOTHING)
    assert server.ask(database, renewed)
    for hours in (-1, 1):  # a clock that was set
        expire(hours)
        until(lambda: bool(server.ask(database, renewed)), "it is renewed without a write")
    assert server.ask(database, "SELECT epoch FROM lookout.lease") == epoch
    with pytest.raises(StoreBusyError):
        open_writer(url)
    writer.close()
    open_writer(url).close()  # at once: it was given back


@pytest.mark.clause("M7")
def test_a_role_that_can_only_read_can_do_nothing_to_the_lease(server: Postgres, database: str, opened: Opened) -> None:
    monitor, reading = f"{database}_monitor", f"{database}_server"
    for role in (monitor, reading):
        server.ask(database, f"CREATE ROLE {role} LOGIN")
    server.ask(database, f"CREATE SCHEMA lookout AUTHORIZATION {monitor}; GRANT USAGE ON SCHEMA lookout TO {reading}")
    url = server.url(database, monitor)
    open_writer(url).close()
    server.ask(database, f"GRANT SELECT ON ALL TABLES IN SCHEMA lookout TO {reading}")
    with psycopg.connect(server.url(database, reading), autocommit=True) as session:
        session.execute("SELECT pg_advisory_lock(%s)", (FORMER_LOCK,))
        for statement in (
            "UPDATE lookout.lease SET renewed_at = clock_timestamp()",
            "DELETE FROM lookout.lease",
            "SELECT FROM lookout.lease FOR SHARE",
            "LOCK TABLE lookout.lease IN ROW EXCLUSIVE MODE",
        ):
            with pytest.raises(InsufficientPrivilege), session.transaction():
                session.execute(statement)
        with session.transaction():
            session.execute("LOCK TABLE lookout.lease, lookout.documents IN ACCESS SHARE MODE")
            first = opened(open_writer(url))
            first.write({"live": LIVE}, NOTHING)
            first.close()
            opened(open_writer(url)).write({"live": HISTORY}, NOTHING)


@pytest.mark.clause("M7")
def test_the_lease_is_not_made_while_a_monitor_of_1_0_0_writes(server: Postgres, opened: Opened) -> None:
    database = kept.load(server, kept.versions("sql")[1])
    url = server.url(database)
    with psycopg.connect(url, autocommit=True) as former:
        former.execute("SELECT pg_advisory_lock(%s)", (FORMER_LOCK,))
        with pytest.raises(StoreBusyError, match="a monitor of an earlier version is writing to it"):
            open_writer(url)
        assert server.ask(database, "SELECT version, epoch FROM lookout.schema_version, lookout.writer") == [(1, 1)]
        reader = opened(PostgresReader(url))  # servers are upgraded first
        assert reader.read("live") is not None
    writer = opened(once_free(lambda: open_writer(url)))
    assert writer.load()
    assert reader.changed()
    with psycopg.connect(url, autocommit=True) as former:  # the lock was for that step
        assert former.execute("SELECT pg_try_advisory_lock(%s)", (FORMER_LOCK,)).fetchone() == (True,)


@contextmanager
def a_pgbouncer(server: Postgres) -> Iterator[str]:
    """The folder of its socket. It has one session for all of its clients, and gives it away after each transaction."""
    program = shutil.which("pgbouncer", path=os.defpath + ":/usr/sbin")
    if program is None:
        pytest.skip("needs PgBouncer: apt-get install pgbouncer")
    with tempfile.TemporaryDirectory(prefix="lookout-pgb-") as name:
        folder = Path(name)
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(
            f"[databases]\n* = host={server.folder}\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {folder}\n"
            f"listen_port = 5432\nauth_type = trust\nauth_file = {folder}/users\nadmin_users = postgres\n"
            f"pool_mode = transaction\ndefault_pool_size = 1\nlogfile = {folder}/log\n"
        )
        server.own(folder)
        user = server.user
        with subprocess.Popen([program, "-q", folder / "ini"], user=user, stderr=subprocess.DEVNULL) as bouncer:
            try:
                until((folder / ".s.PGSQL.5432").exists, "PgBouncer listens")
                yield name
            finally:
                bouncer.terminate()


@pytest.mark.clause("M7")
def test_everything_works_through_pgbouncer_in_transaction_mode(
    server: Postgres, database: str, opened: Opened
) -> None:
    with a_pgbouncer(server) as folder:
        url = f"postgresql://postgres@/{database}?host={folder}"
        first, reader = opened(open_writer(url)), opened(PostgresReader(url))
        first.write({"live": LIVE}, {"a": b"1"})
        assert (reader.changed(), reader.read("live")) == (True, LIVE)
        time.sleep(7)  # longer than the lease lasts
        with pytest.raises(StoreBusyError):
            open_writer(url)
        server.ask("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database)
        write_again(first, {"a": b"1"})
        assert first.load() == {"a": b"1"}
        first.close()
        second = opened(open_writer(url))
        assert second.load() == {"a": b"1"}
        second.write({"live": HISTORY}, {"b": b"2"})
        assert (reader.changed(), reader.read("live")) == (True, HISTORY)
