"""The observation log as the monitor writes it, in at most two files."""

import os
from collections.abc import Callable
from contextlib import closing
from errno import EEXIST, EWOULDBLOCK
from fcntl import LOCK_EX, LOCK_NB, flock
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from stat import S_ISREG
from threading import Thread
from typing import Final, NamedTuple

from lookout.base.logger import get_logger
from lookout.config.tables import MonitorTable
from lookout.state.log import Event, LineError, Started, format_event, parse_line

_MOST_WAITING: Final = 10_000  # events; a few minutes of a hundred rows
_CLOSE_S: Final = 2.0
_BEGINNING: Final = b'{"at":"'
_LONGEST_LINE: Final = 65_536

log = get_logger()


class Record:
    """The recorder of the settings in force, from one reload to the next. Paths are relative to ``folder``."""

    def __init__(self, folder: Path, file_at: Callable[[Path, int], "LogFile"] | None = None) -> None:
        self.recorder: Recorder | None = None
        self._folder = folder
        self._file_at = file_at or LogFile

    def open(self, settings: MonitorTable) -> "Recorder | None":
        """The recorder for these settings: the one in use, if it has that path already."""
        if not settings.record:
            return None
        path, max_bytes = self._folder / settings.record, settings.record_max_mb * 1_000_000
        if self.recorder is not None and self.recorder.file.path == path:
            self.recorder.file.max_bytes = max_bytes
            return self.recorder
        return Recorder(self._file_at(path, max_bytes))

    def use(self, recorder: "Recorder | None") -> None:
        """Record with this recorder from now on. The previous one has its last event, and may still be writing."""
        before, self.recorder = self.recorder, recorder
        if before is not None and before is not recorder:
            before.end()

    def close(self) -> None:
        """Wait until all events are written, and unlock the file."""
        if self.recorder is not None:
            self.recorder.close()


class _Noted(NamedTuple):
    event: Event
    is_after_a_gap: bool


class Recorder:
    """Records every event in a thread of its own: a disk that hangs, or is full, delays no probe. Lost events are a
    gap, after which the log starts again."""

    def __init__(self, file: "LogFile") -> None:
        self.file = file
        self._waiting: SimpleQueue[_Noted | None] = SimpleQueue()
        self._is_whole = True
        self._thread = Thread(target=self._work, name="record", daemon=True)
        self._thread.start()

    def record(self, event: Event) -> None:
        if self._waiting.qsize() >= _MOST_WAITING:
            if self._is_whole:
                log.error("not recorded: the disk does not keep up, or hangs")
            self._is_whole = False
            return
        self._waiting.put(_Noted(event, not self._is_whole))
        self._is_whole = True

    def end(self) -> None:
        self._waiting.put(None)

    def close(self) -> None:
        """Wait until all events are written, but not for a disk that hangs."""
        self.end()
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            log.error("the end of the record was not written: the disk hangs", waited_s=_CLOSE_S)

    def _work(self) -> None:
        is_failing = False
        while (noted := self._waiting.get()) is not None:
            if noted.is_after_a_gap:
                self.file.mark_gap()
            try:
                self.file.append(noted.event)
            except OSError as error:
                if not is_failing:
                    log.error(
                        "not recorded; trying again with every event", file=str(self.file.path), error=error.strerror
                    )
                is_failing = True
            else:
                is_failing = False
        self.file.close()


class LogFile:
    """Appends events to a file, locked against other processes. A file that grew too large is renamed to the previous
    file, and a new one begins."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self._file: FileIO | None = None
        self._is_whole = True  # no event was lost since the last start

    def append(self, event: Event) -> None:
        """OSError if the event cannot be written; the next one is retried, after a start of its own."""
        try:
            file = self._current_file()
            if file.tell() > self.max_bytes:
                file = self._rotate(file)
            if not self._is_whole and not isinstance(event, Started):
                _write(file, format_event(Started(event.at)))
            _write(file, format_event(event))
        except OSError:
            self.mark_gap()
            self.close()
            raise
        self._is_whole = True

    def mark_gap(self) -> None:
        """Events were lost: the next one follows a start."""
        self._is_whole = False

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _current_file(self) -> FileIO:
        """The open file if it is still at the path. If not, it was moved away, and the file at the path may be another
        process's."""
        if self._file is not None and not _is_at(self.path, self._file):
            self.close()
            self.mark_gap()
        self._file = self._file or self._open()
        return self._file

    def _open(self) -> FileIO:
        file = self._open_locked()
        try:
            if not _may_be_log(file):
                raise _no_log()
            size = file.seek(0, os.SEEK_END)
            whole = _end_of_last_line(file, size)
            if whole < size:  # a crash or a full disk cut the last line off
                file.truncate(whole)
                file.seek(0, os.SEEK_END)
        except OSError:
            file.close()
            raise
        return file

    def _open_locked(self) -> FileIO:
        """The file, locked until it is closed. A log that two processes append to cannot be replayed."""
        while True:
            file = FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "r+")
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                return file  # several processes may write to a device
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                file.close()
                raise BlockingIOError(EWOULDBLOCK, "another process records to it") from None
            if _is_at(self.path, file):
                return file
            file.close()  # the process that had the lock has just renamed it

    def _rotate(self, full: FileIO) -> FileIO:
        """Rename a full file. Its lock is held until the next file is locked."""
        self._file = None
        with closing(full):
            self.path.replace(self.path.with_name(self.path.name + ".1"))
            self.mark_gap()
            self._file = self._open()
        return self._file


def _no_log() -> OSError:
    return FileExistsError(EEXIST, "is no observation log; choose another file in monitor.record")


def _is_at(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _may_be_log(file: FileIO) -> bool:
    """Whether a file is empty or begins as a log: a file named by mistake is left alone."""
    if not S_ISREG(os.fstat(file.fileno()).st_mode):
        return True
    line, newline, _ = file.read(_LONGEST_LINE).partition(b"\n")
    if not newline:  # a crash cut the first line off
        return _BEGINNING.startswith(line[: len(_BEGINNING)])
    try:
        parse_line(line)
    except LineError:
        return False
    return True


def _write(file: FileIO, line: bytes) -> None:
    written = file.write(line)
    if written is None or written < len(line):
        raise OSError(0, "only a part could be written")


def _end_of_last_line(file: FileIO, size: int) -> int:
    """0 if the file has no whole line. OSError if the last one is longer than any line of a log."""
    begin = max(0, size - _LONGEST_LINE)
    file.seek(begin)
    newline = file.read(_LONGEST_LINE).rfind(b"\n")
    if newline < 0 < begin:
        raise _no_log()
    return begin + newline + 1
