"""Builds a server from its settings. Nothing else puts one together."""

import resource
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from lookout.base.clock import Clock, SystemClock
from lookout.config.tables import ServerSettings
from lookout.public.page.assets import load_assets, read_logo
from lookout.server.connection import STALLED_S, ConnectionLimits, HttpServer
from lookout.server.limiter import Limiter
from lookout.server.poller import Poller, polling
from lookout.server.replies import Counts, Responder
from lookout.server.request import Callers
from lookout.server.site import build_asset_routes, build_site, build_stored_site
from lookout.store.kinds import kind_of
from lookout.store.protocol import Reader

_MANY_FILES: Final = 1_000_000
_OWN_FILES: Final = 64  # about 30 are in use, and some are reserved for the store


def open_stored(settings: ServerSettings, folder: Path) -> Reader:
    return kind_of(settings.store_url).open_reader(settings.store_url, folder, settings.store_key)


def count_acceptable_connections() -> int:
    """How many connections a process can accept, from its limit of open files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    return files - min(_OWN_FILES, files // 2)


class Machine(NamedTuple):
    """What a server runs on. Tests replace parts of it, and nothing else."""

    clock: Clock = SystemClock()
    open_reader: Callable[[ServerSettings, Path], Reader] = open_stored
    count_acceptable_connections: Callable[[], int] = count_acceptable_connections
    stalled_s: float = STALLED_S


THIS_MACHINE: Final = Machine()


class Server(NamedTuple):
    poller: Poller
    responder: Responder
    counts: Counts
    limits: ConnectionLimits
    callers: Callers

    def listen(self, listener: socket.socket) -> HttpServer:
        return HttpServer(listener, self.responder, self.limits, self.callers)

    @asynccontextmanager
    async def running(self, listener: socket.socket) -> AsyncIterator[None]:
        """Follow the store and answer requests inside the block."""
        with polling(self.poller, self.counts):
            async with self.listen(listener):
                yield


def build_server(settings: ServerSettings, folder: Path, machine: Machine = THIS_MACHINE) -> Server:
    """Paths in the settings are relative to ``folder``. StoreError if the store's address cannot be used."""
    table, counts, callers = settings.server, Counts(), Callers(settings.server.trusted_proxies)
    assets = build_asset_routes(load_assets() | read_logo(settings.page.logo))
    site = (settings.protocol, settings.description(), assets)
    poller = Poller(
        machine.open_reader(settings, folder),
        machine.clock,
        round(table.history_unreadable_s * 1000),
        build_site(*site),
        partial(build_stored_site, *site),
    )
    limiter = None
    if table.rate_limit_per_minute:
        limiter = Limiter(table.rate_limit_per_minute, round(table.ban_s * 1000), machine.clock.elapsed_ms)
    responder = Responder(poller, poller.site.paths, callers, limiter, counts)
    connections = machine.count_acceptable_connections()
    # Half of them at most for one address, so that it cannot keep others out.
    of_address = min(table.connections_per_address, (connections + 1) // 2)
    return Server(poller, responder, counts, ConnectionLimits(connections, of_address, machine.stalled_s), callers)
