"""The observation log as the monitor writes it, in at most two files."""

import os
from pathlib import Path
from typing import BinaryIO

from lookout.core.log import Event, Started, format_event


class Recorder:
    """Appends every event to a file. A file that grew too large becomes the one before, and a new one begins."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file: BinaryIO | None = None

    def record(self, event: Event) -> None:
        """OSError if it cannot be written; the next event tries again."""
        if self._file is None:
            self._file = self._open()
        if self._file.tell() > self._max_bytes:
            self._begin_anew(event.at)
        self._file.write(format_event(event))
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO:
        file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab")
        self._end_last_line(file)
        return file

    def _end_last_line(self, file: BinaryIO) -> None:
        """A crash may have cut the last line off; whatever comes next begins a line of its own."""
        size = file.seek(0, os.SEEK_END)
        if size == 0:
            return
        with self._path.open("rb+") as written:
            end = size
            while end > 0:
                begin = max(0, end - 65_536)
                written.seek(begin)
                newline = written.read(end - begin).rfind(b"\n")
                if newline >= 0:
                    end = begin + newline + 1
                    break
                end = begin
            written.truncate(end)
        file.seek(0, os.SEEK_END)

    def _begin_anew(self, at: int) -> None:
        self.close()
        self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._file = self._open()
        self._file.write(format_event(Started(at)))
