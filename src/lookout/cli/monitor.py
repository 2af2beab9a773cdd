"""``lookout monitor``."""

from pathlib import Path

import click

from lookout.app.monitor import monitor as run_monitor
from lookout.cli.arguments import config_option
from lookout.cli.reloadable import run_reloadable


@click.command()
@config_option
def monitor(config: Path) -> None:
    """Probe every source about every 30 seconds and store what was seen, until stopped."""
    run_reloadable(config, run_monitor)
