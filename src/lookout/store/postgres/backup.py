"""What a PostgreSQL store holds, for a backup."""

from contextlib import closing

from psycopg.errors import InvalidSchemaName, UndefinedTable

from lookout.documents.document import Document
from lookout.store.postgres.schema import TABLES, check_version, complete, pieces_in
from lookout.store.postgres.session import DatabaseAddress
from lookout.store.postgres.trust import refuse_other_kinds
from lookout.store.protocol import Snapshot, StoreError


def read_database(url: str) -> Snapshot:
    """All of one moment, also from a replica and while it is written to: nobody waits for it. StoreError if there is no
    store, or one of a newer version."""
    address = DatabaseAddress.of(url)
    with address.store_errors(), closing(address.connect("lookout backup")) as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        session.execute("SET LOCAL search_path = pg_catalog")
        refuse_other_kinds(session, address, TABLES)
        try:
            versions = session.execute("SELECT version FROM lookout.schema_version").fetchall()
        except (InvalidSchemaName, UndefinedTable):
            raise StoreError(f"{address}: there is no store in it") from None
        check_version(versions[0][0] if versions else None, address)
        documents = session.execute("SELECT name, body, etag, generated_at FROM lookout.documents", binary=True)
        rows = complete(documents.fetchall(), address)
        return Snapshot({row[0]: Document(*row[1:]) for row in rows}, pieces_in(session, address))
