"""The store that a URL names."""

import asyncio
from pathlib import Path
from typing import Final

import structlog

from lookout.settings import Settings
from lookout.store.protocol import Reader, StoreBusyError, StoreError, Writer
from lookout.store.sqlite import SqliteReader, open_writer

_LOOK_FOR_THE_STORE_S: Final = 1.0

log = structlog.get_logger("store")


async def writer_of(settings: Settings, folder: Path) -> Writer:
    """The monitor's side; waits for another monitor on the same store to end. Paths are relative to ``folder``."""
    path = _sqlite_path(settings, folder)
    waiting = False
    while True:
        try:
            return open_writer(path)
        except StoreBusyError:
            if not waiting:
                log.info("waiting for the other monitor to end", store=str(path))
            waiting = True
            await asyncio.sleep(_LOOK_FOR_THE_STORE_S)


def reader_of(settings: Settings, folder: Path) -> Reader:
    """A server's side. The store need not be there yet."""
    return SqliteReader(_sqlite_path(settings, folder))


def _sqlite_path(settings: Settings, folder: Path) -> Path:
    kind, _, path = settings.store.url.partition(":")
    if kind != "sqlite":
        raise StoreError("store.url: this version stores in SQLite files alone: sqlite:PATH")
    return folder / path
