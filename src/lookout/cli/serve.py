"""``lookout serve``."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lookout.app.server_process import become_server
from lookout.cli.arguments import config_option, settings_of

if TYPE_CHECKING:
    from lookout.config.server_settings import ServerSettings


@click.command()
@config_option
def serve(config: Path) -> None:
    """Answer with what the monitor stored, until stopped."""

    def read() -> "ServerSettings":
        from lookout.config.file import read_server_config

        return settings_of(config, read_server_config)

    become_server(read, config.absolute().parent)
