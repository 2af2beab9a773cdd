"""``lookout edge-config``."""

from pathlib import Path

import click

from lookout.cli.arguments import config_option, settings_of
from lookout.edge.varnish import configuration


@click.command("edge-config")
@config_option
def edge_config(config: Path) -> None:
    """Print the configuration of Varnish for these settings."""
    click.echo(configuration(settings_of(config)), nl=False)
