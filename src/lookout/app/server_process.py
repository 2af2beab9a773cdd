"""The process of a server beside a monitor, which gets a small environment, and nothing else of its parent."""

import ctypes
import os
import re
import sys
from collections.abc import Mapping
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
_WRITERS_PASSWORD: Final = "PGPASSWORD"  # noqa: S105  its name


def hide_memory() -> None:
    """Keep other processes of the same user from reading the memory and the environment of this one, and the system
    from writing a core dump. Its child processes are not hidden."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def prepare_server(
    config: Path, environment: Mapping[str, str] = os.environ
) -> tuple["ServerSettings | None", dict[str, str]]:
    """The settings that a server reads from this configuration now, None if they have a problem, and its environment:
    the variables that any program needs, and those that the configuration names for a server. A monitor's secrets are
    not among them."""
    from lookout.config.file import ConfigError, find_server_settings
    from lookout.store.kinds import kind_of

    needed, without, settings = [_ORDINARY], set(), None
    try:
        settings, named = find_server_settings(config, environment)
    except ConfigError:  # the server says what is wrong
        named = set()
    else:
        needed.append(re.compile(kind_of(settings.store_url).variables))
        without = {_WRITERS_PASSWORD} - named if settings.store.read_url else set()
    return settings, {
        name: text
        for name, text in environment.items()
        if name in named or (name not in without and any(pattern.fullmatch(name) for pattern in needed))
    }
