"""Documents in a SQLite store of which only a failing disk could be the author: of other types than their table's."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def untyped_documents(path: Path) -> Iterator[sqlite3.Connection]:
    """What is done meanwhile to ``untyped``, which holds the documents and minds no type, is then done to them; the
    schema stays to the letter what it was."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DROP TABLE IF EXISTS untyped")
        connection.execute("CREATE TABLE untyped (name PRIMARY KEY, body, etag, generated_at)")
        connection.execute("INSERT INTO untyped SELECT * FROM documents")
        yield connection
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema"))
        connection.execute("PRAGMA writable_schema = ON")
        for name, other in (("documents", "untyped"), ("sqlite_autoindex_documents_1", "sqlite_autoindex_untyped_1")):
            for one, root in ((name, roots[other]), (other, roots[name])):
                connection.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (root, one))
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")  # so that others read it again
        connection.execute("COMMIT")
