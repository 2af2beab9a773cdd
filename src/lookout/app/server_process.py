"""A server's process: it has the settings of a server and a small environment, and nothing else of who started it.

It is always a new program. One that has read a whole configuration keeps secrets in its memory and its environment, and
can remove neither for certain.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lookout.base.environment import pick_ordinary

if TYPE_CHECKING:
    from lookout.config.tables import ServerSettings

# A terminal's Ctrl-C reaches every process; the monitor alone says when the server beside it ends. That one ignores it
# before it reads anything, and so do those that it starts.
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
    """Started with -P, it imports nothing from where it happens to be."""
    return (sys.executable, "-P", "-c", program, *arguments)


def small_environment(settings: "ServerSettings", environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a server needs of an environment in which a monitor's secrets may be."""
    from lookout.store.kinds import kind_of

    for_store = re.compile(kind_of(settings.store_url).variables)
    kept = pick_ordinary(environment) | {name: environment[name] for name in environment if for_store.fullmatch(name)}
    if not settings.reads_as_writer:  # its password, if it has one, is in its own address
        kept.pop(_WRITERS_PASSWORD, None)
    return kept


def become_server(read: "Callable[[], ServerSettings]", folder: Path) -> None:
    """Replace this process by a server, which keeps its id and imports its modules while a child reads the settings.
    Returns in that child: whatever else it has read ends with it."""
    received, sent = os.pipe()
    reading = os.fork()
    if reading == 0:
        os.close(received)
        settings = read()
        from msgspec.json import encode  # like all that reading takes, not before the server starts

        with os.fdopen(sent, "wb") as pipe:
            pipe.write(encode((settings, small_environment(settings))))
        return
    os.set_inheritable(received, True)
    program = command_line(_ALONE, str(folder), str(received), str(reading))
    os.execve(program[0], program, pick_ordinary(os.environ))  # noqa: S606  our own program
