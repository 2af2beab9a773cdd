"""The monitor's side of a store in a PostgreSQL database, in a schema named ``lookout``.

The writer holds a lock (``postgres_lock``) on the very session that it writes with, so that losing the lock and losing
the ability to write are one event. A process that is frozen keeps its connection, since its kernel goes on
acknowledging: the server therefore ends the writer's session when it says nothing for some seconds, which frees the
lock. Opening a writer raises an epoch, and every write checks that it is still the stored one.
"""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg.errors import DuplicateSchema, DuplicateTable, InvalidSchemaName, UndefinedTable, UniqueViolation

from lookout.base.logger import get_logger
from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName
from lookout.store.postgres.lock import Holder, end_stuck_holders, other_holders, take_another_lock, try_usual_lock
from lookout.store.postgres.schema import TABLES, migrate, not_ours, pieces_in, transaction
from lookout.store.postgres.session import CHANNEL, DatabaseAddress, DatabaseSession, Patience, goes_through_a_pooler
from lookout.store.postgres.trust import refuse_other_kinds, refuse_strangers
from lookout.store.protocol import (
    NOBODY,
    LostStoreError,
    StoreBusyError,
    StoreError,
    StoreHeldByOtherRoleError,
    StorePosition,
    StoreUnreachableError,
)

_OLDEST_SERVER: Final = 140_000  # idle_session_timeout
_SAY_SOMETHING_S: Final = 1.0
_CLOSE_S: Final = 1.0
_KEPT_FORMER_WRITERS: Final = 1_000
# In milliseconds. The session of a writer that is frozen ends, whatever it was doing.
_SETTINGS: Final = {
    "search_path": "pg_catalog",  # nobody's function is mistaken for the system's
    "idle_session_timeout": "5000",
    "idle_in_transaction_session_timeout": "5000",
    "statement_timeout": "8000",
    "lock_timeout": "8000",
    "tcp_user_timeout": "5000",
    "tcp_keepalives_idle": "2",  # these three in seconds, or times
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
}
_SETTINGS_SINCE_17: Final = {"transaction_timeout": "15000"}
_MADE_MEANWHILE: Final = (DuplicateSchema, DuplicateTable, UniqueViolation)

log = get_logger("store")


