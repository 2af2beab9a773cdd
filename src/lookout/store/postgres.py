"""The store in a PostgreSQL database, in a schema named ``lookout``.

The writer has a lease, a row with its epoch, which every write renews and checks; a thread renews it between writes. A
lease that was not renewed for six seconds, by the database's clock, may be taken over: that raises the epoch, and all
later writes of the previous monitor fail.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Final, LiteralString, NamedTuple, Self

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import (
    DuplicateSchema,
    DuplicateTable,
    InsufficientPrivilege,
    InvalidSchemaName,
    ReadOnlySqlTransaction,
    UndefinedTable,
    UniqueViolation,
)
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from lookout.documents.document import Document, DocumentName
from lookout.store.protocol import (
    Left,
    LostStoreError,
    Snapshot,
    StoreBusyError,
    StoreError,
    StorePosition,
    StoreUnreachableError,
    log_upgrade,
    refuse_newer,
    taken_over,
)

# A step upgrades a store from the version equal to the step's index. Released steps never change: tests/data/stores has
# their results.
STEPS: Final = (
    """
    CREATE TABLE lookout.schema_version (version integer NOT NULL);
    INSERT INTO lookout.schema_version VALUES (0);
    CREATE TABLE lookout.documents (
        name text PRIMARY KEY, body bytea NOT NULL, etag text NOT NULL, generated_at bigint NOT NULL,
        epoch bigint NOT NULL
    );
    ALTER TABLE lookout.documents ALTER body SET STORAGE EXTERNAL;
    CREATE TABLE lookout.pieces (name text PRIMARY KEY, piece bytea NOT NULL);
    CREATE TABLE lookout.writer (
        epoch bigint PRIMARY KEY, holder text NOT NULL, taken_at timestamptz NOT NULL,
        writes bigint NOT NULL, first_write_at timestamptz, last_write_at timestamptz
    );
    INSERT INTO lookout.writer VALUES (0, 'nobody', clock_timestamp(), 0);
    CREATE TABLE lookout.former_writers (LIKE lookout.writer INCLUDING ALL);
    """,
    """
    CREATE TABLE lookout.lease (
        epoch bigint NOT NULL, writes bigint NOT NULL, holder text, renewed_at timestamptz NOT NULL
    );
    INSERT INTO lookout.lease SELECT epoch, writes, NULL, clock_timestamp() FROM lookout.writer;
    DROP TABLE lookout.writer, lookout.former_writers;
    """,
    "",  # the same tables; what is in pieces is written in another form, which earlier versions refuse
)
SCHEMA_VERSION: Final = len(STEPS)
_LOCKED_VERSION: Final = 1  # its monitors hold an advisory lock instead of the lease
_LOCK: Final = 0x4C6F6F6B6F7574  # "Lookout"
_RENEW_S: Final = 1.0
_CLOSE_S: Final = 1.0
_MADE_MEANWHILE: Final = (DuplicateSchema, DuplicateTable, UniqueViolation)
# A database clock that was set back must not keep a dead monitor's lease alive.
_TAKE: Final = """
    UPDATE lookout.lease SET epoch = %s, writes = 0, holder = %s, renewed_at = clock_timestamp()
    WHERE epoch = %s AND (holder IS NULL OR renewed_at
        NOT BETWEEN clock_timestamp() - interval '6 seconds' AND clock_timestamp() + interval '6 seconds')
"""
# One statement: the server receives all of it before it locks a row, so a monitor that is stopped while it sends a
# large document holds no lock. PostgreSQL before 17 has no timeout that would end such a lock.
_WRITE: Final = """
    WITH lease AS (
        UPDATE lookout.lease SET writes = %(writes)s, renewed_at = clock_timestamp()
        WHERE epoch = %(epoch)s AND writes = %(found)s RETURNING epoch
    ), deleted AS (
        DELETE FROM lookout.pieces USING lease WHERE name <> ALL(%(kept)s::text[])
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
_ANSWER_S: Final = 10.0
_CONNECT_EVERY_S: Final = 1.0
# A process that is stopped inside a transaction must not block others.
_BEGIN: Final = """
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL statement_timeout = '5s';
    SET LOCAL lock_timeout = '5s';
    SET LOCAL idle_in_transaction_session_timeout = '5s';
"""
# A silent host is noticed within seconds; the address's own parameters override these.
_DEFAULTS: Final = {
    "connect_timeout": "4",
    "keepalives": "1",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}


class DatabaseSession(psycopg.Connection[TupleRow]):
    """A connection that is closed if a query is not answered in time."""

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, _ANSWER_S)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
        self.close()
        raise psycopg.OperationalError(f"no answer within {_ANSWER_S:g} s")


