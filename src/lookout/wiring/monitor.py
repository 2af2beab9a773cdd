"""Builds a monitor out of settings."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Final

import structlog

from lookout.admin import process_registry
from lookout.clock import SystemClock
from lookout.monitor.instruments import Instruments
from lookout.monitor.recording import LogFile, Recorder
from lookout.monitor.running import Apply, run_monitor
from lookout.monitor.thread import DaemonThread
from lookout.settings import Settings
from lookout.store.protocol import LostStoreError, Writer
from lookout.wiring.admin import admin_port
from lookout.wiring.process import allow_many_connections
from lookout.wiring.reloading import Reloader
from lookout.wiring.stores import writer_of

_CLOSE_S: Final = 2.0  # how long the end waits for a store that hangs, once more

log = structlog.get_logger("monitor")


async def monitor(settings: Settings, folder: Path, reloader: Reloader | None = None) -> None:
    """Run the monitor, until cancelled; it stands by while another one has the store. Paths in the settings are
    relative to ``folder``. With a reloader, whose settings these are, it goes by the settings in force. StoreError if
    the store cannot be used, AdminError if the admin port cannot."""
    allow_many_connections()
    reloading = None if reloader is None else asyncio.create_task(reloader.run(), name="reload")
    try:
        while True:
            writer = await writer_of(settings, folder)
            try:
                await monitor_into(writer, settings if reloader is None else reloader.settings, folder, reloader)
            except LostStoreError as lost:
                log.warning("another monitor may have taken over; standing by", why=str(lost))
    finally:
        if reloading is not None:
            reloading.cancel()
            await asyncio.gather(reloading, return_exceptions=True)


async def monitor_into(writer: Writer, settings: Settings, folder: Path, reloader: Reloader | None = None) -> None:
    """Run the monitor on a store that is open, and close it."""
    clock = SystemClock()
    registry = process_registry()
    instruments = Instruments(registry, clock)
    recorder = _recorder(settings, folder)

    @contextmanager
    def told(apply: Apply, reloader: Reloader) -> Iterator[None]:
        recorded = settings.monitor

        def take(new: Settings) -> None:
            nonlocal recorder, recorded
            before = recorder
            if new.monitor != recorded:
                recorder, recorded = _recorder(new, folder, before), new.monitor
            apply(new, recorder)
            if before is not None and before is not recorder:
                before.end()

        with reloader.telling(take, settings, instruments):
            yield

    offer = nullcontext if reloader is None else partial(told, reloader=reloader)
    reload = None if reloader is None else reloader.answer
    try:
        # Not before the store is ours: the monitor that writes to it until then may be on the same address.
        with admin_port("admin.monitor", settings.admin.monitor, registry, instruments.readiness, reload):
            await run_monitor(settings, writer, clock, SystemRandom(), recorder, instruments, offer)
    finally:
        try:
            await _close(writer)
        finally:
            if recorder is not None:
                recorder.close()


def _recorder(settings: Settings, folder: Path, before: Recorder | None = None) -> Recorder | None:
    if not settings.monitor.record:
        return None
    file = LogFile(folder / settings.monitor.record, settings.monitor.record_max_mb * 1_000_000)
    return Recorder(file, before)


async def _close(writer: Writer) -> None:
    """A write that hangs would make this hang too: the system closes what is left open when the process ends."""
    with DaemonThread("close") as thread:
        try:
            await asyncio.wait_for(thread.call(writer.close), _CLOSE_S)
        except TimeoutError:
            log.error("the store was not closed: it hangs", waited_s=_CLOSE_S)
