"""Builds a monitor from settings, and runs a server beside it, in its own processes: load on one never delays the
other."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from prometheus_client import Gauge

from lookout.app.admin import open_monitor_port
from lookout.app.notices import ADD_PATH, END_PATH, RECHECK_PATH, NoticeDesk
from lookout.app.process import WRONG_USE, allow_many_connections
from lookout.app.reloader import Reloader
from lookout.base.admin_port import (
    CHANGE_HEADER,
    RELOAD_HEADER,
    AdminReply,
    AdminRoutes,
    Change,
    Readiness,
    error_reply,
    json_reply,
    process_registry,
)
from lookout.base.clock import SystemClock
from lookout.base.concurrency import DaemonThread, ends_within
from lookout.base.logger import get_logger
from lookout.base.sockets import ListenError
from lookout.config.file import ConfigError, find_server_settings
from lookout.config.tables import ServerSettings
from lookout.monitor.assembly import Machine, Succession
from lookout.monitor.metrics import Instruments
from lookout.monitor.recorder import Recorder
from lookout.store.kinds import kind_of
from lookout.store.protocol import LostStoreError, StoreBusyError, StoreError, StoreUnreachableError, Writer

_CLOSE_S: Final = 2.0  # how long a shutdown waits to close a store that hangs
_TRY_AGAIN_S: Final = 1.0
# Longer, since the monitor that writes tries every second: it has watched while the store was away, a standby has not.
_TRY_UNREACHABLE_S: Final = 5.0
_TO_END_S: Final = 8.0  # answers under way have five
_RESTART_AFTER_S: Final = 2.0
# Paths of programs, libraries and files, the language, the time zone, and settings of Python and libraries.
_ORDINARY: Final = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|NO_COLOR|FORCE_COLOR"
    r"|PYTHON[A-Z0-9]+|LD_[A-Z_]+|MALLOC_[A-Z_]+|SSL_CERT_(FILE|DIR)|FAKETIME\w*"
)
_WRITERS_PASSWORD: Final = "PGPASSWORD"  # noqa: S105  its name

log = get_logger()


async def monitor(reloader: Reloader) -> None:
    """Run the monitor with the settings in force until cancelled; it is a standby while another monitor has the store.
    StoreError if the store cannot be used at the start, ListenError if the admin port cannot."""
    allow_many_connections()
    reloading = asyncio.create_task(reloader.run(), name="reload")
    has_stood_by = is_lost = False
    try:
        while True:
            writer, has_stood_by = await writer_of(reloader, has_stood_by=has_stood_by)
            if is_lost and not writer.load():
                kinds = "history, uptimes, notes, silences and alerts"
                log.error("the store was missing; a new one was begun", lost=kinds, next_step="restore a backup of it")
            try:
                await monitor_into(writer, reloader)
            except LostStoreError as lost:
                has_stood_by = is_lost = True
                log.warning("another monitor may have taken over; standing by", why=str(lost))
    finally:
        reloading.cancel()
        await asyncio.gather(reloading, return_exceptions=True)


async def monitor_into(writer: Writer, reloader: Reloader) -> None:
    settings, folder = reloader.settings, reloader.folder
    clock = SystemClock()
    registry = process_registry()
    instruments = Instruments(registry, clock)
    recorder = Recorder(folder)
    reads = {"/sources": lambda: json_reply(HTTPStatus.OK, instruments.board.list_entries())}
    changes = {"/reload": Change(RELOAD_HEADER, reloader.answer)}

    with DaemonThread("store") as store:
        try:
            machine = Machine(
                writer=writer,
                store=store,
                instruments=instruments,
                clock=clock,
                recorder=recorder,
                config=str(reloader.path),
            )
            succession = Succession(settings, writer.load(), machine)
            desk = NoticeDesk(succession, clock, reloader)
            routes = desk.add_routes(AdminRoutes(registry, instruments.readiness, reads, changes))
            # Only with the store: until then the other monitor may use the same address.
            async with open_monitor_port(settings.admin, folder, routes):
                with reloader.attached(succession.replace, instruments):
                    await succession.run()
        finally:
            try:
                recorder.close()  # before the store: the next monitor may record to the same file
            finally:
                # After a write that hangs, this hangs too: the system closes the store when the process ends.
                if not await ends_within(store.call(writer.close), _CLOSE_S):
                    log.error("the store was not closed: it hangs", waited_s=_CLOSE_S)


async def _refuse_standing_by(_body: bytes, _meant: str | None) -> AdminReply:
    return error_reply(HTTPStatus.CONFLICT, "this monitor stands by: ask the one that has the store")


def _open_standby_port(reloader: Reloader) -> AbstractAsyncContextManager[str]:
    """The admin port of a monitor that stands by. ListenError if listening fails."""
    registry = process_registry()
    Gauge("lookout_standby", "1 while another monitor has the store", registry=registry).set(1)
    changes = {path: Change(CHANGE_HEADER, _refuse_standing_by) for path in (ADD_PATH, END_PATH, RECHECK_PATH)}
    changes["/reload"] = Change(RELOAD_HEADER, reloader.answer)
    routes = AdminRoutes(registry, lambda _: Readiness(False, "another monitor has the store", None), changes=changes)
    return open_monitor_port(reloader.settings.admin, reloader.folder, routes)


async def writer_of(reloader: Reloader, *, has_stood_by: bool) -> tuple[Writer, bool]:
    """The store's writer, and whether this monitor was a standby, now or before. It waits while another monitor has
    the store, or the store does not answer. StoreError if the store cannot be used, unless this monitor was a standby:
    such an error does not end the active monitor either."""
    url = reloader.settings.store.url
    open_writer = partial(kind_of(url).open_writer, url, reloader.folder)
    reported, is_open = "", False
    async with AsyncExitStack() as port:
        # A store that does not answer may block the thread.
        thread = port.enter_context(DaemonThread("open the store"))
        while True:
            try_again_s = _TRY_AGAIN_S
            try:
                return await thread.call(open_writer), has_stood_by
            except StoreBusyError as error:
                if reported != "busy":
                    log.info("waiting for the other monitor to end", why=str(error))
                reported = "busy"
                if error.is_elsewhere and not is_open:  # on this machine it may use the same address
                    is_open = True
                    try:
                        await port.enter_async_context(_open_standby_port(reloader))
                    except ListenError as why:
                        log.error("a standby without an admin port", why=str(why))
            except StoreError as error:
                if not has_stood_by and not isinstance(error, StoreUnreachableError):
                    raise
                try_again_s = _TRY_UNREACHABLE_S
                if reported != str(error):
                    log.error("the store cannot be used; it is tried again", error=str(error), every_s=try_again_s)
                reported = str(error)
            has_stood_by = True
            await asyncio.sleep(try_again_s)


class CannotServeError(Exception):
    """The server cannot start; the text says why in one sentence, and is empty if the server has said it."""


async def monitor_and_serve(reloader: Reloader) -> None:
    """Run both until cancelled, the monitor ends or the server cannot start. A server that dies is restarted, with the
    file as it is then and without effect on the monitor. ListenError if the monitor's admin port cannot be opened,
    CannotServeError if the server cannot start."""
    monitoring = asyncio.create_task(monitor(reloader), name="monitor")
    serving = asyncio.create_task(_keep_serving(reloader), name="serve")
    try:
        done, _ = await asyncio.wait((monitoring, serving), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        monitoring.cancel()
        serving.cancel()
        await asyncio.gather(monitoring, serving, return_exceptions=True)


async def _keep_serving(reloader: Reloader) -> None:
    is_first = True
    while True:
        try:
            async with _a_server(reloader) as server:
                code = await server.wait()
        except (OSError, RuntimeError) as error:  # no process, thread, file or memory left, or no program there
            if is_first:
                raise CannotServeError(f"the server cannot be started by {sys.executable}: {error}") from error
            about = {"program": sys.executable, "error": str(error), "after_s": _RESTART_AFTER_S}
            log.error("the server cannot be started; trying again", **about)
        else:
            if code == WRONG_USE and is_first:
                raise CannotServeError
            is_first = False  # from now on a wrong code may be that of a file that is being edited
            by = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            log.error("the server ended; starting it again", by=by, after_s=_RESTART_AFTER_S)
        await asyncio.sleep(_RESTART_AFTER_S)


@asynccontextmanager
async def _a_server(reloader: Reloader) -> AsyncIterator[asyncio.subprocess.Process]:
    """``lookout serve``, which reads the file itself. In a session of its own it gets no signal of the terminal."""
    with DaemonThread("read the configuration") as thread:  # a disk that hangs must not stop the monitor
        settings, environment = await thread.call(partial(prepare_server, reloader.path, reloader.variables))
    reloader.note_server_start(settings)
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "lookout", "serve", "--beside-monitor", "-c", str(reloader.path)),
        stdin=asyncio.subprocess.PIPE,  # open while this process lives
        env=environment,
        start_new_session=True,
    )
    try:
        yield server
    finally:
        await _end(server)


def prepare_server(
    config: Path, environment: Mapping[str, str] = os.environ
) -> tuple[ServerSettings | None, dict[str, str]]:
    """The settings that a server reads from this configuration now, None if they have a problem, and its environment:
    the variables that any program needs, and those that the configuration names for a server. A monitor's secrets are
    not among them."""
    needed, without, settings = [_ORDINARY], set(), None
    try:
        settings, named = find_server_settings(config, environment)
    except ConfigError:  # the server says what is wrong
        named = set()
    else:
        needed.append(re.compile(kind_of(settings.store_url).variables))
        without = {_WRITERS_PASSWORD} - named if settings.store.read_url else set()
    return settings, {
        name: text
        for name, text in environment.items()
        if name in named or (name not in without and any(pattern.fullmatch(name) for pattern in needed))
    }


async def _end(server: asyncio.subprocess.Process) -> None:
    if server.returncode is not None:
        return
    server.terminate()
    try:
        await asyncio.wait_for(server.wait(), _TO_END_S)
    except TimeoutError:
        server.kill()
        await server.wait()
