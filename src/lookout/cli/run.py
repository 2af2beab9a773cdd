"""``lookout run``: monitor and server together."""

from pathlib import Path

import click

from lookout.app.monitor_and_server import ServerEndedError, monitor_and_serve
from lookout.cli.arguments import config_option
from lookout.cli.reloadable import run_reloadable


@click.command()
@config_option
def run(config: Path) -> None:
    """Monitor and serve together, until stopped."""
    try:
        run_reloadable(config, monitor_and_serve)
    except ServerEndedError as ended:
        raise SystemExit(ended.exit_code) from None
