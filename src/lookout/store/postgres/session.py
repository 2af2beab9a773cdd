"""Sessions with a PostgreSQL server: where it is, how it is reached and left, and what is said when it fails."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import InsufficientPrivilege, ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from lookout.store.protocol import StoreError, StoreUnreachableError

_ANSWER_S: Final = 10.0
_FIRST_WAIT_S: Final = 0.25
_LONGEST_WAIT_S: Final = 4.0
# So that a process that is stopped inside a transaction holds nobody up.
_BEGIN: Final = """
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL statement_timeout = '5s';
    SET LOCAL lock_timeout = '5s';
    SET LOCAL idle_in_transaction_session_timeout = '5s';
"""
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# A host that is gone without a word is noticed within seconds; what the address says itself goes before.
_DEFAULTS: Final = {
    "connect_timeout": "4",
    "keepalives": "1",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
}


class DatabaseSession(psycopg.Connection[TupleRow]):
    """A connection that does not wait for ever: one whose query is not answered in time is closed."""

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
    """A database, by the parameters of libpq."""

    parameters: Mapping[str, str]

    @classmethod
    def of(cls, url: str, key: str = "store.url") -> Self:
        """StoreError if libpq would not understand the address of this key; what it says of it may hold the
        password."""
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
        # Text is UTF-8, also of a database that has no encoding: the driver would give bytes instead.
        parameters = {**_DEFAULTS, "application_name": name, **self.parameters, "client_encoding": "utf8"}
        # Nothing is prepared: behind a pooler the next statement may be on another session.
        return DatabaseSession.connect(make_conninfo(**parameters), autocommit=True, prepare_threshold=None)

    @contextmanager
    def store_errors(self) -> Iterator[None]:
        """Failures in one sentence, without a secret."""
        try:
            yield
        except psycopg.Error as error:
            text = " ".join((error.diag.message_primary or str(error)).split())
            if any(self.parameters[name] in text for name in _SECRETS if self.parameters.get(name)):
                text = type(error).__name__  # rather too little
            if isinstance(error, InsufficientPrivilege):
                text += "; docs/operations.md says which rights are needed"
            # A provider makes a database read-only when its disk is full.
            away = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | ReadOnlySqlTransaction)
            raise (StoreUnreachableError if away else StoreError)(f"{self}: {text}") from None
        except UnicodeDecodeError as error:
            raise damaged(self, "a text in it cannot be decoded") from error


def damaged(address: DatabaseAddress, why: str) -> StoreError:
    return StoreError(f"{address}: is damaged ({why}); restore it from a backup")


class Patience:
    """When to connect again after failing to; waits double."""

    def __init__(self) -> None:
        self._wait_s = _FIRST_WAIT_S
        self._until_s = 0.0
        self._why: str | None = None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """StoreUnreachableError, with the last failure's text, if it is too early."""
        if self._why is not None and time.monotonic() < self._until_s:
            raise StoreUnreachableError(self._why)
        try:
            yield
        except StoreError as error:
            self._why = str(error)
            self._until_s = time.monotonic() + self._wait_s
            self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
            raise
        self._why, self._wait_s = None, _FIRST_WAIT_S


@contextmanager
def transaction(session: DatabaseSession) -> Iterator[None]:
    """A transaction with limits of its own: a pooler gives the session to others afterwards."""
    session.execute(_BEGIN)
    try:
        yield
        session.execute("COMMIT")
    except BaseException:
        if not session.closed:
            session.execute("ROLLBACK")
        raise
