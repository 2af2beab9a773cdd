"""The wall clock that the simulated upstreams, the monitors and the servers live by: libfaketime lets it jump."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

LIBFAKETIME: Final = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


class Wall:
    """A clock for us, and the environment that gives processes the same one. Without libfaketime it cannot be set.

    Under it a call of ``time.sleep`` fails, as libfaketime does not know that the clock it waits by is a true one. The
    commands of this day never sleep so.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self._offset_ms = 0
        self._write(0)

    @property
    def environment(self) -> Mapping[str, str]:
        if LIBFAKETIME is None:
            return {}
        return {
            "LD_PRELOAD": str(LIBFAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",  # all see it at once
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # which makes threads wait for tenths of a second
        }

    def now(self) -> int:
        return time.time_ns() // 1_000_000 + self._offset_ms

    def elapsed_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def set(self, offset_s: int) -> None:
        """Let it be so many seconds ahead of the true time."""
        self._write(offset_s)
        self._offset_ms = 1000 * offset_s

    def _write(self, offset_s: int) -> None:
        written = self._file.with_suffix(".new")
        written.write_text(f"{offset_s:+d}\n")
        written.replace(self._file)  # never half written
