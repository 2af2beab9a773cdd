"""A server's side of a store in a PostgreSQL database."""

import time
from typing import Final, LiteralString, get_args

import psycopg
from psycopg.errors import CannotCoerce, DataError, InvalidSchemaName, UndefinedColumn, UndefinedTable
from psycopg.rows import TupleRow

from lookout.documents.document import Document, DocumentName
from lookout.documents.document import etag as etag_of
from lookout.store.postgres.schema import check_version, complete, not_ours
from lookout.store.postgres.session import CHANNEL, DatabaseAddress, DatabaseSession, Patience, goes_through_a_pooler

_POLL_S: Final = 1.0
_NAMES: Final = frozenset(get_args(DocumentName))
_OTHER_TABLES: Final = (UndefinedColumn, CannotCoerce, DataError)  # what those of another application lead to


class PostgresReader:
    """A server's side, also on a replica or behind a pooler. Neither the server nor the store need be there yet."""

    def __init__(self, url: str, key: str = "store.url") -> None:
        self._address = DatabaseAddress.of(url, key)
        self._patience = Patience()
        self._session: DatabaseSession | None = None
        self._etags: dict[str, str] | None = None  # None as long as there is no store
        self._last: dict[DocumentName, Document] = {}
        self._poll_s = 0.0

    def changed(self) -> bool:
        """Neither waits for notifications nor relies on them: once a second, the database is asked."""
        with self._address.store_errors():
            session = self._current()
            before = self._etags
            for heard in session.notifies(timeout=0):
                name, _, etag = heard.payload.partition(" ")
                if name in _NAMES:  # anybody may say anything
                    self._etags = {**(self._etags or {}), name: etag}
            if self._etags == before and time.monotonic() >= self._poll_s:
                self._poll_s = time.monotonic() + _POLL_S
                self._etags = self._ask_for_etags(session)
            return self._etags is not None and self._etags != before

    def read(self, name: DocumentName) -> Document | None:
        """The body is not sent again for as long as its ETag is the same: the live report changes some thirty times as
        often as the history, which is large."""
        last = self._last.get(name)
        with self._address.store_errors():
            rows = self._ask(
                self._current(),
                "SELECT v.version::integer, d.etag::pg_catalog.text, d.generated_at::bigint,"
                " CASE WHEN d.etag::pg_catalog.text OPERATOR(pg_catalog.<>) %s THEN d.body::pg_catalog.bytea END"
                " FROM lookout.schema_version v LEFT JOIN lookout.documents d ON d.name OPERATOR(pg_catalog.=) %s",
                "" if last is None else last.etag,
                name,
            )
        if not rows:
            return None
        _, etag, generated_at, body = row = rows[0]
        if etag is None:
            return None
        if last is not None and last.etag == etag:
            return Document(last.body, etag, generated_at)
        complete([row], self._address)
        document = Document(body, etag, generated_at)
        if etag_of(body) == etag:  # a damaged one may be repaired
            self._last[name] = document
        return document

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _ask_for_etags(self, session: DatabaseSession) -> dict[str, str] | None:
        rows = self._ask(
            session,
            "SELECT v.version::integer, d.name::pg_catalog.text, d.etag::pg_catalog.text"
            " FROM lookout.schema_version v LEFT JOIN lookout.documents d ON true",
        )
        return None if rows is None else {name: etag for _, name, etag in rows if name is not None}

    def _ask(self, session: DatabaseSession, query: LiteralString, *parameters: str) -> list[TupleRow] | None:
        """The rows, each with the store's version first; None if there is no store."""
        try:
            rows = session.execute(query, parameters, binary=True).fetchall()
        except (InvalidSchemaName, UndefinedTable):
            return None
        except _OTHER_TABLES as error:
            raise not_ours(self._address, str(error.diag.message_primary)) from None
        for version, *_ in rows:
            check_version(version, self._address)
        return rows

    def _current(self) -> DatabaseSession:
        if self._session is None or self._session.closed:
            with self._patience.attempt(), self._address.store_errors():
                self._session = self._address.connect("lookout server")
                self._poll_s = 0
                _listen(self._session)
        return self._session


def _listen(session: DatabaseSession) -> None:
    """Ask to be notified, where that can be: not of a replica, and a pooler would give the session to others. In a
    database without an encoding anybody may notify of what is no text, and the server ends the sessions that would
    receive it."""
    if goes_through_a_pooler(session) or session.info.parameter_status("server_encoding") == "SQL_ASCII":
        return
    try:
        session.execute(f"LISTEN {CHANNEL}")
    except psycopg.Error:
        if session.closed:
            raise
