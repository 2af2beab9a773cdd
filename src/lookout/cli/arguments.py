"""What the commands share: the configuration they are given, and how they say that something is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import click
import msgspec

from lookout.app.process import WRONG_USE
from lookout.base.setting_types import is_host_port
from lookout.config.file import ConfigError
from lookout.config.settings import SEGMENT, ServerSettings, Settings

NOT_FINE: Final = 1

C = TypeVar("C", bound=Callable[..., object] | click.Command)
S = TypeVar("S", Settings, ServerSettings)

config_option = click.option(
    "-c", "--config", type=click.Path(path_type=Path), required=True, help="The configuration file."
)


def settings_of(config: Path, read: Callable[[Path], S]) -> S:
    """The settings in a file, or the end of the command with everything that is wrong with it."""
    try:
        return read(config)
    except ConfigError as error:
        fail(*error.problems)


def _check_protocol(_context: click.Context, _option: click.Parameter, protocol: str) -> str:
    """A protocol's name as a configuration may have it, or the end of the command."""
    try:
        msgspec.convert({"protocol": protocol}, Settings)
    except msgspec.ValidationError:
        fail(f"--protocol: {protocol!r} is not {SEGMENT}")
    return protocol


protocol_option = click.option(
    "--protocol",
    default="protocol",
    show_default=True,
    metavar="NAME",
    callback=_check_protocol,
    help="The segment of the path.",
)


def _check_listen(_context: click.Context, _option: click.Parameter, address: str) -> str:
    """An address to listen on, or the end of the command."""
    if not is_host_port(address):
        fail(f"--listen: {address!r} is not HOST:PORT")
    return address


def listen_option(default: str, text: str) -> Callable[[C], C]:
    return click.option(
        "--listen", default=default, show_default=True, metavar="HOST:PORT", callback=_check_listen, help=text
    )


def fail(*sentences: str, exit_code: int = WRONG_USE) -> NoReturn:
    """Say what is wrong and end: wrong use or configuration, if nothing else is said."""
    for sentence in sentences:
        click.echo(f"lookout: {sentence}", err=True)
    raise SystemExit(exit_code)
