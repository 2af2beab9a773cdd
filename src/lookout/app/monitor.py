"""Builds a monitor out of settings."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from random import SystemRandom
from typing import Final

from lookout.app.admin import open_monitor_port
from lookout.app.notices import NoticeDesk
from lookout.app.process import allow_many_connections
from lookout.app.record import Record
from lookout.app.reloader import Reloader
from lookout.app.stores import writer_of
from lookout.base.admin_port import AdminRoutes, process_registry
from lookout.base.clock import SystemClock
from lookout.base.concurrency import DaemonThread, ends_within
from lookout.base.logger import get_logger
from lookout.config.settings import Settings
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import Monitor, Succession
from lookout.monitor.resources import Resources
from lookout.store.protocol import LostStoreError, Writer

_CLOSE_S: Final = 2.0  # how long the end waits for a store that hangs, once more

log = get_logger("monitor")


class RecordedMonitor:
    """The monitors of one process, one after the other, with the record that their settings choose."""

    def __init__(self, succession: Succession, record: Record, instruments: Instruments) -> None:
        self.instruments = instruments
        self._succession = succession
        self._record = record

    async def replace(self, new: Settings) -> None:
        """Go on with these settings. If that cannot be, nothing changes: RecordTakenError if another process records to
        the file that they name, StateError if what is known does not fit them."""
        recorder = await self._record.open(new.monitor)
        try:
            await self._succession.replace(new, recorder)
        except BaseException:
            if recorder is not None and recorder is not self._record.recorder:
                recorder.end()
            raise
        self._record.use(recorder)


async def monitor(settings: Settings, folder: Path, reloader: Reloader | None = None) -> None:
    """Run the monitor, until cancelled; it stands by while another one has the store. Paths in the settings are
    relative to ``folder``. With a reloader, whose settings these are, it uses the settings in force. StoreError if the
    store cannot be used at the start, ListenError if the admin port cannot, RecordTakenError if another process records
    to the same file."""
    allow_many_connections()
    reloading = None if reloader is None else asyncio.create_task(reloader.run(), name="reload")
    has_stood_by = False
    try:
        while True:
            writer, has_stood_by = await writer_of(settings, folder, has_stood_by=has_stood_by)
            in_force = settings if reloader is None else reloader.settings
            try:
                await monitor_into(writer, in_force, folder, reloader, has_stood_by=has_stood_by)
            except LostStoreError as lost:
                has_stood_by = True
                log.warning("another monitor may have taken over; standing by", why=str(lost))
    finally:
        if reloading is not None:
            reloading.cancel()
            await asyncio.gather(reloading, return_exceptions=True)


async def monitor_into(
    writer: Writer, settings: Settings, folder: Path, reloader: Reloader | None = None, *, has_stood_by: bool = False
) -> None:
    """Run the monitor on a store that is open, and close it."""
    clock = SystemClock()
    registry = process_registry()
    instruments = Instruments(registry, clock)
    record = Record(folder)
    reload = None if reloader is None else reloader.answer
    desk = NoticeDesk(clock, reloader)
    routes = desk.add_routes(AdminRoutes(registry, instruments.readiness, reload, instruments.board.list_entries))
    config = "" if reloader is None else str(reloader.path)
    resources = Resources(writer, clock, SystemRandom(), instruments, config=config)
    try:
        # Not before the store is ours: the monitor that writes to it until then may be on the same address.
        async with open_monitor_port(settings.admin, folder, routes):
            record.use(record.find(settings.monitor) if has_stood_by else await record.open(settings.monitor))
            if reloader is not None:
                settings = reloader.settings  # a reload may have come meanwhile
            succession = Succession(
                lambda new, known, recorder: Monitor(new, known, resources, recorder),
                settings,
                writer.load(),
                record.recorder,
            )
            recorded = RecordedMonitor(succession, record, instruments)
            with desk.attached(succession), nullcontext() if reloader is None else reloader.attached(recorded):
                await succession.run()
    finally:
        try:
            record.close()  # before the store: the monitor that takes it over may record to the same file
        finally:
            await _close(writer)


async def _close(writer: Writer) -> None:
    """A write that hangs would make this hang too: the system closes what is left open when the process ends."""
    with DaemonThread("close") as thread:
        if not await ends_within(thread.call(writer.close), _CLOSE_S):
            log.error("the store was not closed: it hangs", waited_s=_CLOSE_S)
