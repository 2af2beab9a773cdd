"""``lookout probe``."""

from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lookout.app.process import run
from lookout.base.clock import SystemClock
from lookout.cli.arguments import NOT_FINE, config_option, fail, settings_of
from lookout.config.file import read_config
from lookout.monitor.probe import Probed, probe_once


@click.command(short_help="Probe every source once and show what they answer.")
@config_option
def probe(config: Path) -> None:
    """Probe every source and endpoint once and show what they answer; exit code 1 if any failed."""
    settings = settings_of(config, read_config)
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
