"""Builds a server from settings: in this process or, with several workers, in processes that share counts."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from functools import partial
from importlib import import_module
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import msgspec

from lookout.app.process import (
    WRONG_USE,
    allow_many_connections,
    configure_log,
    count_acceptable_connections,
    end_with_parent,
    run_until_stopped,
    stopping_signals,
)
from lookout.base.clock import SystemClock
from lookout.base.concurrency import ends_within
from lookout.base.logger import get_logger
from lookout.base.sockets import ListenError, listen_for, resolve
from lookout.base.url import format_host_port
from lookout.config.tables import ServerSettings
from lookout.public.page.assets import load_assets
from lookout.server.connection import STALLED_S, HttpServer, Limits
from lookout.server.poller import Follower, Poller
from lookout.server.replies import Responder
from lookout.server.request import Callers
from lookout.server.shared import Counts, Limiter
from lookout.server.site import build_asset_routes, build_site, build_stored_site
from lookout.store.kinds import kind_of
from lookout.store.protocol import StoreError

_BETWEEN_WORKERS_S: Final = 1.0
_LAST_WORDS_S: Final = 8.0  # until a worker has ended: its answers may take five
_SPAWN: Final = SpawnContext()  # a fork would copy locks that are held

log = get_logger()


class Work(NamedTuple):
    settings: ServerSettings
    folder: Path
    listener: socket.socket
    limiter: Limiter | None
    counts: Counts
    limits: Limits


def serve_beside_monitor() -> NoReturn:
    """Serve as a child of ``lookout run``. The settings are a line of the standard input; it ends when the input
    closes, or by SIGTERM."""
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=ServerSettings)
    end_with_parent()
    _serve_as_program(settings, (signal.SIGTERM,))


def serve_alone() -> NoReturn:
    """Serve as ``lookout serve``. The second argument is a pipe, into which a child, the third, writes the settings;
    the child has reported their problems."""
    with os.fdopen(int(sys.argv[2]), "rb") as pipe:
        received = pipe.read()
    _, status = os.waitpid(int(sys.argv[3]), 0)
    if not received:
        raise SystemExit(os.waitstatus_to_exitcode(status))
    settings, environment = msgspec.json.decode(received, type=tuple[ServerSettings, dict[str, str]])
    os.environ.update(environment)
    _serve_as_program(settings, stopping_signals())


def _serve_as_program(settings: ServerSettings, stopping: Iterable[signal.Signals]) -> NoReturn:
    """The program's first argument is the folder of the configuration."""
    gc.enable()  # off while modules were imported, which are never garbage
    configure_log(settings.log)
    try:
        serve(settings, Path(sys.argv[1]), stopping)
    except (ListenError, StoreError) as error:
        sys.stderr.write(f"lookout: {error}\n")
        raise SystemExit(WRONG_USE) from None
    raise SystemExit(0)


def serve(
    settings: ServerSettings, folder: Path, stopping: Iterable[signal.Signals], stalled_s: float = STALLED_S
) -> None:
    """Answer requests until one of these signals; paths in the settings are relative to ``folder``. A connection
    without progress for ``stalled_s`` is closed.

    StoreError if the store's address cannot be used, ListenError if listening on an address fails.
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
    # At most half of them for one address, so that it cannot keep others out.
    limits = Limits(connections, min(server.connections_per_address, max(1, connections // 2)), stalled_s)
    with closing(listener):
        work = Work(settings, folder, listener, limiter, Counts(server.workers), limits)
        run_until_stopped(_serve(work, admins, address), stopping=stopping)
    log.info("stopped")


async def _serve(work: Work, admins: socket.socket | None, admin_address: str) -> None:
    address, workers = format_host_port(*work.listener.getsockname()[:2]), work.settings.server.workers
    async with _answering(work) if workers == 1 else _working(work):
        log.info("serving", address=address, workers=workers)
        await asyncio.to_thread(import_module, "lookout.app.admin")  # the first answers do not wait for its imports
        from lookout.app.admin import open_server_port

        async with open_server_port(admins, admin_address, work.settings.admin, work.counts):
            await asyncio.Event().wait()


@asynccontextmanager
async def _answering(work: Work, worker: int = 0) -> AsyncIterator[None]:
    settings, clock, counts = work.settings, SystemClock(), work.counts.attach(worker)
    callers = Callers(settings.server.trusted_proxies)
    site = (settings.protocol, settings.description, build_asset_routes(load_assets()))
    poller = Poller(
        kind_of(settings.store_url).open_reader(settings.store_url, work.folder, settings.store_key),
        clock,
        round(settings.server.history_unreadable_s * 1000),
        build_site(*site),
        partial(build_stored_site, *site),
    )
    responder = Responder(poller, poller.site.paths, callers, work.limiter, counts, clock)
    follower = Follower(poller, counts, clock)
    follower.start()
    try:
        async with HttpServer(work.listener, responder, work.limits, callers):
            yield
    finally:
        follower.stop()


@asynccontextmanager
async def _working(work: Work) -> AsyncIterator[None]:
    """Run workers inside the block, and replace workers that die."""
    async with asyncio.TaskGroup() as group:
        keeping = [group.create_task(_keep_worker(work, worker)) for worker in range(work.settings.server.workers)]
        try:
            yield
        finally:
            work.listener.close()  # otherwise the kernel takes connections that no worker accepts
            for task in keeping:
                task.cancel()


async def _keep_worker(work: Work, worker: int) -> None:
    while True:
        process = _SPAWN.Process(target=_work, args=(work, worker), daemon=True)
        # A terminal's signals reach all its processes; the parent alone stops its workers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
        process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            await _until_readable(process.sentinel)
        finally:
            if process.is_alive():
                process.terminate()
                await ends_within(_until_readable(process.sentinel), _LAST_WORDS_S)
                process.kill()
            process.join()
        log.error("a worker ended; starting another", exit_code=process.exitcode)
        await asyncio.sleep(_BETWEEN_WORKERS_S)


async def _until_readable(file: int) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(file, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(file)


def _work(work: Work, worker: int) -> None:
    """One worker, in its own process."""
    configure_log(work.settings.log)
    end_with_parent()
    run_until_stopped(_answer(work, worker), stopping=(signal.SIGTERM,))


async def _answer(work: Work, worker: int) -> None:
    async with _answering(work, worker):
        await asyncio.Event().wait()
