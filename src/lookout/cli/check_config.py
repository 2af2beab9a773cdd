"""``lookout check-config``."""

from pathlib import Path

import click

from lookout.cli.arguments import config_option, settings_of
from lookout.config.file import read_sending_config


@click.command("check-config")
@config_option
def check_config(config: Path) -> None:
    """List everything wrong with a configuration, or print "ok"."""
    for doubt in settings_of(config, read_sending_config).warnings():
        click.echo(f"lookout: warning: {config}: {doubt}", err=True)
    click.echo("ok")
