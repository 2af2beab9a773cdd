"""The stores that every store's tests are run over."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lookout.store import postgres, sqlite
from lookout.store.protocol import Reader, Writer
from tests.contract.store.stores import Store
from tests.postgres import Postgres, a_postgres

HOLD = """
import sys
from pathlib import Path
from lookout.store.{module} import open_writer
writer = open_writer({place})
print("in", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with a_postgres() as server:
        yield server


@pytest.fixture
def opened() -> Iterator[Callable[[Writer | Reader], None]]:
    """Closes what a test opened."""
    sides: list[Writer | Reader] = []
    yield sides.append
    for side in sides:
        side.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        path = tmp_path / "lookout.db"
        return Store(
            lambda wait_s: sqlite.open_writer(path, wait_s),
            lambda: sqlite.SqliteReader(path),
            0,
            (HOLD.format(module="sqlite", place="Path(sys.argv[1])"), str(path)),
        )
    server: Postgres = request.getfixturevalue("server")
    url = server.url(server.a_database())
    return Store(
        lambda wait_s: postgres.open_writer(url, wait_s),
        lambda: postgres.PostgresReader(url),
        1.5,
        (HOLD.format(module="postgres", place="sys.argv[1]"), url),
    )
