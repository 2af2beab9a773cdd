"""The monitor's side of a store in a PostgreSQL database, in a schema named ``lookout``.

The writer has a lease, a row with its epoch, which every write renews and checks; a thread renews it between writes. A
monitor whose lease was not renewed for six seconds, by the database's clock, may be replaced: taking the lease raises
the epoch, and the monitor that had it writes nothing any more.
"""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import psycopg
from psycopg.errors import DuplicateSchema, DuplicateTable, InvalidSchemaName, UndefinedTable, UniqueViolation

from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName
from lookout.store.postgres.schema import migrate, not_ours, pieces_in
from lookout.store.postgres.session import DatabaseAddress, DatabaseSession, Patience, transaction
from lookout.store.protocol import (
    NOBODY,
    LostStoreError,
    StoreBusyError,
    StoreError,
    StorePosition,
    StoreUnreachableError,
    taken_over,
)

_RENEW_S: Final = 1.0
_CLOSE_S: Final = 1.0
_MADE_MEANWHILE: Final = (DuplicateSchema, DuplicateTable, UniqueViolation)
# A database's clock that was set back must not keep a dead monitor's lease alive.
_TAKE: Final = """
    UPDATE lookout.lease SET epoch = %s, writes = 0, holder = %s, renewed_at = clock_timestamp()
    WHERE epoch = %s AND (holder IS NULL OR renewed_at
        NOT BETWEEN clock_timestamp() - interval '6 seconds' AND clock_timestamp() + interval '6 seconds')
"""
# One statement: the server has received all of it before it locks a row, and a monitor that is stopped while it sends
# a large document holds no lock. No timeout of PostgreSQL before 17 would end that.
_WRITE: Final = """
    WITH lease AS (
        UPDATE lookout.lease SET writes = %(writes)s, renewed_at = clock_timestamp()
        WHERE epoch = %(epoch)s AND writes = %(found)s RETURNING epoch
    ), deleted AS (
        DELETE FROM lookout.pieces USING lease
        WHERE name = ANY(%(delete)s::text[]) OR %(replace_all)s AND name <> ALL(%(put)s::text[])
    ), put AS (
        INSERT INTO lookout.pieces SELECT u.* FROM lease, unnest(%(put)s::text[], %(pieces)b::bytea[]) u
        ON CONFLICT (name) DO UPDATE SET piece = excluded.piece
    ), documents AS (
        INSERT INTO lookout.documents SELECT u.*, lease.epoch
        FROM lease, unnest(%(names)s::text[], %(bodies)b::bytea[], %(etags)s::text[], %(instants)s::bigint[]) u
        ON CONFLICT (name) DO UPDATE SET (body, etag, generated_at, epoch)
            = (excluded.body, excluded.etag, excluded.generated_at, excluded.epoch)
    )
    SELECT epoch FROM lease
"""


class PostgresWriter:
    """The monitor's side. Made by ``open_writer``. A session that is lost is begun again, with the same epoch."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._using = threading.Lock()
        self._closed = threading.Event()
        self._patience = Patience()
        self._session: DatabaseSession | None = None
        self._lost: str | None = None
        self._has_written = False  # since the lease was renewed last
        self._at = NOBODY
        self._renewing = threading.Thread(target=self._renew, name="renew the lease", daemon=True)

    def open(self) -> None:
        """Take the lease; StoreBusyError if another monitor has it."""
        try:
            with self._used() as session:
                self._take(session)
        except BaseException:
            self._end()
            raise
        self._renewing.start()

    def load(self) -> dict[str, bytes]:
        """LostStoreError if the database does not answer, or the lease is another's: then this is not the writer."""
        try:
            with self._used() as session:
                self._at.require_own(self._position(session), self._address)
                return pieces_in(session, self._address)
        except StoreUnreachableError as error:
            self._lost = str(error)
            raise LostStoreError(self._lost) from None

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        with self._used() as session:
            found = self._position(session)
            wrote = self._at.advance(found, pieces, self._address)
            parameters = {
                "epoch": wrote.epoch,
                "found": found.writes,
                "writes": wrote.writes,
                "replace_all": pieces.replace_all,
                "delete": list(pieces.delete),
                "put": list(pieces.put),
                "pieces": list(pieces.put.values()),
                "names": list(documents),
                "bodies": [document.body for document in documents.values()],
                "etags": [document.etag for document in documents.values()],
                "instants": [document.generated_at for document in documents.values()],
            }
            with transaction(session):
                if session.execute(_WRITE, parameters).fetchone() is None:
                    raise taken_over(self._address)
            self._at, self._has_written = wrote, True

    def close(self) -> None:
        """Give the lease back, unless the database does not answer."""
        self._closed.set()
        if self._using.acquire(timeout=_CLOSE_S):
            try:
                if self._session is not None:
                    with suppress(psycopg.Error):
                        self._session.execute(
                            "UPDATE lookout.lease SET holder = NULL WHERE epoch = %s", (self._at.epoch,)
                        )
                self._end()
            finally:
                self._using.release()

    @contextmanager
    def _used(self) -> Iterator[DatabaseSession]:
        """The session, begun again if need be; for one thread at a time."""
        with self._using, self._address.store_errors():
            if self._lost is not None:
                raise LostStoreError(self._lost)
            if self._closed.is_set():
                raise StoreError(f"{self._address}: the store was closed")
            try:
                if self._session is None or self._session.closed:
                    with self._patience.attempt(), self._address.store_errors():
                        self._session = self._address.connect("lookout monitor")
                yield self._session
            except (InvalidSchemaName, UndefinedTable):
                self._lost = f"{self._address}: its tables are gone"
            except LostStoreError as lost:
                self._lost = str(lost)
            if self._lost is not None:
                self._end()
                raise LostStoreError(self._lost)

    def _take(self, session: DatabaseSession) -> None:
        with transaction(session):
            try:
                migrate(session, self._address)
            except _MADE_MEANWHILE:
                raise StoreBusyError(f"{self._address}: another monitor is creating it") from None
            except UndefinedTable as error:  # a step found no table of the version before
                raise not_ours(self._address, str(error.diag.message_primary)) from None
            found = self._position(session)
            at = found.begin_epoch()
            holder = f"{socket.gethostname()} {os.getpid()}"
            if session.execute(_TAKE, (at.epoch, holder, found.epoch)).rowcount != 1:
                raise StoreBusyError(f"{self._address}: another monitor is writing to it")
        self._at = at

    def _position(self, session: DatabaseSession) -> StorePosition:
        rows = session.execute("SELECT epoch, writes FROM lookout.lease").fetchall()
        if len(rows) != 1:
            raise not_ours(self._address, f"lookout.lease has {len(rows)} rows")
        return StorePosition(*rows[0])

    def _end(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _renew(self) -> None:
        """Renew the lease when nothing was written for a second."""
        while not self._closed.wait(_RENEW_S):
            if self._has_written:
                self._has_written = False
                continue
            with suppress(StoreError), self._used() as session, transaction(session):  # the next write says why not
                renewed = session.execute(
                    "UPDATE lookout.lease SET renewed_at = clock_timestamp() WHERE epoch = %s", (self._at.epoch,)
                )
                if renewed.rowcount != 1:
                    raise taken_over(self._address)


def open_writer(url: str) -> PostgresWriter:
    """Become the database's writer, making the store if it is not there. StoreBusyError if another monitor is that;
    StoreUnreachableError if the database does not answer; StoreError if it is of no use."""
    writer = PostgresWriter(DatabaseAddress.of(url))
    writer.open()
    return writer
