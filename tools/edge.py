"""Varnish in front of a server that runs, with the configuration that ``lookout edge-config`` prints; until Ctrl-C."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from lookout.base.url import is_host_port
from lookout.cli.arguments import settings_of
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.config.tables import EdgeTable
from lookout.edge.varnish import OriginError, configuration, origin_of, parameters

# Where `make run` can be tried without being root.
_TRIAL: Final = Settings(edge=EdgeTable(listen="127.0.0.1:8081"))


def _address(_context: click.Context, option: click.Parameter, address: str | None) -> str | None:
    if address is not None and not is_host_port(address):
        raise click.BadParameter(f"{address!r} is not HOST:PORT", param=option)
    return address


@click.command()
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="The configuration file; without it, for a trial."
)
@click.option("--listen", callback=_address, help="Where to listen, instead of edge.listen.")
@click.option("--origin", callback=_address, help="The server to ask, instead of edge.origin.")
@click.option("--memory", default="64m", show_default=True, help="For copies.")
def main(config: Path | None, listen: str | None, origin: str | None, memory: str) -> None:
    """Run Varnish in front of a server, until Ctrl-C."""
    varnishd = shutil.which("varnishd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if varnishd is None:
        raise click.ClickException("there is no varnishd; on Debian: apt-get install varnish varnish-modules")
    settings = _TRIAL if config is None else settings_of(config, read_config)
    edge = replace(settings.edge, listen=listen or settings.edge.listen, origin=origin or settings.edge.origin)
    settings = replace(settings, edge=edge)
    try:
        server = origin_of(settings)
    except OriginError as error:
        raise click.ClickException(str(error)) from None
    with tempfile.TemporaryDirectory(prefix="lookout-edge-") as folder:
        Path(folder).chmod(0o755)  # varnishd gives up root's rights, and reads it then
        vcl = Path(folder, "edge.vcl")
        vcl.write_text(configuration(settings))
        options = {"-n": f"{folder}/varnish", "-a": edge.listen, "-f": str(vcl), "-s": f"malloc,{memory}"}
        command = [varnishd, "-F", *(text for option in options.items() for text in option), *parameters()]
        click.echo(f"http://{edge.listen} in front of http://{server}; Ctrl-C ends it", err=True)
        sys.exit(_run(command))


def _run(command: list[str]) -> int:
    """Run it in a process group of its own, so that it is ended once, in order, and not by the terminal as well."""
    process = subprocess.Popen(command, start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: process.terminate())
    process.wait()
    return 0 if process.returncode in (0, -signal.SIGTERM) else 1


if __name__ == "__main__":
    main()
