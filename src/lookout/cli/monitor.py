"""``lookout monitor``, ``probe`` and ``check-config``."""

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lookout.cli.arguments import NOT_FINE, config_option, fail, settings_of
from lookout.cli.lasting import run_reloadable
from lookout.clock import SystemClock
from lookout.config.file import read_sending_config
from lookout.monitor.probing import Probed, probe_once
from lookout.wiring.monitor import monitor as run_monitor
from lookout.wiring.process import run


@click.command("check-config")
@config_option
def check_config(config: Path) -> None:
    """Say everything that is wrong with a configuration, or "ok"."""
    for doubt in settings_of(config, read_sending_config).warnings():
        click.echo(f"lookout: warning: {config}: {doubt}", err=True)
    click.echo("ok")


@click.command(short_help="Probe every source and store what was seen, until stopped.")
@config_option
def monitor(config: Path) -> None:
    """Probe every source about every 30 seconds and store what was seen, until stopped."""
    run_reloadable(config, run_monitor)


@click.command(short_help="Probe every source once and show what they answer.")
@config_option
def probe(config: Path) -> None:
    """Probe every source and endpoint once and show what they answer; exit code 1 if any failed."""
    settings = settings_of(config)
    probed = run(probe_once(settings, SystemClock()))
    if not probed:
        fail(f"{config}: nothing is configured to be probed; add [[chains]] with rpc, or the table of a service")
    Console().print(_table(probed))
    if any(each.failed for each in probed):
        raise SystemExit(NOT_FINE)


def _table(probed: list[Probed]) -> Table:
    table = Table("source", "chain", "", "answer", "took")
    for each in probed:
        chain = "" if each.chain_id is None else str(each.chain_id)
        mark = "[red]failed[/]" if each.failed else "[green]ok[/]"
        table.add_row(escape(each.source), chain, mark, escape(each.answer), f"{each.took_ms} ms")
    return table
