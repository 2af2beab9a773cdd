"""The server as a child of ``lookout run``, with the very settings that its parent has read.

It reads the settings from its input, and ends when that does, or when asked to by SIGTERM; its first argument is the
folder of the configuration.
"""

import signal
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from lookout.admin import AdminError
from lookout.settings import Settings
from lookout.store.protocol import StoreError
from lookout.wiring.listening import ListenError
from lookout.wiring.log import configure_log
from lookout.wiring.process import WRONG_USE, end_with_parent
from lookout.wiring.server import serve


def main() -> NoReturn:
    line = sys.stdin.buffer.readline()
    settings = msgspec.json.decode(line, type=Settings)
    configure_log(settings.log)
    end_with_parent()
    try:
        serve(settings, Path(sys.argv[1]), (signal.SIGTERM,))
    except (AdminError, ListenError, StoreError) as error:
        sys.stderr.write(f"lookout: {error}\n")
        raise SystemExit(WRONG_USE) from None
    raise SystemExit(0)
