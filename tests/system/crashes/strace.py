"""System calls of a victim, by strace: counted, and then one of them made fatal or made to fail."""

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.system.crashes.kinds import LeftOut
from tests.system.crashes.victim import FILE

ROOT: Final = Path(__file__).parents[3]
LIMIT_S: Final = 120
# Those that change files. Not every machine has all of them: strace passes over one with a question mark.
CHANGING: Final = (
    "openat", "?open", "?creat", "pwrite64", "write", "pwritev", "writev", "fsync", "fdatasync", "ftruncate",
    "fallocate", "?unlink", "unlinkat", "?rename", "renameat", "?renameat2", "fchown", "fchmod", "?chmod", "fchmodat",
)  # fmt: skip
# Those that can fail without having changed anything.
LOOKING: Final = ("pread64", "fcntl", "flock", "mmap", "?newfstatat", "?fstat", "?stat", "?lstat", "?statx")
_CALL: Final = re.compile(r"^(?:\d+ +)?(\w+)\(", re.MULTILINE)


class Ran(NamedTuple):
    code: int
    said: str
    complained: str


def need_strace() -> None:
    if shutil.which("strace") is None:
        raise LeftOut("strace is not installed")
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)  # noqa: S607
    if tried.returncode:
        raise LeftOut(f"strace may not trace here: {tried.stderr.strip()}")


def count(folder: Path, calls: Sequence[str], arguments: Iterable[str]) -> Counter[str]:
    """How often a victim makes each call on the store's files if nothing happens to it."""
    log = folder.with_name(folder.name + ".log")
    ran = run_traced(folder, arguments, "-e", f"trace={','.join(calls)}", log=log)
    if ran.code or ran.complained:
        raise RuntimeError(f"the victim fails by itself: {ran.code} {ran.complained}")
    return Counter(_CALL.findall(log.read_text()))


def run_traced(folder: Path, arguments: Iterable[str], *options: str, log: Path = Path("/dev/null")) -> Ran:
    """Run a victim on a folder; only calls on the store's files are looked at."""
    return run_victim(folder, arguments, ["strace", "-o", str(log), *looking_at(folder), *options])


def looking_at(folder: Path) -> list[str]:
    """The options that leave out calls on other files than the store's."""
    names = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", f"{FILE}-lock")
    paths = (folder, *(folder / name for name in names))
    return [option for path in paths for option in ("-P", str(path))]


def run_victim(folder: Path, arguments: Iterable[str], before: Sequence[str] = ()) -> Ran:
    command = [*before, sys.executable, "-m", "tests.system.crashes.victim", str(folder), *arguments]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return Ran(ran.returncode, ran.stdout, ran.stderr)
