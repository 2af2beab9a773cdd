"""What a server's process gets of the environment of who starts it."""

import pytest

from lookout.app.server_process import small_environment
from lookout.config.settings import Settings
from lookout.config.tables import StoreTable

SQLITE = StoreTable()
WRITERS = StoreTable("postgresql://monitor@db/lookout")
OWN = StoreTable("postgresql://monitor@db/lookout", "postgresql://server@db/lookout")


@pytest.mark.parametrize(
    ("name", "store", "is_kept"),
    [
        pytest.param("PATH", SQLITE, True, id="where programs are"),
        pytest.param("HOME", SQLITE, True, id="the home folder"),
        pytest.param("LC_ALL", SQLITE, True, id="the language"),
        pytest.param("TZ", SQLITE, True, id="the time zone"),
        pytest.param("PYTHONPATH", SQLITE, True, id="what Python is set up by"),
        pytest.param("LD_LIBRARY_PATH", SQLITE, True, id="where libraries are"),
        pytest.param("RPC_KEY", SQLITE, False, id="a key of the operator's naming"),
        pytest.param("PYTHON_KEY", SQLITE, False, id="a key that begins like a variable of Python"),
        pytest.param("PG_KEY", WRITERS, False, id="a key that begins like a variable of PostgreSQL"),
        pytest.param("LOOKOUT_CONFIG", SQLITE, False, id="a variable of Lookout"),
        pytest.param("HTTPS_PROXY", SQLITE, False, id="a proxy, whose address may have a password"),
        pytest.param("PGSSLROOTCERT", WRITERS, True, id="what PostgreSQL is reached by"),
        pytest.param("PGCONNECT_TIMEOUT", OWN, True, id="the same, with an underscore"),
        pytest.param("PGSSLROOTCERT", SQLITE, False, id="the same, where there is no PostgreSQL"),
        pytest.param("PGPASSWORD", WRITERS, True, id="the password that is used for reading too"),
        pytest.param("PGPASSWORD", OWN, False, id="the writer's password, where reading has an address of its own"),
    ],
)
def test_a_servers_environment_has_what_it_needs_and_no_more(name: str, store: StoreTable, is_kept: bool) -> None:
    given = {name: "x", "SECRET": "y"}
    assert small_environment(Settings(store=store).for_server(), given) == ({name: "x"} if is_kept else {})
