"""The stores that every store's tests are run over."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import pytest

from lookout.store import postgres, sqlite
from lookout.store.postgres import PostgresReader
from tests.contract.store.stores import Opened, Store
from tests.leases import or_skipped
from tests.postgres import Postgres, Programs, a_postgres, from_a_wheel, from_debian
from tests.stores import once_free

HOLD = """
import sys
from pathlib import Path
from lookout.store.{module} import open_writer
writer = open_writer({place})
print("in", flush=True)
sys.stdin.read()
"""


TABLES = ("schema_version", "documents", "pieces", "lease")
POSTGRES = (from_a_wheel(), from_debian())
# What every store does is seen on two versions every day; all else on the other one in the campaign.
ONE_POSTGRES = (from_a_wheel(), from_debian(pytest.mark.long))


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[Programs], Postgres]]:
    """Starts each server that a test asks for, once."""
    with ExitStack() as running:
        yield cache(lambda programs: running.enter_context(or_skipped(a_postgres(programs))))


@pytest.fixture(params=ONE_POSTGRES)
def server(request: pytest.FixtureRequest, servers: Callable[[Programs], Postgres]) -> Postgres:
    return servers(request.param)


@pytest.fixture
def database(server: Postgres) -> str:
    return server.a_database()


@pytest.fixture
def url(server: Postgres, database: str) -> str:
    return server.url(database)


@pytest.fixture
def role(server: Postgres, database: str) -> str:
    """One that owns the schema, which is empty, and nothing else."""
    name = f"{database}_role"
    server.ask(database, f"CREATE ROLE {name} LOGIN")
    server.ask(database, f"CREATE SCHEMA lookout AUTHORIZATION {name}")
    return name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a SQLite file."""
    return tmp_path / "lookout.db"


@pytest.fixture
def opened() -> Iterator[Opened]:
    with ExitStack() as sides:
        yield lambda side: sides.enter_context(closing(side))


@pytest.fixture
def writer(url: str, opened: Opened) -> postgres.PostgresWriter:
    """Of a PostgreSQL database, as the reader is; the tests of other stores have their own."""
    return opened(postgres.open_writer(url))


@pytest.fixture
def reader(url: str, opened: Opened) -> PostgresReader:
    return opened(PostgresReader(url))


@pytest.fixture(params=["sqlite", *POSTGRES])
def store(request: pytest.FixtureRequest, path: Path, servers: Callable[[Programs], Postgres]) -> Store:
    if request.param == "sqlite":
        return Store(
            lambda wait_s: once_free(lambda: sqlite.open_writer(path), wait_s),
            lambda: sqlite.SqliteReader(path),
            lambda: save_file(path),
            (HOLD.format(module="sqlite", place="Path(sys.argv[1])"), str(path)),
        )
    server = servers(request.param)
    database = server.a_database()
    url = server.url(database)
    return Store(
        lambda wait_s: once_free(lambda: postgres.open_writer(url), wait_s),
        lambda: PostgresReader(url),
        lambda: save_tables(server, database),
        (HOLD.format(module="postgres", place="sys.argv[1]"), url),
    )


def save_file(path: Path) -> Callable[[], object]:
    saved = path.with_name("saved.db")
    with closing(sqlite3.connect(path)) as file, closing(sqlite3.connect(saved)) as copy:
        file.backup(copy)
    return lambda: shutil.move(saved, path)


def save_tables(server: Postgres, database: str) -> Callable[[], object]:
    server.ask(database, "CREATE SCHEMA saved")
    for table in TABLES:
        server.ask(database, f"CREATE TABLE saved.{table} AS TABLE lookout.{table}")

    def put_back() -> None:
        """All at once, as a failover does: nobody has a session any more."""
        server.end_session(database)
        server.ask(database, f"TRUNCATE {', '.join(f'lookout.{table}' for table in TABLES)}; {filled}")

    filled = "; ".join(f"INSERT INTO lookout.{table} TABLE saved.{table}" for table in TABLES)
    return put_back
