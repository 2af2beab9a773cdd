"""Builds a server out of settings: a parent that owns what its workers share, and the workers that answer."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Container
from functools import partial
from pathlib import Path
from typing import Any, Final

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops, RuntimeModes
from granian.log import LogLevels

from lookout.app.admin import open_admin_port
from lookout.app.log import LIBRARIES, configure_log
from lookout.app.process import WRONG_USE, allow_many_connections
from lookout.app.sockets import ListenError, check_free
from lookout.app.worker import build_worker
from lookout.base.admin_port import AdminRoutes, process_registry
from lookout.base.clock import SystemClock
from lookout.base.host_port import format_host_port
from lookout.base.logger import get_logger
from lookout.config.server_settings import ServerSettings
from lookout.server.asgi import AsgiApplication
from lookout.server.counts import Counts
from lookout.server.crowds import Crowds
from lookout.server.follower import Follower
from lookout.server.guard import STALLED_S, Allowed
from lookout.server.limiter import Limiter
from lookout.server.metrics import ServerInstruments
from lookout.store.kinds import kind_of

_OWN_FILES: Final = 64  # of a worker; about 30 are in use, and the store may need some when everything else is taken
_BACKLOG: Final = 4_096
_LAST_WORDS_S: Final = 2

log = get_logger("server")


def serve(
    settings: ServerSettings, folder: Path, stopping: Container[signal.Signals], stalled_s: float = STALLED_S
) -> None:
    """Answer requests until one of these signals; paths in the settings are relative to ``folder``. A connection
    without progress for ``stalled_s`` is closed.

    StoreError if the store cannot be one, ListenError or AdminError if an address cannot be listened on.
    """
    kind_of(settings.store_url).open_reader(settings.store_url, folder, settings.store_key).close()
    host, port = check_free("server.listen", settings.server.listen)
    connections = _connections(allow_many_connections())
    clock, workers = SystemClock(), settings.server.workers
    limiter, counts = _limiter(settings, workers), Counts(workers)
    registry = process_registry()
    instruments = ServerInstruments(registry, counts, clock)
    multiprocessing.set_start_method("spawn", force=True)  # a fork would copy the locks of the admin port's threads
    server = Granian(
        "lookout",
        address=host,
        port=port,
        interface=Interfaces.RSGI,
        runtime_mode=RuntimeModes.st,
        loop=Loops.uvloop,
        http=HTTPModes.http1,
        websockets=False,
        workers=workers,
        backlog=_BACKLOG,
        backpressure=connections,
        respawn_failed_workers=True,
        workers_kill_timeout=_LAST_WORDS_S,
        log_level=LogLevels.warning,
        log_dictconfig=LIBRARIES,
    )
    allowed = Allowed(port, _per_address(settings, connections), stalled_s, Crowds(workers))
    server.on_startup(partial(_handle_signals, stopping, server.signal_handler_interrupt))
    with open_admin_port("server", settings.admin, folder, AdminRoutes(registry, instruments.readiness)):
        log.info("serving", address=format_host_port(host, port), workers=workers)
        loader: Callable[..., Any] = partial(build_worker, settings, folder, limiter, counts, allowed)
        try:
            server.serve(target_loader=loader, wrap_loader=False)
        except RuntimeError as error:  # Granian's, if another process took the address meanwhile; any other is a bug
            why, _, _ = str(error).partition("\n")  # and below it a backtrace
            if "os error" not in why:
                raise
            raise ListenError(f"server.listen: {settings.server.listen}: {why}") from error
        log.info("stopped")


def _handle_signals(stopping: Container[signal.Signals], end: Callable[..., None]) -> None:
    """Granian would restart when its terminal is closed."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, end if name in stopping else signal.SIG_IGN)


def asgi() -> AsgiApplication:
    """The application for another ASGI server, in one process; LOOKOUT_CONFIG names the configuration file. SystemExit,
    after what is wrong with it was said, if it cannot be used."""
    # The parent of workers needs neither, and starts sooner without them.
    from lookout.app.front import build_front
    from lookout.config.file import CONFIG_VARIABLE, DEFAULT_CONFIG, ConfigError, read_server_config

    path = Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_CONFIG)
    try:
        settings = read_server_config(path)
    except ConfigError as error:
        sys.stderr.writelines(f"lookout: {message}\n" for message in error.messages_with_lines)
        raise SystemExit(WRONG_USE) from None
    configure_log(settings.log)
    front = build_front(settings, path.absolute().parent, _limiter(settings, 1), Counts(1).attach())
    return AsgiApplication(front, Follower(front))


def _connections(files: int) -> int:
    """How many a worker accepts, of the files that it may open. The others wait to be let in."""
    return files - min(_OWN_FILES, files // 2)


def _per_address(settings: ServerSettings, connections: int) -> int:
    """No more than half of what a single worker accepts: one address is not to keep the others out."""
    return min(settings.server.connections_per_address, max(1, connections // 2))


def _limiter(settings: ServerSettings, workers: int) -> Limiter | None:
    server = settings.server
    if not server.rate_limit_per_minute:
        return None
    return Limiter(server.rate_limit_per_minute, round(server.ban_s * 1000), processes=workers)