class DatabaseAddress(NamedTuple):
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, url: str, key: str = "store.url") -> Self:
        """StoreError, without libpq's text, which may hold the password, if libpq cannot parse the address."""
        try:
            parameters = {name: str(text) for name, text in conninfo_to_dict(url).items()}
        except psycopg.ProgrammingError:
            raise StoreError(f"{key}: not an address that PostgreSQL's clients understand") from None
        if any("@" in parameters.get(name, "") for name in ("host", "port", "dbname")):
            raise StoreError(f"{key}: write @ as %40, : as %3A, / as %2F and % as %25 in a user or a password")
        if not all(port.isdecimal() for port in parameters.get("port", "").split(",") if port):
            raise StoreError(f"{key}: the port is not a number")
        return cls(parameters)

    def __str__(self) -> str:
        database, host = self.parameters.get("dbname"), self.parameters.get("host")
        return "PostgreSQL" + (f" {database}" if database else "") + (f" on {host}" if host else "")

    def __repr__(self) -> str:
        return str(self)  # the parameters hold the password

    def connect(self, name: str) -> DatabaseSession:
        # Text is UTF-8 even if the database has no encoding, for which the driver would return bytes.
        parameters = {**_DEFAULTS, "application_name": name, **self.parameters, "client_encoding": "utf8"}
        # No prepared statements: behind a pooler the next statement may run on another session.
        return DatabaseSession.connect(make_conninfo(**parameters), autocommit=True, prepare_threshold=None)

    @contextmanager
    def store_errors(self) -> Iterator[None]:
        """Raise driver errors as StoreError, in one sentence. libpq's texts hold no password."""
        try:
            yield
        except psycopg.Error as error:
            text = " ".join((error.diag.message_primary or str(error)).split())
            if isinstance(error, InsufficientPrivilege):
                text += "; docs/operations.md says which rights are needed"
            # A provider makes a database read-only when its disk is full.
            away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | ReadOnlySqlTransaction)
            raise (StoreUnreachableError if away else StoreError)(f"{self}: {text}") from None


class _KeptSession:
    """A session that is reopened after it is lost."""

    def __init__(self, address: DatabaseAddress, name: str) -> None:
        self._address = address
        self._name = name
        self.session: DatabaseSession | None = None
        self._until_s = 0.0
        self._why: str | None = None

    def get(self) -> DatabaseSession:
        """StoreUnreachableError with the last failure's text before the next retry is due."""
        if self.session is None or self.session.closed:
            if self._why is not None and time.monotonic() < self._until_s:
                raise StoreUnreachableError(self._why)
            try:
                with self._address.store_errors():
                    self.session = self._address.connect(self._name)
            except StoreError as error:
                self._why = str(error)
                self._until_s = time.monotonic() + _CONNECT_EVERY_S
                raise
            self._why = None
        return self.session

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None


@contextmanager
def transaction(session: DatabaseSession) -> Iterator[None]:
    """A transaction with its own timeouts: behind a pooler other clients get the session afterwards."""
    session.execute(_BEGIN)
    try:
        yield
        session.execute("COMMIT")
    except BaseException:
        if not session.closed:
            session.execute("ROLLBACK")
        raise


def _migrate(session: DatabaseSession, address: DatabaseAddress) -> None:
    """Upgrade the store, in the caller's transaction. StoreBusyError if a monitor of an earlier version
    writes to the store; StoreError if the store is of a newer version."""
    version = 0
    if session.execute("SELECT to_regclass('lookout.schema_version')").fetchone() != (None,):
        version = _version_in(session.execute("SELECT version FROM lookout.schema_version").fetchall(), address)
    elif session.execute("SELECT to_regnamespace('lookout')").fetchone() == (None,):
        session.execute("CREATE SCHEMA lookout")
    # The lock lasts until the end of the transaction.
    lock = "SELECT pg_try_advisory_xact_lock(%s)"
    if version == _LOCKED_VERSION and session.execute(lock, (_LOCK,)).fetchone() != (True,):
        raise StoreBusyError(f"{address}: a monitor of an earlier version is writing to it")
    if version < SCHEMA_VERSION:
        for step in STEPS[version:]:
            session.execute(step)
        session.execute("UPDATE lookout.schema_version SET version = %s", (SCHEMA_VERSION,))
        log_upgrade(address, version, SCHEMA_VERSION)


