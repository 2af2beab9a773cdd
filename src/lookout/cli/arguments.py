"""What the commands share: the configuration they are given, and how they say that something is wrong."""

from pathlib import Path
from typing import Final, NoReturn

import click

from lookout.config import ConfigError, read_config
from lookout.contradictions import is_host_port
from lookout.settings import Settings

NOT_FINE: Final = 1
WRONG_USE: Final = 2

config_option = click.option(
    "-c", "--config", type=click.Path(path_type=Path), required=True, help="The configuration file."
)


def settings_of(config: Path, *, sends: bool = False) -> Settings:
    """The settings in a file, or the end of the command with everything that is wrong with it."""
    try:
        return read_config(config, sends=sends)
    except ConfigError as error:
        fail(*error.problems)


def checked_listen(_context: click.Context, _option: click.Parameter, address: str) -> str:
    """An address to listen on, or the end of the command."""
    if not is_host_port(address):
        fail(f"--listen: {address!r} is not HOST:PORT")
    return address


def fail(*sentences: str) -> NoReturn:
    """Say what is wrong and end: wrong use or configuration."""
    for sentence in sentences:
        click.echo(f"lookout: {sentence}", err=True)
    raise SystemExit(WRONG_USE)
