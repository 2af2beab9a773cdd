"""Stores of every schema version that was released, and what makes those of today's.

Whoever adds a step to a store's schema keeps what it makes, once, before the release:
``python -m tests.contract.store.kept`` writes the files of today's versions into ``tests/data/stores``.
"""

import re
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Final

from lookout.core.ledger import Ledger
from lookout.documents.reports import documents_of
from lookout.state.codec import encode_state
from lookout.store import postgres, sqlite
from lookout.store.protocol import Writer
from tests.builders import NOON
from tests.integration.planted import a_fresh_ledger
from tests.postgres import Postgres, a_postgres, from_debian

FOLDER: Final = Path(__file__).parent.parent.parent / "data" / "stores"
# What a dump says to the very server and client that made it.
_NOT_FOR_OTHERS: Final = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\.*)?\n", re.MULTILINE)


def versions(kind: str) -> dict[int, Path]:
    """The kept stores of a kind, ``sqlite`` or ``sql``, by their version."""
    return {int(path.stem): path for path in sorted(FOLDER.glob(f"*.{kind}"))}


def load(server: Postgres, dump: Path) -> str:
    """A new database's name, with a kept store in it."""
    database = server.a_database()
    server.ask(database, dump.read_text(encoding="utf-8"))
    return database


def main() -> None:
    ledger = a_fresh_ledger(NOON)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / "lookout.db"
        _fill(sqlite.open_writer(made), ledger)
        shutil.copy(made, FOLDER / f"{sqlite.SCHEMA_VERSION}.sqlite")
    with a_postgres(from_debian().values[0]) as server:  # type: ignore[arg-type]  # a parameter of any kind
        database = server.a_database()
        _fill(postgres.open_writer(server.url(database)), a_fresh_ledger(NOON))
        (FOLDER / f"{postgres.SCHEMA_VERSION}.sql").write_text(_dump(server, database), encoding="utf-8")


def _fill(writer: Writer, ledger: Ledger) -> None:
    writer.write(documents_of(ledger), encode_state(ledger.state()).documents)
    writer.close()


def _dump(server: Postgres, database: str) -> str:
    out = server.folder / "dump.sql"
    options = ("--inserts", "--no-owner", "--no-privileges", "--schema=lookout", "-h", server.folder, "-U", "postgres")
    server.run("pg_dump", *options, "-f", out, database)
    return _NOT_FOR_OTHERS.sub("", out.read_text(encoding="utf-8")).replace(f"'{socket.gethostname()} ", "'machine ")


if __name__ == "__main__":
    main()
