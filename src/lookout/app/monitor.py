"""Builds a monitor out of settings."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Final

from lookout.app.admin import open_monitor_port
from lookout.app.notices import NoticeDesk
from lookout.app.process import allow_many_connections
from lookout.app.reloader import Reloader
from lookout.base.admin_port import AdminRoutes, process_registry
from lookout.base.clock import SystemClock
from lookout.base.concurrency import DaemonThread, ends_within
from lookout.base.logger import get_logger
from lookout.config.settings import Settings
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import Monitor, Succession, build_monitor
from lookout.monitor.recorder import Record, Recorder
from lookout.store.kinds import kind_of
from lookout.store.protocol import LostStoreError, StoreBusyError, StoreError, StoreUnreachableError, Writer

_CLOSE_S: Final = 2.0  # how long the end waits for a store that hangs, once more
_TRY_STORE_EVERY_S: Final = 1.0
# A store that was away is first left to the monitor that wrote to it, which tries every 4 s: it has watched meanwhile,
# and a monitor that takes over has not.
_LEFT_TO_THE_WRITER_S: Final = 6.0

log = get_logger("monitor")


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

    def build(settings: Settings, known: Mapping[str, bytes], recorder: Recorder | None) -> Monitor:
        return build_monitor(settings, known, writer, store, clock, instruments, recorder, config)

    with DaemonThread("store") as store:
        try:
            # Not before the store is ours: the monitor that writes to it until then may be on the same address.
            async with open_monitor_port(settings.admin, folder, routes):
                # After standing by, the monitor before may not have closed the file yet.
                record.use(await record.open(settings.monitor, may_be_taken=has_stood_by))
                if reloader is not None:
                    settings = reloader.settings  # a reload may have come meanwhile
                succession = Succession(build, settings, writer.load(), record)
                reloading = nullcontext() if reloader is None else reloader.attached(succession.replace, instruments)
                with desk.attached(succession), reloading:
                    await succession.run()
        finally:
            try:
                record.close()  # before the store: the monitor that takes it over may record to the same file
            finally:
                # After a write that hangs this hangs too: the system closes what is left open when the process ends.
                if not await ends_within(store.call(writer.close), _CLOSE_S):
                    log.error("the store was not closed: it hangs", waited_s=_CLOSE_S)


async def writer_of(settings: Settings, folder: Path, *, has_stood_by: bool = False) -> tuple[Writer, bool]:
    """The store's writer, and whether this monitor has stood by, now or before: another monitor on the same store may
    have to end, and a store may not answer. StoreError if the store cannot be used, unless this monitor has stood by:
    the monitor that writes to it does not end of that either. Paths are relative to ``folder``."""
    url = settings.store.url
    open_writer = partial(kind_of(url).open_writer, url, folder)
    reported = ""
    was_away = False
    with DaemonThread("open the store") as thread:  # which a store that does not answer may block
        while True:
            try:
                if was_away:
                    await thread.call(partial(reach_store, url, folder))
                    await asyncio.sleep(_LEFT_TO_THE_WRITER_S)
                was_away = False
                return await thread.call(open_writer), has_stood_by
            except StoreBusyError as error:
                if reported != "busy":
                    log.info("waiting for the other monitor to end", why=str(error))
                reported = "busy"
            except StoreError as error:
                if not has_stood_by and not isinstance(error, StoreUnreachableError):
                    raise
                was_away = True
                if reported != str(error):
                    log.error("the store cannot be used; trying again every second", error=str(error))
                reported = str(error)
            has_stood_by = True
            await asyncio.sleep(_TRY_STORE_EVERY_S)


def reach_store(url: str, folder: Path) -> None:
    """StoreError if the store does not answer, or not as one."""
    reader = kind_of(url).open_reader(url, folder, "store.url")
    try:
        reader.changed()
    finally:
        reader.close()
