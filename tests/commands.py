"""The command: as real processes, to its end or meanwhile; or in this one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, chdir, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from click.testing import CliRunner

from lookout.cli import main
from tests.wait import until

LOOKOUT: Final = Path(sys.executable).parent / "lookout"
TIME_S: Final = 60
SAID: Final = "said.log"

Meanwhile = AbstractContextManager[subprocess.Popen[bytes]]


def lookout(
    folder: Path,
    *arguments: str | Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    within_s: float = TIME_S,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in a folder; its exit code, what it said, and what it complained of."""
    return subprocess.run(
        [LOOKOUT, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=within_s,
        check=False,
    )


def lookout_here(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The same in this process, in a tenth of the time: for what a command says and does, not how it runs."""
    with chdir(folder):
        ran = CliRunner().invoke(main, list(map(str, arguments)), prog_name="lookout", catch_exceptions=False)
    return subprocess.CompletedProcess(arguments, ran.exit_code, ran.stdout, ran.stderr)


@contextmanager
def meanwhile(folder: Path, *program: str | Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program meanwhile, in a process group of its own, of which no process is left afterwards. ``said`` is what
    all that ran in the folder said."""
    with (folder / SAID).open("ab") as log:
        process = subprocess.Popen(
            program,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        children = living(process.pid)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: not living(process.pid) and not any(map(is_alive, children)), "no process is left")


def a_command(folder: Path, *arguments: str | Path, **environment: str) -> Meanwhile:
    """The command meanwhile."""
    return meanwhile(folder, LOOKOUT, *arguments, **environment)


def said(folder: Path) -> str:
    return (folder / SAID).read_text(encoding="utf-8")


def living(group: int) -> dict[int, str]:
    """The processes of a group, and children of its leader in groups of their own, that have not ended; with their
    commands."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent, of = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                if group in (int(parent), int(of)) and state not in "ZX":
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                continue
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
