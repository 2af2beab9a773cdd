"""Small disks that fill up, and what a monitor says then."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.leases import NotHereError

REFUSED = "not stored; trying again with every publication"


@contextmanager
def a_small_disk(megabytes: float) -> Iterator[Path]:
    """There is one meanwhile. NotHereError where none can be."""
    with tempfile.TemporaryDirectory(prefix="lookout-disk-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={round(megabytes * 1024)}k,mode=777", "lookout-test", folder]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            raise NotHereError("needs the right to mount a small disk: run the tests as root")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)  # noqa: S607  wherever the system has it


def fill(disk: Path) -> None:
    ballast = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (1 << 20, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    os.write(ballast, bytes(size))
    finally:
        os.close(ballast)
