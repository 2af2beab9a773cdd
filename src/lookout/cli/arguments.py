"""What the commands share: the configuration they are given, and how they say that something is wrong."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from lookout.config import CONFIG_VARIABLE, DEFAULT_CONFIG

if TYPE_CHECKING:
    from lookout.config.server_settings import ServerSettings
    from lookout.config.settings import Settings

NOT_FINE: Final = 1
WRONG_USE: Final = 2

C = TypeVar("C", bound=Callable[..., object] | click.Command)
S = TypeVar("S", "Settings", "ServerSettings")


def _find_config(context: click.Context, option: click.Parameter, config: Path) -> Path:
    """The configuration file; the end of the command if it was not given, and is not where it is looked for."""
    source = context.get_parameter_source(option.name or "")
    if source is not ParameterSource.COMMANDLINE and _is_missing(config) and not context.resilient_parsing:
        if source is ParameterSource.ENVIRONMENT:
            fail(f"{config}: there is no such file, which {CONFIG_VARIABLE} names; correct that, or give -c FILE")
        looked = f"-c is not given, {CONFIG_VARIABLE} names none, and there is no {config} in this folder"
        fail(f"there is no configuration: {looked}; begin with lookout init, which writes one")
    return config


def _is_missing(path: Path) -> bool:
    """Whether nothing is there, as far as can be seen; reading it says what else is wrong."""
    with suppress(OSError):
        return not path.exists()
    return False


config_option = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar=CONFIG_VARIABLE,
    default=DEFAULT_CONFIG,
    callback=_find_config,
    help=f"The configuration file; if left out, the one that ${CONFIG_VARIABLE} names, or else ./{DEFAULT_CONFIG}.",
)


def settings_of(config: Path, read: Callable[[Path], S]) -> S:
    """The settings in a file, or the end of the command with everything that is wrong with it."""
    from lookout.config.file import ConfigError  # reading takes many modules, and a server starts meanwhile

    try:
        return read(config)
    except ConfigError as error:
        fail(*error.messages_with_lines)


def _check_protocol(_context: click.Context, _option: click.Parameter, protocol: str) -> str:
    """A protocol's name as a configuration may have it, or the end of the command."""
    import msgspec

    from lookout.config.settings import SEGMENT, Settings

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
    help="NAME in /api/v1/NAME/liveness.",
)


def _check_listen(_context: click.Context, _option: click.Parameter, address: str) -> str:
    """An address to listen on, or the end of the command."""
    from lookout.base.setting_types import is_host_port

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
