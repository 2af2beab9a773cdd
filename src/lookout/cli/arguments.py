"""What the commands share: options, reading the configuration, and how they say that something is wrong."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn, TypeVar

import click
from click.core import ParameterSource

from lookout.config import CONFIG_VARIABLE, DEFAULT_CONFIG

if TYPE_CHECKING:
    from rich.status import Status

    from lookout.config.environment_file import Environment

NOT_FINE: Final = 1
WRONG_USE: Final = 2
NO_LIMIT: Final = 10_000  # columns of a file or a pipe: a row stays one line, for grep

T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., object] | click.Command)


def _find_config(context: click.Context, option: click.Parameter, config: Path) -> Path:
    """The configuration file. A command without one says how to make one."""
    is_default = context.get_parameter_source(option.name or "") is ParameterSource.DEFAULT
    if is_default and not os.path.lexists(config) and not context.resilient_parsing:
        looked = f"-c is not given, {CONFIG_VARIABLE} names none, and there is no {config} in this folder"
        fail(f"there is no configuration: {looked}; begin with lookout init, which writes one")
    return config


config_option = click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path),
    envvar=CONFIG_VARIABLE,
    default=DEFAULT_CONFIG,
    callback=_find_config,
    help=f"The configuration file; if left out, the one that ${CONFIG_VARIABLE} names, or else ./{DEFAULT_CONFIG}.",
)


def settings_of(config: Path, read: Callable[[Path], T]) -> T:
    """The settings in a file, or the end of the command with everything that is wrong with it."""
    from lookout.config.file import ConfigError  # reading takes many modules, and a server starts meanwhile

    try:
        return read(config)
    except ConfigError as error:
        fail(*error.messages)


def set_variables(files: tuple[Path, ...]) -> "Environment":
    """Set the variables of environment files, and return what to read to have them again."""
    from lookout.config.environment_file import Environment
    from lookout.config.file import ConfigError

    environment = Environment(dict(os.environ), files)
    try:
        os.environ.update(environment.read())
    except ConfigError as error:
        fail(*error.messages)
    return environment


def _check_protocol(_context: click.Context, _option: click.Parameter, protocol: str) -> str:
    import msgspec

    from lookout.config.tables import SEGMENT, ServerSettings

    try:
        msgspec.convert({"protocol": protocol}, ServerSettings)
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


def check_address(_context: click.Context, option: click.Parameter, address: str) -> str:
    """An address of the form that the option names, or the option's default."""
    from lookout.base.sockets import is_unix
    from lookout.base.url import is_host_port

    takes_files = option.name == "admin"
    if address != option.default and not is_host_port(address) and not (takes_files and is_unix(address)):
        fail(f"--{option.name}: {address!r} is not HOST:PORT{' or unix:PATH' * takes_files}")
    return address


def listen_option(default: str, text: str) -> Callable[[C], C]:
    return click.option(
        "--listen", default=default, show_default=True, metavar="HOST:PORT", callback=check_address, help=text
    )


def show_status(text: str) -> "Status":
    """Show on a terminal what takes a while."""
    from rich.console import Console
    from rich.text import Text

    return Console(stderr=True).status(Text(text))


@contextmanager
def open_private(path: Path, how: int = os.O_TRUNC) -> Iterator[BinaryIO]:
    """A file to write to, which is for its owner alone if it is new; the end of the command if it cannot be written."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "wb") as file:
            yield file
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def fail(*sentences: str, exit_code: int = click.UsageError.exit_code) -> NoReturn:
    """Say what is wrong and end the command."""
    for sentence in sentences:
        click.echo(f"lookout: {sentence}", err=True)
    raise SystemExit(exit_code)
