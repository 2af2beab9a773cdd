"""The store that a URL names."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from lookout.base.threads import DaemonThread
from lookout.config.settings import Settings
from lookout.store.protocol import (
    Reader,
    StoreBusyError,
    StoreError,
    StoreHeldByOtherRoleError,
    StoreUnreachableError,
    Writer,
)
from lookout.store.sqlite import writer as sqlite

_LOOK_FOR_THE_STORE_S: Final = 1.0
# A store that was away is first left to the monitor that wrote to it, which tries every 4 s: it has watched meanwhile,
# and whoever takes over has not.
_LEFT_TO_THE_WRITER_S: Final = 6.0

log = structlog.get_logger("store")


async def writer_of(settings: Settings, folder: Path, *, has_stood_by: bool = False) -> tuple[Writer, bool]:
    """The monitor's side, and whether this one has stood by, now or before: another monitor on the same store may have
    to end, and a store may not answer. StoreError if it cannot be used, unless this one has stood by: the monitor that
    writes to it does not end of that either. Paths are relative to ``folder``."""
    open_writer = _writers(settings, folder)
    told = ""
    was_away = False
    with DaemonThread("open the store") as thread:  # one that does not answer keeps nobody from ending
        while True:
            try:
                if was_away:
                    await thread.call(partial(_reach, settings, folder))
                    await asyncio.sleep(_LEFT_TO_THE_WRITER_S)
                was_away = False
                return await _made(thread, open_writer), has_stood_by
            except StoreHeldByOtherRoleError as error:
                if told != "held":
                    log.error("another role holds the store's lock; waiting for it to end", error=str(error))
                told = "held"
            except StoreBusyError as error:
                if told != "busy":
                    log.info("waiting for the other monitor to end", why=str(error))
                told = "busy"
            except StoreError as error:
                if not has_stood_by and not isinstance(error, StoreUnreachableError):
                    raise
                was_away = True
                if told != str(error):
                    log.error("the store cannot be used; trying again every second", error=str(error))
                told = str(error)
            has_stood_by = True
            await asyncio.sleep(_LOOK_FOR_THE_STORE_S)


def reader_of(url: str, folder: Path, key: str = "store.url") -> Reader:
    """A server's side, at the address of this key. The store need not be there yet."""
    if path := sqlite_path(url, folder):
        return sqlite.SqliteReader(path)
    from lookout.store.postgres.reader import PostgresReader  # only who uses it pays for loading it

    return PostgresReader(url, key)


def _reach(settings: Settings, folder: Path) -> None:
    """StoreError if the store does not answer, or not as one."""
    reader = reader_of(settings.store.url, folder)
    try:
        reader.changed()
    finally:
        reader.close()


def _writers(settings: Settings, folder: Path) -> Callable[[], Writer]:
    url = settings.store.url
    if path := sqlite_path(url, folder):
        return lambda: sqlite.open_writer(path)
    from lookout.store.postgres import writer as postgres

    return lambda: postgres.open_writer(url)


def sqlite_path(url: str, folder: Path) -> Path | None:
    """None for the other kind of store: the configuration knows no third."""
    kind, _, path = url.partition(":")
    return folder / path if kind == "sqlite" else None


async def _made(thread: DaemonThread, open_writer: Callable[[], Writer]) -> Writer:
    made: list[Writer] = []
    await thread.call(lambda: made.append(open_writer()))
    return made[0]
