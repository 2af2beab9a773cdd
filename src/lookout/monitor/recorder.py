"""The observation log as the monitor writes it: one file, which logrotate may move away."""

import os
from errno import EEXIST, ENOSPC, EWOULDBLOCK
from fcntl import LOCK_EX, LOCK_NB, flock
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from stat import S_ISREG
from threading import Thread
from typing import Final, NamedTuple

from msgspec.structs import replace

from lookout.base.logger import get_logger
from lookout.state.log import Compared, Event, Started, Viewed, format_event

_MOST_WAITING: Final = 10_000  # events; a few minutes of a hundred rows
_CLOSE_S: Final = 2.0
_BEGINNING: Final = b'{"at":"'
_LONGEST_LINE: Final = 65_536

_Known = dict[object, Compared | Viewed]
"""The newest gaps, by check, and views, by witness and check."""

log = get_logger()


class _Noted(NamedTuple):
    event: Event
    known: _Known | None
    """What was known before the event, if the writing thread cannot know it: before its first, and after lost ones."""


class Recorder:
    """Records every event in a thread of its own: a disk that hangs, or is full, delays no probe. Wherever a log may
    begin, in a new file or after lost events, a start, the known gaps and the known views are inserted."""

    def __init__(self, folder: Path) -> None:
        """Paths are relative to ``folder``."""
        self._folder = folder
        self._path = folder
        self._writing: Thread | None = None
        self._waiting: SimpleQueue[_Noted | None] = SimpleQueue()
        self._known: _Known = {}
        self._has_gap = True  # the writing thread does not know what was known before the next event

    def record_to(self, name: str) -> None:
        """Record to this file from now on, or to none if it is empty. Another file gets what is still to be written."""
        path = self._folder / name
        if path == self._path:
            return
        self._waiting.put(None)
        self._path, self._waiting, self._writing, self._has_gap = path, SimpleQueue(), None, True
        if name:
            self._writing = Thread(target=_write_all, args=(path, self._waiting), name="record", daemon=True)
            self._writing.start()

    def record(self, event: Event) -> None:
        if self._writing is not None:
            if self._waiting.qsize() >= _MOST_WAITING:
                if not self._has_gap:
                    log.error("not recorded: the disk does not keep up, or hangs")
                self._has_gap = True
            else:
                self._waiting.put(_Noted(event, dict(self._known) if self._has_gap else None))
                self._has_gap = False
        _learn(self._known, event)

    def close(self) -> None:
        """Wait until all events are written, but not for a disk that hangs."""
        self._waiting.put(None)
        if self._writing is not None:
            self._writing.join(_CLOSE_S)
            if self._writing.is_alive():
                log.error("the end of the record was not written: the disk hangs", waited_s=_CLOSE_S)


def _learn(known: _Known, event: Event) -> None:
    if isinstance(event, Started):
        known.clear()  # what is known follows
    elif isinstance(event, Compared):
        known[event.check] = event
    elif isinstance(event, Viewed):
        known[event.witness, event.row.check] = event


def _write_all(path: Path, waiting: SimpleQueue[_Noted | None]) -> None:
    """Append what waits to the file at this path, until None. After an error the next event is tried."""
    file: FileIO | None = None
    known: _Known = {}
    is_failing = False
    while (noted := waiting.get()) is not None:
        if noted.known is not None:
            known = noted.known
        try:
            if file is not None and not _is_at(path, file):
                file.close()
                file = None
            is_beginning = file is None or noted.known is not None
            file = file or _open(path)
            _append(file, noted.event, known if is_beginning else None)
        except OSError as error:
            if file is not None:
                file.close()
            file = None
            if not is_failing:
                log.error("not recorded; trying again with every event", file=str(path), error=error.strerror)
            is_failing = True
        else:
            is_failing = False
        _learn(known, noted.event)
    if file is not None:
        file.close()


def _is_at(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _open(path: Path) -> FileIO:
    """The file, locked until it is closed: a log that two processes append to cannot be replayed."""
    file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "r+")
    try:
        if S_ISREG(os.fstat(file.fileno()).st_mode):
            _lock(file)
            _remove_cut_off_line(file)
    except OSError:
        file.close()
        raise
    return file


def _lock(file: FileIO) -> None:
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(EWOULDBLOCK, "another process records to it") from None


def _remove_cut_off_line(file: FileIO) -> None:
    """Remove a last line that a crash or a full disk cut off. A file that was named by mistake is left alone."""
    if not _BEGINNING.startswith(file.read(len(_BEGINNING))):
        raise FileExistsError(EEXIST, "is not an observation log; choose another file in monitor.record")
    last_at = file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE))
    file.truncate(last_at + file.read().rfind(b"\n") + 1)


def _append(file: FileIO, event: Event, known: _Known | None) -> None:
    """``known`` is what was known before the event, if a log may begin here."""
    events: list[Event] = [event]
    if known is not None and not isinstance(event, Started):
        events = [Started(event.at), *(replace(before, at=event.at) for before in known.values()), event]
    content = b"".join(map(format_event, events))
    if file.write(content) != len(content):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
