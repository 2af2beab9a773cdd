"""The commands that run a process (run, monitor, serve), and the ones that only print.

Each imports what it needs when it is called: a server starts without what a monitor imports.
"""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lookout.cli.arguments import check_address, config_option, fail, settings_of

if TYPE_CHECKING:
    from lookout.app.reloader import Reloader

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@config_option
def run(config: Path) -> None:
    """Monitor and serve together, until stopped."""
    from lookout.app.monitor import CannotServeError, monitor_and_serve

    if config.exists() and not config.is_file():
        fail(f"{config}: is not a file, and run reads it several times; start lookout monitor and lookout serve")
    try:
        _run_reloadable(config, monitor_and_serve)
    except CannotServeError as error:
        fail(*filter(None, [str(error)]))


@click.command()
@config_option
def monitor(config: Path) -> None:
    """Probe every source about every 30 seconds and store what was seen, until stopped."""
    from lookout.app.monitor import monitor as run_monitor

    _run_reloadable(config, run_monitor)


def _run_reloadable(config: Path, work: "Callable[[Reloader], Coroutine[Any, Any, None]]") -> None:
    from lookout.app.process import block_sighup, configure_log, log_warnings, run_until_stopped
    from lookout.app.reloader import Reloader
    from lookout.base.clock import SystemClock
    from lookout.base.sockets import ListenError
    from lookout.config.environment_file import Environment
    from lookout.config.file import read_sending_config
    from lookout.state.errors import StateError
    from lookout.store.protocol import StoreError

    block_sighup()
    settings = settings_of(config, read_sending_config)
    configure_log(settings.log)
    log_warnings(settings)
    environment = click.get_current_context().obj or Environment(dict(os.environ))
    reloader = Reloader(config.absolute(), settings, SystemClock(), environment)
    try:
        run_until_stopped(work(reloader), reloader.request)
    except (ListenError, StateError, StoreError) as error:
        fail(str(error))


@click.command()
@config_option
@click.option(
    "--listen", default="", metavar="HOST:PORT", callback=check_address, help="In place of server.listen in the file."
)
@click.option(
    "--admin", default="", metavar="ADDRESS", callback=check_address, help="In place of admin.server in the file."
)
@click.option("--beside-monitor", is_flag=True, hidden=True, help="End when the standard input is closed.")
def serve(config: Path, listen: str, admin: str, beside_monitor: bool) -> None:
    """Answer with what the monitor stored, until stopped."""
    import gc

    gc.disable()  # while modules are imported, which are never garbage
    from lookout.app.process import configure_log, end_with_parent, log_warnings
    from lookout.app.server import run_server
    from lookout.base.sockets import ListenError
    from lookout.config.file import read_server_config
    from lookout.store.protocol import StoreError

    gc.enable()
    if beside_monitor:
        end_with_parent()
    settings = settings_of(config, read_server_config).listen_on(listen, admin)
    configure_log(settings.log)
    if not beside_monitor:  # which has logged them
        log_warnings(settings)
    try:
        run_server(settings, config.absolute().parent)
    except (ListenError, StoreError) as error:
        fail(str(error))


@click.command("check-config")
@config_option
def check_config(config: Path) -> None:
    """List everything wrong with a configuration, or print "ok"."""
    from lookout.config.file import read_sending_config
    from lookout.features.registry import FEATURES

    settings = settings_of(config, read_sending_config)
    warnings = [str(warning) for warning in settings.warnings()]
    if not settings.ping.url and not any(feature.reaches_people(settings.table_of(feature)) for feature in FEATURES):
        warnings.append("alerts.targets: there is none, and no ping.url: no one is alerted of a failure")
    for warning in warnings:
        click.echo(f"lookout: warning: {config}: {warning}", err=True)
    click.echo("ok")


@click.command("edge-config")
@config_option
@click.option("--parameters", "wants_parameters", is_flag=True, help="Print the options that varnishd needs with it.")
def edge_config(config: Path, wants_parameters: bool) -> None:
    """Print the configuration of Varnish for these settings."""
    from lookout.config.file import read_config
    from lookout.edge.varnish import OriginError, configuration, parameters

    settings = settings_of(config, read_config)
    try:
        click.echo(" ".join(parameters()) + "\n" if wants_parameters else configuration(settings), nl=False)
    except OriginError as error:
        fail(f"{config}: {error}")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which a shell completes commands, options and file names."""
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    if complete is not None:
        click.echo(complete(context.find_root().command, {}, "lookout", "_LOOKOUT_COMPLETE").source())
