"""The one place that builds real things out of settings."""

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import ExceptionRenderer, JSONRenderer
from structlog.tracebacks import ExceptionDictTransformer

from lookout.clock import SystemClock
from lookout.monitor.recording import Recorder
from lookout.monitor.running import run_monitor
from lookout.settings import Log, Settings
from lookout.store.protocol import StoreBusyError, StoreError
from lookout.store.sqlite import SqliteWriter, open_writer

_LOOK_FOR_THE_STORE_S: Final = 1.0
_STANDARD_ERROR: Final = 2

log = structlog.get_logger("monitor")


def configure_log(settings: Log) -> None:
    """Lines on standard error: for people on a terminal, as JSON elsewhere, unless told otherwise."""
    for_people = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # A traceback's local variables may hold secrets.
            *([] if for_people else [ExceptionRenderer(ExceptionDictTransformer(show_locals=False))]),
            ConsoleRenderer(exception_formatter=plain_traceback) if for_people else JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(),
    )


class _Lines:
    """Lines on standard error. One that cannot be written is lost: a full disk or a closed pipe ends no monitor."""

    def msg(self, line: str) -> None:
        with suppress(OSError):  # and nothing is left in a buffer to fail again at the end
            os.write(_STANDARD_ERROR, f"{line}\n".encode(errors="replace"))

    debug = info = warning = error = critical = exception = msg


async def monitor(settings: Settings, folder: Path) -> None:
    """Run the monitor; paths in the settings are relative to ``folder``. StoreError if the store cannot be used."""
    _allow_many_connections()
    writer = await _writer(folder / _sqlite_path(settings))
    recorder = None
    if settings.monitor.record:
        recorder = Recorder(folder / settings.monitor.record, settings.monitor.record_max_mb * 1_000_000)
    try:
        await run_monitor(settings, writer, SystemClock(), SystemRandom(), recorder)
    finally:
        writer.close()
        if recorder is not None:
            recorder.close()


def run_until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Run until it is done, or until SIGINT or SIGTERM asks it to end."""

    async def guarded() -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("this runs inside a task")
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)
        try:
            await work
        except asyncio.CancelledError:
            task.uncancel()

    asyncio.run(guarded())


def _allow_many_connections() -> None:
    """Each source has a connection of its own; the usual soft limit of 1024 files is for programs that use select."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _sqlite_path(settings: Settings) -> str:
    kind, _, path = settings.store.url.partition(":")
    if kind != "sqlite":
        raise StoreError("store.url: this version stores in SQLite files alone: sqlite:PATH")
    return path


async def _writer(path: Path) -> SqliteWriter:
    """Wait for another monitor on the same file to end."""
    waiting = False
    while True:
        try:
            return open_writer(path)
        except StoreBusyError:
            if not waiting:
                log.info("waiting for the other monitor to end", store=str(path))
            waiting = True
            await asyncio.sleep(_LOOK_FOR_THE_STORE_S)