class PostgresWriter:
    """The monitor's side. Made by ``open_writer``.

    A session that is lost is begun again, with the lock, as long as nobody else took over meanwhile. It is one class,
    since session, lock and position are lost together.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._using = threading.Lock()
        self._closed = threading.Event()
        self._patience = Patience()
        self._session: DatabaseSession | None = None
        self._lost: str | None = None
        self._notifies = True
        self._at = NOBODY  # before the first session
        self._keepalive_thread = threading.Thread(target=self._keepalive, name="keep the store", daemon=True)

    def open(self) -> None:
        """Become the writer; StoreBusyError if another one is."""
        with self._address.store_errors():
            self._begin()
        self._keepalive_thread.start()

    def load(self) -> dict[str, bytes]:
        """LostStoreError if the session was lost before it could: then this is not the writer any more."""
        try:
            with self._used() as session, self._address.store_errors():
                return pieces_in(session, self._address)
        except (StoreBusyError, StoreUnreachableError) as error:
            self._lost = str(error)
            raise LostStoreError(self._lost) from None

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        with self._used() as session, self._address.store_errors():
            try:
                with transaction(session):
                    wrote = self._write(session, documents, pieces)
            except (InvalidSchemaName, UndefinedTable):
                raise LostStoreError(f"{self._address}: its tables are gone") from None
            self._at = wrote
            self._notify(session, documents)

    def close(self) -> None:
        self._closed.set()
        if self._using.acquire(timeout=_CLOSE_S):
            try:
                self._end()
            finally:
                self._using.release()

    @contextmanager
    def _used(self) -> Iterator[DatabaseSession]:
        """The session, begun again if need be; for one thread at a time."""
        with self._using:
            if self._lost is not None:
                raise LostStoreError(self._lost)
            session = self._session
            try:
                if session is None or session.closed:
                    if self._closed.is_set():  # by one that did not wait for a write any longer
                        raise StoreError(f"{self._address}: the store was closed")
                    with self._patience.attempt(), self._address.store_errors():
                        session = self._begin()
                yield session
            except LostStoreError as error:
                self._lost = str(error)
                self._end()
                raise

    def _begin(self) -> DatabaseSession:
        self._end()
        session = self._address.connect("lookout monitor")
        try:
            self._check(session)
            refuse_other_kinds(session, self._address, TABLES)
            refuse_strangers(session, self._address, TABLES)
            self._refuse_second_monitor(session)  # once before the row is locked, which the other one writes to
            with transaction(session):
                without_right = self._lock(session)
                self._make(session)
                self._take_over(session)
        except BaseException:
            session.close()
            raise
        for process, role, *_ in without_right:
            log.error(
                "a role that may not write to the store holds the monitors' lock; this monitor has taken another one",
                role=role,
                process=process,
            )
        self._session = session
        return session

    def _check(self, session: DatabaseSession) -> None:
        if session.info.server_version < _OLDEST_SERVER:
            raise StoreError(f"{self._address}: the server is too old; PostgreSQL 14 or later is needed")
        if goes_through_a_pooler(session):
            raise StoreError(
                f"{self._address}: a connection pooler answers, but the monitor needs a session of its own; "
                "give its store.url the server's own address"
            )
        if session.execute("SELECT pg_catalog.pg_is_in_recovery()").fetchone() == (True,):
            raise StoreUnreachableError(f"{self._address}: a read-only replica; the monitor needs the primary server")
        settings = _SETTINGS | (_SETTINGS_SINCE_17 if session.info.server_version >= 170_000 else {})
        for name, text in settings.items():
            session.execute("SELECT pg_catalog.set_config(%s, %s, false)", (name, text))

    def _lock(self, session: DatabaseSession) -> list[Holder]:
        """Become the one monitor; the roles that hold the usual lock instead, but are none."""
        if session.execute("SELECT to_regclass('lookout.writer')").fetchone() != (None,):
            session.execute("SELECT FROM lookout.writer FOR UPDATE")  # one after the other
        has_usual = try_usual_lock(session)
        without_right = self._refuse_second_monitor(session)
        if has_usual:
            return []
        take_another_lock(session)
        return without_right

    def _refuse_second_monitor(self, session: DatabaseSession) -> list[Holder]:
        """StoreBusyError if there is another monitor; the others that hold a lock, but are none."""
        holders = other_holders(session)
        monitors = [holder for holder in holders if holder.is_monitor]
        if not monitors:
            return holders
        if self._at != NOBODY:
            self._at.require_own(_position(session), self._address)
        end_stuck_holders(session, monitors)
        if any(holder.is_own_role for holder in monitors):
            raise StoreBusyError(f"{self._address}: another monitor is writing to it")
        process, role, *_ = monitors[0]
        raise StoreHeldByOtherRoleError(
            f"{self._address}: its lock is held by the role {role} (process {process}),"
            f" which may write to it, and this monitor's role is {session.info.user}"
        )

    def _make(self, session: DatabaseSession) -> None:
        try:
            migrate(session, self._address)
        except _MADE_MEANWHILE:
            raise StoreBusyError(f"{self._address}: another monitor is creating it") from None

    def _take_over(self, session: DatabaseSession) -> None:
        """Raise the epoch, or go on with this writer's own."""
        found = _position(session)
        if self._at != NOBODY:
            self._at.require_own(found, self._address)
            return
        self._at = found.begin_epoch()
        session.execute("INSERT INTO lookout.former_writers SELECT * FROM lookout.writer")
        session.execute(
            "DELETE FROM lookout.former_writers WHERE epoch IN"
            " (SELECT epoch FROM lookout.former_writers ORDER BY epoch DESC OFFSET %s)",
            (_KEPT_FORMER_WRITERS,),
        )
        taken = session.execute(
            "UPDATE lookout.writer SET epoch = %s, holder = %s, taken_at = clock_timestamp(), writes = 0,"
            " first_write_at = NULL, last_write_at = NULL",
            (self._at.epoch, f"{socket.gethostname()} {os.getpid()}"),
        )
        if taken.rowcount != 1:
            raise not_ours(self._address, f"lookout.writer has {taken.rowcount} rows")

    def _write(
        self, session: DatabaseSession, documents: Mapping[DocumentName, Document], pieces: Pieces
    ) -> StorePosition:
        session.execute("SELECT FROM lookout.writer FOR UPDATE")
        wrote = self._at.advance(_position(session), pieces, self._address)
        session.execute(
            "UPDATE lookout.writer SET writes = %s, last_write_at = clock_timestamp(),"
            " first_write_at = coalesce(first_write_at, clock_timestamp())",
            (wrote.writes,),
        )
        for name, document in documents.items():
            session.execute(
                "INSERT INTO lookout.documents VALUES (%s, %b, %s, %s, %s) ON CONFLICT (name) DO UPDATE SET"
                " (body, etag, generated_at, epoch)"
                " = (excluded.body, excluded.etag, excluded.generated_at, excluded.epoch)",
                (name, document.body, document.etag, document.generated_at, wrote.epoch),
            )
        names = list(pieces.put)
        if pieces.replace_all:
            session.execute("DELETE FROM lookout.pieces WHERE name <> ALL(%s)", (names,))
        session.execute(
            "INSERT INTO lookout.pieces SELECT * FROM unnest(%s::text[], %b::bytea[])"
            " ON CONFLICT (name) DO UPDATE SET piece = excluded.piece",
            (names, list(pieces.put.values())),
        )
        session.execute("DELETE FROM lookout.pieces WHERE name = ANY(%s)", (list(pieces.delete),))
        return wrote

    def _notify(self, session: DatabaseSession, documents: Mapping[DocumentName, Document]) -> None:
        """Notify readers after the publication and apart from it: anybody may fill the server's one queue of
        notifications, and what notifies then fails as a whole. Readers ask anyway."""
        payloads = [f"{name} {document.etag}" for name, document in documents.items()]
        try:
            session.execute("SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) payload", (CHANNEL, payloads))
        except psycopg.Error as error:
            if self._notifies:
                why = error.diag.message_primary or type(error).__name__
                log.warning("servers cannot be notified; they ask every second anyway", error=why)
            self._notifies = False
        else:
            self._notifies = True

    def _end(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _keepalive(self) -> None:
        """Say something every second, so that the server knows that this process is not frozen."""
        while not self._closed.wait(_SAY_SOMETHING_S):
            if self._using.acquire(blocking=False):  # the thread that uses it now says something, too
                try:
                    if self._session is not None and not self._session.closed:
                        self._session.execute("SELECT")
                except psycopg.Error:
                    self._end()  # the next write begins again, or says why not
                finally:
                    self._using.release()


def open_writer(url: str) -> PostgresWriter:
    """Become the database's writer, making the store if it is not there. StoreBusyError if another monitor is that;
    StoreUnreachableError if the database does not answer; StoreError if it is of no use."""
    writer = PostgresWriter(DatabaseAddress.of(url))
    writer.open()
    return writer


def _position(session: DatabaseSession) -> StorePosition:
    row = session.execute("SELECT epoch, writes FROM lookout.writer").fetchone()
    return NOBODY if row is None else StorePosition(*row)
