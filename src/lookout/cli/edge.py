"""``lookout edge-config``."""

from pathlib import Path

import click

from lookout.cli.arguments import config_option, fail, settings_of
from lookout.config.file import read_config
from lookout.edge.varnish import OriginError, configuration, parameters


@click.command("edge-config")
@config_option
@click.option("--parameters", "wants_parameters", is_flag=True, help="Print the options that varnishd needs with it.")
def edge_config(config: Path, wants_parameters: bool) -> None:
    """Print the configuration of Varnish for these settings."""
    settings = settings_of(config, read_config)
    try:
        click.echo(" ".join(parameters()) + "\n" if wants_parameters else configuration(settings), nl=False)
    except OriginError as error:
        fail(f"{config}: {error}")
