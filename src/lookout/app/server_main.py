"""What a server's process runs; its first argument is the folder of the configuration."""

import gc
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import msgspec

from lookout.app.log import configure_log
from lookout.app.process import WRONG_USE, end_with_parent, stopping_signals
from lookout.app.server import serve
from lookout.app.sockets import ListenError
from lookout.config.tables import ServerSettings
from lookout.store.protocol import StoreError


def serve_beside_monitor() -> NoReturn:
    """Serve as a child of ``lookout run``. The settings are a line of the standard input; it ends when that does, or by
    SIGTERM."""
    settings = _decode(sys.stdin.buffer.readline())
    end_with_parent()
    _serve(settings, (signal.SIGTERM,))


def serve_alone() -> NoReturn:
    """Serve as ``lookout serve``. The second argument is the open file with the settings."""
    with os.fdopen(int(sys.argv[2]), "rb") as file:
        settings = _decode(file.read())
    _serve(settings, stopping_signals())


def _decode(settings: bytes) -> ServerSettings:
    return msgspec.json.decode(settings, type=ServerSettings)


def _serve(settings: ServerSettings, stopping: Iterable[signal.Signals]) -> NoReturn:
    gc.enable()  # off while modules were imported, which are never garbage
    configure_log(settings.log)
    try:
        serve(settings, Path(sys.argv[1]), stopping)
    except (ListenError, StoreError) as error:
        sys.stderr.write(f"lookout: {error}\n")
        raise SystemExit(WRONG_USE) from None
    raise SystemExit(0)
