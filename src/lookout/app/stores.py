"""The monitor's store, opened when it is free."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Final

from lookout.base.concurrency import DaemonThread
from lookout.base.logger import get_logger
from lookout.config.settings import Settings
from lookout.store.kinds import kind_of
from lookout.store.protocol import StoreBusyError, StoreError, StoreUnreachableError, Writer

_LOOK_FOR_THE_STORE_S: Final = 1.0
# A store that was away is first left to the monitor that wrote to it, which tries every 4 s: it has watched meanwhile,
# and a monitor that takes over has not.
_LEFT_TO_THE_WRITER_S: Final = 6.0

log = get_logger("store")


async def writer_of(settings: Settings, folder: Path, *, has_stood_by: bool = False) -> tuple[Writer, bool]:
    """The monitor's side, and whether this one has stood by, now or before: another monitor on the same store may have
    to end, and a store may not answer. StoreError if it cannot be used, unless this one has stood by: the monitor that
    writes to it does not end of that either. Paths are relative to ``folder``."""
    url = settings.store.url
    open_writer = partial(kind_of(url).open_writer, url, folder)
    reported = ""
    was_away = False
    with DaemonThread("open the store") as thread:  # one that does not answer keeps nobody from ending
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
            await asyncio.sleep(_LOOK_FOR_THE_STORE_S)


def reach_store(url: str, folder: Path) -> None:
    """StoreError if the store does not answer, or not as one."""
    reader = kind_of(url).open_reader(url, folder, "store.url")
    try:
        reader.changed()
    finally:
        reader.close()