def _version_in(rows: list[TupleRow], address: DatabaseAddress) -> int:
    if not rows:
        raise StoreError(f"{address}: is damaged: lookout.schema_version is empty; restore it from a backup")
    version = int(rows[0][0])
    refuse_newer(address, version, SCHEMA_VERSION)
    return version


def _state_in(session: DatabaseSession) -> dict[str, bytes]:
    return dict(session.execute("SELECT name, piece FROM lookout.pieces", binary=True).fetchall())


class PostgresWriter:
    """The monitor's side. Made by ``open_writer``. A lost session is reopened with the same epoch."""

    def __init__(self, address: DatabaseAddress) -> None:
        self._address = address
        self._using = threading.Lock()
        self._closed = threading.Event()
        self._kept = _KeptSession(address, "lookout monitor")
        self._lost: str | None = None
        self._has_written = False  # since the last renewal of the lease
        self._left = Left()
        self._renewing = threading.Thread(target=self._renew, name="renew the lease", daemon=True)

    def open(self) -> None:
        try:
            with self._used() as session:
                self._take(session)
        except BaseException:
            self._kept.close()
            raise
        self._renewing.start()

    def load(self) -> dict[str, bytes]:
        """LostStoreError if the database does not answer, or another monitor has the lease."""
        try:
            with self._used() as session:
                self._left.position.require_own(self._position(session), self._address)
                return _state_in(session)
        except StoreUnreachableError as error:
            self._lost = str(error)
            raise LostStoreError(self._lost) from None

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        with self._used() as session:
            found = self._position(session)
            left, changes = self._left.find_changes(found, Snapshot(documents, state), self._address)
            put = changes.documents.values()
            parameters = {
                "epoch": found.epoch,
                "found": found.writes,
                "writes": left.position.writes,
                "kept": list(state),
                "put": list(changes.state),
                "pieces": list(changes.state.values()),
                "names": list(changes.documents),
                "bodies": [document.body for document in put],
                "etags": [document.etag for document in put],
                "instants": [document.generated_at for document in put],
            }
            with transaction(session):
                if session.execute(_WRITE, parameters).fetchone() is None:
                    raise taken_over(self._address)
            self._left, self._has_written = left, True

    def close(self) -> None:
        """Give the lease back, unless the database does not answer."""
        self._closed.set()
        if self._using.acquire(timeout=_CLOSE_S):
            try:
                if (session := self._kept.session) is not None:
                    with suppress(psycopg.Error):
                        session.execute(
                            "UPDATE lookout.lease SET holder = NULL WHERE epoch = %s", (self._left.position.epoch,)
                        )
                self._kept.close()
            finally:
                self._using.release()

    @contextmanager
    def _used(self) -> Iterator[DatabaseSession]:
        """The session, reopened if lost; for one thread at a time."""
        with self._using, self._address.store_errors():
            if self._lost is not None:
                raise LostStoreError(self._lost)
            if self._closed.is_set():
                raise StoreError(f"{self._address}: the store was closed")
            try:
                yield self._kept.get()
            except (InvalidSchemaName, UndefinedTable):
                self._lost = f"{self._address}: its tables are gone"
            except LostStoreError as lost:
                self._lost = str(lost)
            if self._lost is not None:
                self._kept.close()
                raise LostStoreError(self._lost)

    def _take(self, session: DatabaseSession) -> None:
        with transaction(session):
            try:
                _migrate(session, self._address)
            except _MADE_MEANWHILE:
                raise StoreBusyError(f"{self._address}: another monitor is creating it") from None
            found = self._position(session)
            at = found.begin_epoch()
            holder = f"{socket.gethostname()} {os.getpid()}"
            if session.execute(_TAKE, (at.epoch, holder, found.epoch)).rowcount != 1:
                (held_by,) = session.execute("SELECT holder FROM lookout.lease").fetchone() or (None,)
                is_elsewhere = held_by is not None and held_by.rpartition(" ")[0] != socket.gethostname()
                raise StoreBusyError(f"{self._address}: another monitor is writing to it", is_elsewhere=is_elsewhere)
        self._left = Left(at)

    def _position(self, session: DatabaseSession) -> StorePosition:
        row = session.execute("SELECT epoch, writes FROM lookout.lease").fetchone()
        if row is None:
            raise StoreError(f"{self._address}: is damaged: lookout.lease is empty; restore it from a backup")
        return StorePosition(*row)

    def _renew(self) -> None:
        while not self._closed.wait(_RENEW_S):
            if self._has_written:
                self._has_written = False
                continue
            with suppress(StoreError), self._used() as session, transaction(session):  # the next write says why not
                renewed = session.execute(
                    "UPDATE lookout.lease SET renewed_at = clock_timestamp() WHERE epoch = %s",
                    (self._left.position.epoch,),
                )
                if renewed.rowcount != 1:
                    raise taken_over(self._address)


