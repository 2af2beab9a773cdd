"""What the commands that monitor have in common: they run until stopped, and reload on request."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from lookout.app.log import configure_log
from lookout.app.process import block_sighup, run_until_stopped
from lookout.app.record import RecordTakenError
from lookout.app.reloader import Reloader, log_warnings
from lookout.base.clock import SystemClock
from lookout.base.pieces import StateError
from lookout.base.sockets import ListenError
from lookout.cli.arguments import fail, settings_of
from lookout.config.file import read_sending_config
from lookout.config.settings import Settings
from lookout.store.protocol import StoreError


def run_reloadable(config: Path, work: Callable[[Settings, Path, Reloader], Coroutine[Any, Any, None]]) -> None:
    """Run the work on these settings, in their folder, until stopped; or the end of the command, with what is wrong."""
    block_sighup()
    settings = settings_of(config, read_sending_config)
    configure_log(settings.log)
    log_warnings(settings)
    reloader = Reloader(config.absolute(), settings, SystemClock())
    try:
        run_until_stopped(work(settings, config.absolute().parent, reloader), reloader.request)
    except (ListenError, RecordTakenError, StateError, StoreError) as error:
        fail(str(error))
