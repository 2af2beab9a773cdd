"""Processes that a measurement starts, and what they cost."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

LOOKOUT = Path(sys.executable).parent / "lookout"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def cpu_by_process(pids: Iterable[int]) -> dict[int, float]:
    """Processor time of each; one that has ended meanwhile is left out."""
    found = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            found[pid] = cpu_s(pid)
    return found


def memory_mb(pid: int) -> float:
    return _read_mb(Path(f"/proc/{pid}/status"), "VmRSS:")


def available_mb() -> float:
    """Memory that new processes could take."""
    return _read_mb(Path("/proc/meminfo"), "MemAvailable:")


def _read_mb(file: Path, name: str) -> float:
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1000
    raise RuntimeError(f"{file} has no {name}")


def only_on(core: int) -> None:
    """Keep this process to one core, where there are several."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})


def kept_to(core: int | None) -> Callable[[], None] | None:
    """What a new process is to do first, to be kept to one core if asked for."""
    return None if core is None else partial(only_on, core)


def program(name: str) -> str | None:
    """Where it is; not everybody's PATH has the folders of servers."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def an_upstream(chains: int = 5) -> Iterator[str]:
    """The base address of a bare upstream, on a core of its own if there are two."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.upstream", str(chains)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=kept_to(-1),
    ) as process:
        if process.stdout is None:
            raise RuntimeError("the upstream has no output")
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def a_process(folder: Path, *arguments: str, core: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A ``lookout`` command in a folder, on one core if asked for."""
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            [LOOKOUT, *arguments],
            cwd=folder,
            stderr=log,
            preexec_fn=kept_to(core),
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def children(pid: int) -> list[int]:
    """The processes that a process started, and that they started; none of one that has ended meanwhile."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = [int(child) for child in listed.split()]
    return [*found, *(grandchild for child in found for grandchild in children(child))]


@contextmanager
def a_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
