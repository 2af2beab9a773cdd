"""Reading a store in a PostgreSQL database: a server's side, and a backup."""

from contextlib import closing
from typing import Final, LiteralString

from psycopg.errors import CannotCoerce, DataError, InvalidSchemaName, UndefinedColumn, UndefinedTable
from psycopg.rows import TupleRow

from lookout.documents.document import Document, DocumentName
from lookout.documents.document import etag as etag_of
from lookout.store.postgres.schema import check_version, complete, not_ours, pieces_in
from lookout.store.postgres.session import DatabaseAddress, DatabaseSession, Patience
from lookout.store.protocol import Snapshot, StoreError

_OTHER_TABLES: Final = (UndefinedColumn, CannotCoerce, DataError)  # what those of another application lead to


class PostgresReader:
    """A server's side, also on a replica or behind a pooler. Neither the server nor the store need be there yet."""

    def __init__(self, url: str, key: str = "store.url") -> None:
        self._address = DatabaseAddress.of(url, key)
        self._patience = Patience()
        self._session: DatabaseSession | None = None
        self._etags: dict[str, str] | None = None  # None as long as there is no store
        self._last: dict[DocumentName, Document] = {}

    def changed(self) -> bool:
        with self._address.store_errors():
            before, self._etags = self._etags, self._ask_for_etags()
            return self._etags is not None and self._etags != before

    def read(self, name: DocumentName) -> Document | None:
        """The body is not sent again for as long as its ETag is the same: the live report changes some thirty times as
        often as the history, which is large."""
        last = self._last.get(name)
        with self._address.store_errors():
            rows = self._ask(
                "SELECT v.version::integer, d.etag::text, d.generated_at::bigint,"
                " CASE WHEN d.etag::text <> %s THEN d.body::bytea END"
                " FROM lookout.schema_version v LEFT JOIN lookout.documents d ON d.name = %s",
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

    def _ask_for_etags(self) -> dict[str, str] | None:
        rows = self._ask(
            "SELECT v.version::integer, d.name::text, d.etag::text"
            " FROM lookout.schema_version v LEFT JOIN lookout.documents d ON true",
        )
        return None if rows is None else {name: etag for _, name, etag in rows if name is not None}

    def _ask(self, query: LiteralString, *parameters: str) -> list[TupleRow] | None:
        """The rows, each with the store's version first; None if there is no store."""
        try:
            rows = self._current().execute(query, parameters, binary=True).fetchall()
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
        return self._session


def read_database(url: str) -> Snapshot:
    """All of one moment, also from a replica and while it is written to: nobody waits for it. StoreError if there is no
    store, or one of a newer version."""
    address = DatabaseAddress.of(url)
    with address.store_errors(), closing(address.connect("lookout backup")) as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            versions = session.execute("SELECT version FROM lookout.schema_version").fetchall()
        except (InvalidSchemaName, UndefinedTable):
            raise StoreError(f"{address}: there is no store in it") from None
        check_version(versions[0][0] if versions else None, address)
        documents = session.execute("SELECT name, body, etag, generated_at FROM lookout.documents", binary=True)
        rows = complete(documents.fetchall(), address)
        return Snapshot({row[0]: Document(*row[1:]) for row in rows}, pieces_in(session, address))
