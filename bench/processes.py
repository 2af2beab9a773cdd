"""Processes that a measurement starts, and what they cost."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOKOUT = Path(sys.executable).parent / "lookout"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Processor time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("this system does not tell the memory of a process")


def only_on(core: int) -> None:
    """Keep this process to one core, where there are several."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})


@contextmanager
def an_upstream(chains: int = 5) -> Iterator[str]:
    """The base address of a bare upstream, on a core of its own if there are two."""
    core = -1
    with subprocess.Popen(
        [sys.executable, "-m", "bench.upstream", str(chains)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: only_on(core),
    ) as process:
        if process.stdout is None:
            raise RuntimeError("the upstream has no output")
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def a_process(folder: Path, *arguments: str, core: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A ``lookout`` command in a folder, on one core if told."""
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            [LOOKOUT, *arguments],
            cwd=folder,
            stderr=log,
            preexec_fn=None if core is None else lambda: only_on(core),
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def children(pid: int) -> list[int]:
    """The processes that a process started, and that they started."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*found, *(grandchild for child in found for grandchild in children(child))]


@contextmanager
def a_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
