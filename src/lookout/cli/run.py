"""``lookout run``: monitor and server together."""

from pathlib import Path

import click

from lookout.admin import AdminError
from lookout.cli.arguments import config_option, fail, settings_of
from lookout.clock import SystemClock
from lookout.core.pieces import StateError
from lookout.store.protocol import StoreError
from lookout.wiring.log import configure_log
from lookout.wiring.process import hold_reloads_back, run_until_stopped
from lookout.wiring.reloading import Reloader
from lookout.wiring.together import ServerEndedError, monitor_and_serve


@click.command()
@config_option
def run(config: Path) -> None:
    """Monitor and serve together, until stopped."""
    hold_reloads_back()
    settings = settings_of(config, sends=True)
    configure_log(settings.log)
    reloader = Reloader(config.absolute(), settings, SystemClock())
    try:
        run_until_stopped(monitor_and_serve(settings, config.absolute().parent, reloader), reloader.ask)
    except (AdminError, StateError, StoreError) as error:
        fail(str(error))
    except ServerEndedError as ended:
        raise SystemExit(ended.exit_code) from None
