"""``lookout serve``."""

from pathlib import Path

import click

from lookout.app.server_process import become_server
from lookout.cli.arguments import config_option, fail
from lookout.config.file import ConfigError, read_server_config


@click.command()
@config_option
def serve(config: Path) -> None:
    """Answer with what the monitor stored, until stopped."""
    try:
        settings = read_server_config(config)
    except ConfigError as error:
        fail(*error.problems)
    become_server(settings, config.absolute().parent)
