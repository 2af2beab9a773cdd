"""What the monitor records with, from one reload to the next."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lookout.config.tables import MonitorTable
from lookout.monitor.recorder import LogFile, Recorder

_OPEN_S: Final = 2.0  # how long a start or a reload waits for a disk that hangs


class RecordTakenError(Exception):
    """Another process records to the file; the text says which, in one sentence."""


class Record:
    """The recorder of the settings in force. Paths in them are relative to ``folder``."""

    def __init__(self, folder: Path, file_at: Callable[[Path, int], LogFile] = LogFile) -> None:
        self.recorder: Recorder | None = None
        self._folder = folder
        self._file_at = file_at
        self._prepared: Recorder | None = None
        self._is_closed = False

    async def prepare(self, settings: MonitorTable) -> None:
        """Open the file of these settings, for ``change`` to use. RecordTakenError if another process records to it. A
        disk that hangs is not waited for: that is the recorder's part."""
        recorder = self._of(settings)
        if recorder is None or recorder is self.recorder:
            return
        self._prepared = recorder
        is_taken = await _is_taken(recorder)
        if is_taken or self._is_closed:
            self._end_prepared()
        if is_taken:
            what = "another process records to it; give each monitor a file of its own"
            raise RecordTakenError(f"monitor.record: {recorder.path}: {what}")

    @contextmanager
    def change(self, settings: MonitorTable) -> Iterator[Recorder | None]:
        """Record by these settings from now on. The recorder before may be given its last inside the block; it is not
        waited for."""
        before, self.recorder = self.recorder, self._of(settings)
        if self._prepared is self.recorder:
            self._prepared = None
        self._end_prepared()
        yield self.recorder
        if before is not None and before is not self.recorder:
            before.end()

    def close(self) -> None:
        """Wait for what was recorded to be written, and let others have the file."""
        self._is_closed = True
        self._end_prepared()
        if self.recorder is not None:
            self.recorder.close()

    def _of(self, settings: MonitorTable) -> Recorder | None:
        """The recorder that has the file already, or another one."""
        if not settings.record:
            return None
        path = self._folder / settings.record
        real_path = os.path.realpath(path)
        max_bytes = settings.record_max_mb * 1_000_000
        for known in (self.recorder, self._prepared):
            if known is not None and (known.path == path or known.real_path == real_path):
                known.apply_settings(path, max_bytes)
                return known
        return Recorder(self._file_at(path, max_bytes))

    def _end_prepared(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            prepared.end()


async def _is_taken(recorder: Recorder) -> bool:
    done, _ = await asyncio.wait((asyncio.wrap_future(recorder.is_taken),), timeout=_OPEN_S)
    return any(each.result() for each in done)