def open_writer(url: str) -> PostgresWriter:
    """Take the writer's lease, and create the store if it does not exist. StoreBusyError if another monitor has the
    lease; StoreUnreachableError if the database does not answer; StoreError if it cannot be used."""
    writer = PostgresWriter(DatabaseAddress.of(url))
    writer.open()
    return writer


class PostgresReader:
    """A server's side, also on a replica or behind a pooler. Database and store may not exist yet."""

    def __init__(self, url: str, key: str = "store.url") -> None:
        self._address = DatabaseAddress.of(url, key)
        self._kept = _KeptSession(self._address, "lookout server")
        self._etags: dict[str, str] | None = None  # None while there is no store
        self._last: dict[DocumentName, Document] = {}

    def changed(self) -> bool:
        with self._address.store_errors():
            rows = self._ask(
                "SELECT v.version, d.name, d.etag FROM lookout.schema_version v LEFT JOIN lookout.documents d ON true",
            )
            before = self._etags
            self._etags = None if rows is None else {name: etag for _, name, etag in rows if name is not None}
            return self._etags is not None and self._etags != before

    def read(self, name: DocumentName) -> Document | None:
        """The database sends a body only if its ETag has changed: the history is large, and changes about thirty times
        less often than the live report."""
        last = self._last.get(name)
        with self._address.store_errors():
            rows = self._ask(
                "SELECT v.version, d.etag, d.generated_at, CASE WHEN d.etag <> %s THEN d.body END"
                " FROM lookout.schema_version v LEFT JOIN lookout.documents d ON d.name = %s",
                "" if last is None else last.etag,
                name,
            )
        if not rows:
            return None
        _, etag, generated_at, body = rows[0]
        if etag is None:
            return None
        if last is not None and last.etag == etag:
            return Document(last.body, etag, generated_at)
        self._last[name] = Document(body, etag, generated_at)
        return self._last[name]

    def close(self) -> None:
        self._kept.close()

    def _ask(self, query: LiteralString, *parameters: str) -> list[TupleRow] | None:
        """The rows, with the store's version in the first column; None if there is no store."""
        try:
            rows = self._kept.get().execute(query, parameters, binary=True).fetchall()
        except (InvalidSchemaName, UndefinedTable):
            return None
        _version_in(rows, self._address)
        return rows


def open_reader(url: str, key: str) -> PostgresReader:
    return PostgresReader(url, key)


def read_snapshot(url: str) -> Snapshot:
    """A consistent snapshot, also from a replica or during writes, without blocking. StoreError if there is no store,
    or if it is of a newer version."""
    address = DatabaseAddress.of(url)
    with address.store_errors(), closing(address.connect("lookout backup")) as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            versions = session.execute("SELECT version FROM lookout.schema_version").fetchall()
        except (InvalidSchemaName, UndefinedTable):
            raise StoreError(f"{address}: there is no store in it") from None
        _version_in(versions, address)
        rows = session.execute("SELECT name, body, etag, generated_at FROM lookout.documents", binary=True).fetchall()
        return Snapshot({row[0]: Document(*row[1:]) for row in rows}, _state_in(session))
