"""What the monitor records with, from one reload to the next."""

import asyncio
import os
from collections.abc import Callable
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

    async def open(self, settings: MonitorTable) -> Recorder | None:
        """The recorder for these settings: the one in use, if it has that file already. RecordTakenError if another
        process records to it. A disk that hangs is not waited for: that is the recorder's part."""
        recorder = self.find(settings)
        if recorder is not None and recorder is not self.recorder and await _is_taken(recorder):
            recorder.end()
            what = "another process records to it; give each monitor a file of its own"
            raise RecordTakenError(f"monitor.record: {recorder.path}: {what}")
        return recorder

    def find(self, settings: MonitorTable) -> Recorder | None:
        """The recorder for these settings, whoever else may have its file."""
        if not settings.record:
            return None
        path, max_bytes = self._folder / settings.record, settings.record_max_mb * 1_000_000
        used = self.recorder
        if used is not None and (used.path == path or used.real_path == os.path.realpath(path)):
            used.apply_settings(path, max_bytes)
            return used
        return Recorder(self._file_at(path, max_bytes))

    def use(self, recorder: Recorder | None) -> None:
        """Record with this one from now on. The one before has been given its last event, and is not waited for."""
        before, self.recorder = self.recorder, recorder
        if before is not None and before is not recorder:
            before.end()

    def close(self) -> None:
        """Wait for what was recorded to be written, and let others have the file."""
        if self.recorder is not None:
            self.recorder.close()


async def _is_taken(recorder: Recorder) -> bool:
    done, _ = await asyncio.wait((asyncio.wrap_future(recorder.is_taken),), timeout=_OPEN_S)
    return any(each.result() for each in done)
