"""The observation log as the monitor writes it, in at most two files."""

import os
from io import FileIO
from pathlib import Path

from lookout.core.log import Event, Started, format_event


class Recorder:
    """Appends every event to a file. A file that grew too large becomes the one before, and a new one begins."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file: FileIO | None = None
        self._is_whole = True  # no event was lost since the last start

    def record(self, event: Event) -> None:
        """OSError if it cannot be written; the next event tries again, and begins with a start of its own."""
        try:
            file = self._file = self._file or self._open()
            if file.tell() > self._max_bytes:
                file = self._begin_anew()
            if not self._is_whole and not isinstance(event, Started):
                _write(file, format_event(Started(event.at)))
            _write(file, format_event(event))
        except OSError:
            self._is_whole = False
            self.close()
            raise
        self._is_whole = True

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self) -> FileIO:
        file = FileIO(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "r+")
        size = file.seek(0, os.SEEK_END)
        whole = _end_of_last_line(file, size)
        if whole < size:  # a crash, or a disk that was full, cut the last line off
            file.truncate(whole)
            file.seek(0, os.SEEK_END)
        return file

    def _begin_anew(self) -> FileIO:
        self.close()
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._is_whole = False
        self._file = self._open()
        return self._file


def _write(file: FileIO, line: bytes) -> None:
    written = file.write(line)
    if written is None or written < len(line):
        raise OSError(0, "only a part could be written")


def _end_of_last_line(file: FileIO, size: int) -> int:
    end = size
    while end > 0:
        begin = max(0, end - 65_536)
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0
