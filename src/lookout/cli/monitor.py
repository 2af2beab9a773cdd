"""``lookout monitor``."""

from pathlib import Path

import click

from lookout.cli.arguments import config_option
from lookout.cli.lasting import run_reloadable
from lookout.wiring.monitor import monitor as run_monitor


@click.command(short_help="Probe every source and store what was seen, until stopped.")
@config_option
def monitor(config: Path) -> None:
    """Probe every source about every 30 seconds and store what was seen, until stopped."""
    run_reloadable(config, run_monitor)
