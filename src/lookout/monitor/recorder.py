"""The observation log as the monitor writes it: one file, which logrotate may move away."""

import os
from collections.abc import Mapping
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

log = get_logger()


class _Noted(NamedTuple):
    event: Event
    known: Mapping[object, Compared | Viewed]
    """The newest gaps and views before the event."""
    is_after_lost_events: bool


class Recorder:
    """Records every event in a thread of its own: a disk that hangs, or is full, delays no probe. Wherever a log may
    begin, in a new file or after lost events, a start, the known gaps and the known views are inserted."""

    def __init__(self, folder: Path) -> None:
        """Paths are relative to ``folder``."""
        self._folder = folder
        self._path = folder
        self._writing: Thread | None = None
        self._waiting: SimpleQueue[_Noted | None] = SimpleQueue()
        self._known: dict[object, Compared | Viewed] = {}  # by check, and by witness and check
        self._has_lost_events = False

    def record_to(self, name: str) -> None:
        """Record to this file from now on, or to none if it is empty. Another file gets what is still to be written."""
        path = self._folder / name
        if path == self._path:
            return
        self._waiting.put(None)
        self._path, self._waiting, self._writing = path, SimpleQueue(), None
        if name:
            self._writing = Thread(target=_write_all, args=(path, self._waiting), name="record", daemon=True)
            self._writing.start()

    def record(self, event: Event) -> None:
        known = self._known
        if isinstance(event, Started):
            self._known = {}  # what is known follows
        elif isinstance(event, Compared):
            self._known = {**known, event.check: event}
        elif isinstance(event, Viewed):
            self._known = {**known, (event.witness, event.row.check): event}
        if self._writing is None:
            return
        if self._waiting.qsize() >= _MOST_WAITING:
            if not self._has_lost_events:
                log.error("not recorded: the disk does not keep up, or hangs")
            self._has_lost_events = True
            return
        self._waiting.put(_Noted(event, known, self._has_lost_events))
        self._has_lost_events = False

    def close(self) -> None:
        """Wait until all events are written, but not for a disk that hangs."""
        self._waiting.put(None)
        if self._writing is not None:
            self._writing.join(_CLOSE_S)
            if self._writing.is_alive():
                log.error("the end of the record was not written: the disk hangs", waited_s=_CLOSE_S)


def _write_all(path: Path, waiting: SimpleQueue[_Noted | None]) -> None:
    """Append what waits to the file at this path, until None. After an error the next event is tried."""
    file: FileIO | None = None
    is_failing = False
    while (noted := waiting.get()) is not None:
        try:
            if file is not None and not _is_at(path, file):
                file.close()
                file = None
            is_beginning = file is None or noted.is_after_lost_events
            file = file or _open(path)
            _append(file, noted, is_beginning=is_beginning)
        except OSError as error:
            if file is not None:
                file.close()
            file = None
            if not is_failing:
                log.error("not recorded; trying again with every event", file=str(path), error=error.strerror)
            is_failing = True
        else:
            is_failing = False
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


def _append(file: FileIO, noted: _Noted, *, is_beginning: bool) -> None:
    event, at = noted.event, noted.event.at
    events: list[Event] = [event]
    if is_beginning and not isinstance(event, Started):
        known = (replace(before, at=at) for before in noted.known.values())
        events = [Started(at), *known, event]
    content = b"".join(map(format_event, events))
    if file.write(content) != len(content):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
