"""``lookout serve``."""

from pathlib import Path

import click

from lookout.app.server_process import become_server
from lookout.cli.arguments import config_option, settings_of
from lookout.config.file import read_server_config


@click.command()
@config_option
def serve(config: Path) -> None:
    """Answer with what the monitor stored, until stopped."""
    become_server(lambda: settings_of(config, read_server_config), config.absolute().parent)
