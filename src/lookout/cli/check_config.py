"""``lookout check-config``."""

from collections.abc import Iterator
from pathlib import Path

import click

from lookout.app.process import count_acceptable_connections
from lookout.base.problem import Problem
from lookout.cli.arguments import config_option, settings_of
from lookout.config.file import read_sending_config
from lookout.config.tables import ServerTable


@click.command("check-config")
@config_option
def check_config(config: Path) -> None:
    """List everything wrong with a configuration, or print "ok"."""
    settings = settings_of(config, read_sending_config)
    for doubt in (*settings.warnings(), *_doubt_connections(settings.server)):
        click.echo(f"lookout: warning: {config}: {doubt}", err=True)
    click.echo("ok")


def _doubt_connections(server: ServerTable) -> Iterator[Problem]:
    of_address, accepted = server.connections_per_address * server.workers, count_acceptable_connections()
    if of_address >= accepted:
        what = f"lets one address have {of_address} connections, {server.connections_per_address} to each worker"
        yield Problem("server.connections_per_address", f"{what}; a process on this machine accepts {accepted}")
