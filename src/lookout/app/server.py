"""Builds a server out of settings: in this process or, with several workers, in processes that share what counts."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Final, NamedTuple

from lookout.app.log import configure_log
from lookout.app.process import allow_many_connections, count_acceptable_connections, end_with_parent, run_until_stopped
from lookout.app.sockets import listen_for
from lookout.base.deadline import ends_within
from lookout.base.logger import get_logger
from lookout.base.unix_socket import resolve
from lookout.base.url import format_host_port
from lookout.config.tables import ServerSettings
from lookout.server.callers import Callers
from lookout.server.connection import STALLED_S, HttpServer, Limits
from lookout.server.follower import Follower
from lookout.server.shared import Counts, Limiter
from lookout.store.kinds import kind_of

_BETWEEN_WORKERS_S: Final = 1.0
_LAST_WORDS_S: Final = 8.0  # of a worker: its answers may take five
_SPAWN: Final = SpawnContext()  # a fork would copy locks that are held

log = get_logger("server")


class Work(NamedTuple):
    """All that a process needs to answer. The processes of a server share it."""

    settings: ServerSettings
    folder: Path
    listener: socket.socket
    limiter: Limiter | None
    counts: Counts
    limits: Limits


def serve(
    settings: ServerSettings, folder: Path, stopping: Iterable[signal.Signals], stalled_s: float = STALLED_S
) -> None:
    """Answer requests until one of these signals; paths in the settings are relative to ``folder``. A connection
    without progress for ``stalled_s`` is closed.

    StoreError if the store cannot be one, ListenError if an address cannot be listened on.
    """
    kind_of(settings.store_url).open_reader(settings.store_url, folder, settings.store_key).close()
    server = settings.server
    listener, address = listen_for("server.listen", server.listen), resolve(settings.admin.server, folder)
    admins = listen_for("admin.server", address) if address else None
    limiter = None
    if server.rate_limit_per_minute:
        limiter = Limiter(server.rate_limit_per_minute, round(server.ban_s * 1000), processes=server.workers)
    allow_many_connections()
    connections = count_acceptable_connections()
    # No more than half of them for one address: it is not to keep the others out.
    limits = Limits(connections, min(server.connections_per_address, max(1, connections // 2)), stalled_s)
    with closing(listener):
        work = Work(settings, folder, listener, limiter, Counts(server.workers), limits)
        run_until_stopped(_serve(work, admins, address), stopping=stopping)
    log.info("stopped")


async def _serve(work: Work, admins: socket.socket | None, admin_address: str) -> None:
    address, workers = format_host_port(*work.listener.getsockname()[:2]), work.settings.server.workers
    async with _answering(work) if workers == 1 else _working(work):
        # The first answers do not wait for what this imports.
        from lookout.app.admin import open_server_port

        async with open_server_port(admins, admin_address, work.settings.admin, work.counts):
            log.info("serving", address=address, workers=workers)
            await asyncio.Event().wait()


@asynccontextmanager
async def _answering(work: Work) -> AsyncIterator[None]:
    """Answer in this process meanwhile."""
    # The parent of workers does without, and starts sooner.
    from lookout.app.front import build_responder

    callers = Callers(work.settings.server.trusted_proxies)
    responder = build_responder(work.settings, work.folder, callers, work.limiter, work.counts.attach())
    follower = Follower(responder)
    follower.start()
    try:
        async with HttpServer(work.listener, responder, work.limits, callers):
            yield
    finally:
        follower.stop()


@asynccontextmanager
async def _working(work: Work) -> AsyncIterator[None]:
    """Have workers answer meanwhile, and others in the place of those that die."""
    begun = [asyncio.Event() for _ in range(work.settings.server.workers)]
    async with asyncio.TaskGroup() as group:
        keeping = [group.create_task(_keep_worker(work, event)) for event in begun]
        try:
            for event in begun:
                await event.wait()
            yield
        finally:
            work.listener.close()  # or the kernel would take connections that no worker accepts any more
            for task in keeping:
                task.cancel()


async def _keep_worker(work: Work, begun: asyncio.Event) -> None:
    while True:
        told, tell = _SPAWN.Pipe(duplex=False)
        worker = _SPAWN.Process(target=_work, args=(work, tell), daemon=True)
        # What a terminal says reaches all its processes; the parent alone decides about its workers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
        worker.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        tell.close()
        try:
            await _until_readable(told.fileno())  # closed: it has begun, or ended
            begun.set()
            await _until_readable(worker.sentinel)
        finally:
            told.close()
            if worker.is_alive():
                worker.terminate()
                await ends_within(_until_readable(worker.sentinel), _LAST_WORDS_S)
                worker.kill()
            worker.join()
        log.error("a worker ended; starting another", exit_code=worker.exitcode)
        await asyncio.sleep(_BETWEEN_WORKERS_S)


async def _until_readable(file: int) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(file, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(file)


def _work(work: Work, tell: Connection) -> None:
    """One worker, in its own process; it closes ``tell`` once it accepts connections."""
    configure_log(work.settings.log)
    end_with_parent()
    run_until_stopped(_answer(work, tell), stopping=(signal.SIGTERM,))


async def _answer(work: Work, tell: Connection) -> None:
    async with _answering(work):
        tell.close()
        await asyncio.Event().wait()
