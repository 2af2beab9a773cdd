"""A server's process, with a server's settings and a small environment, and nothing else of its parent.

It is always a new program: a process that has read a whole configuration keeps secrets in its memory and its
environment, and cannot remove them reliably.
"""

import ctypes
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lookout.config.tables import ServerSettings

_PR_SET_DUMPABLE: Final = 4  # in Linux' sys/prctl.h
# Paths of programs, libraries and files, the language, the time zone, and settings of Python and libraries.
_ORDINARY: Final = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|NO_COLOR|FORCE_COLOR"
    r"|PYTHON[A-Z0-9]+|LD_[A-Z_]+|MALLOC_[A-Z_]+|SSL_CERT_(FILE|DIR)|FAKETIME\w*"
)


def pick_ordinary(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that any program needs; an operator's own, which may be secrets, are not among them."""
    return {name: value for name, value in environment.items() if _ORDINARY.fullmatch(name)}


def hide_memory() -> None:
    """Keep other processes of the same user, such as a server's workers, from reading the memory and the environment of
    this one, and the system from writing a core dump. Its child processes are not hidden."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


# A terminal's Ctrl-C reaches every process, but the monitor alone stops the server beside it. So the server ignores it
# from the first line, and so do its children.
BESIDE_MONITOR: Final = """\
import gc, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
gc.disable()
from lookout.app.server import serve_beside_monitor
serve_beside_monitor()
"""
_ALONE: Final = """\
try:
    import gc
    gc.disable()
    from lookout.app.server import serve_alone
    serve_alone()
except KeyboardInterrupt:
    raise SystemExit(130) from None
"""
_WRITERS_PASSWORD: Final = "PGPASSWORD"  # noqa: S105  its name


def command_line(program: str, *arguments: str) -> tuple[str, ...]:
    """With -P it imports nothing from the current folder."""
    return (sys.executable, "-P", "-c", program, *arguments)


def small_environment(settings: "ServerSettings", environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that a server needs, without a monitor's secrets."""
    from lookout.store.kinds import kind_of

    for_store = re.compile(kind_of(settings.store_url).variables)
    kept = pick_ordinary(environment) | {name: environment[name] for name in environment if for_store.fullmatch(name)}
    if not settings.reads_as_writer:  # then its own address has its password
        kept.pop(_WRITERS_PASSWORD, None)
    return kept


def become_server(read: "Callable[[], ServerSettings]", folder: Path) -> None:
    """Replace this process by a server, which keeps its id and imports its modules while a child reads the settings.
    Returns in the child, whose other secrets end with it."""
    received, sent = os.pipe()
    reading = os.fork()
    if reading == 0:
        os.close(received)
        settings = read()
        from msgspec.json import encode  # imported late, so that the server starts first

        with os.fdopen(sent, "wb") as pipe:
            pipe.write(encode((settings, small_environment(settings))))
        return
    os.set_inheritable(received, True)
    program = command_line(_ALONE, str(folder), str(received), str(reading))
    os.execve(program[0], program, pick_ordinary(os.environ))  # noqa: S606  our own program
