"""``lookout serve``."""

from pathlib import Path

import click

from lookout.admin import AdminError
from lookout.cli.arguments import config_option, fail, settings_of
from lookout.store.protocol import StoreError
from lookout.wiring.listening import ListenError
from lookout.wiring.log import configure_log
from lookout.wiring.process import stopping_signals
from lookout.wiring.server import serve as run_server


@click.command()
@config_option
def serve(config: Path) -> None:
    """Answer with what the monitor stored, until stopped."""
    settings = settings_of(config)
    configure_log(settings.log)
    try:
        run_server(settings, config.absolute().parent, stopping_signals())
    except (AdminError, ListenError, StoreError) as error:
        fail(str(error))
