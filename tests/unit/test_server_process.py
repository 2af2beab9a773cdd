"""What the process of a server beside a monitor gets of its environment."""

from pathlib import Path

import pytest

from lookout.app.monitor import prepare_server

SQLITE = ""
WRITERS = 'url = "postgresql://monitor:${WRITER}@db/lookout"'
OWN = f'{WRITERS}\nread_url = "postgresql://server:${{READER}}@db/lookout"'
WITH_PASSWORD = f'{WRITERS}\nread_url = "postgresql://server:${{PGPASSWORD}}@db/lookout"'
BROKEN = '"'


@pytest.mark.parametrize(
    ("name", "store", "is_kept"),
    [
        pytest.param("PATH", SQLITE, True, id="where programs are"),
        pytest.param("HOME", SQLITE, True, id="the home folder"),
        pytest.param("LC_ALL", SQLITE, True, id="the language"),
        pytest.param("TZ", SQLITE, True, id="the time zone"),
        pytest.param("PYTHONPATH", SQLITE, True, id="what Python is set up by"),
        pytest.param("LD_LIBRARY_PATH", SQLITE, True, id="where libraries are"),
        pytest.param("LD_LIBRARY_PATH", BROKEN, True, id="the same, while the file is being edited"),
        pytest.param("RPC_KEY", SQLITE, False, id="a key of the operator's naming"),
        pytest.param("RPC_KEY", BROKEN, False, id="the same, while the file is being edited"),
        pytest.param("CONTACT", SQLITE, True, id="a variable that the page is filled in from"),
        pytest.param("PYTHON_KEY", SQLITE, False, id="a key that begins like a variable of Python"),
        pytest.param("PG_KEY", WRITERS, False, id="a key that begins like a variable of PostgreSQL"),
        pytest.param("LOOKOUT_CONFIG", SQLITE, False, id="a variable of Lookout"),
        pytest.param("LOOKOUT_ENV_FILE", SQLITE, False, id="the file of a monitor's secrets"),
        pytest.param("HTTPS_PROXY", SQLITE, False, id="a proxy, whose address may have a password"),
        pytest.param("PGSSLROOTCERT", WRITERS, True, id="what PostgreSQL is reached by"),
        pytest.param("PGCONNECT_TIMEOUT", OWN, True, id="the same, with an underscore"),
        pytest.param("PGSSLROOTCERT", SQLITE, False, id="the same, where there is no PostgreSQL"),
        pytest.param("PGPASSWORD", WRITERS, True, id="the password that is used for reading too"),
        pytest.param("PGPASSWORD", OWN, False, id="the writer's password, where reading has an address of its own"),
        pytest.param("PGPASSWORD", WITH_PASSWORD, True, id="a password that reading names"),
        pytest.param("WRITER", WRITERS, True, id="a password that reading and writing share"),
        pytest.param("WRITER", OWN, False, id="the password of the writer's address"),
        pytest.param("READER", OWN, True, id="the password of the reader's address"),
    ],
)
def test_a_servers_environment_has_what_it_needs_and_no_more(
    name: str, store: str, is_kept: bool, tmp_path: Path
) -> None:
    config = tmp_path / "lookout.toml"
    page = '[page]\ncontact = "${CONTACT}"\n[messaging]\nurl = "http://a/${RPC_KEY}"\n[admin]\nmonitor = "${ADMIN}"\n'
    config.write_text(f"[store]\n{store}\n{page}")
    given = {"ADMIN": "a", "CONTACT": "c", "READER": "r", "WRITER": "w", "PGPASSWORD": "p"} | {name: "x", "SECRET": "y"}
    _, environment = prepare_server(config, given)
    assert (name in environment) is is_kept
    assert "SECRET" not in environment
