"""``lookout coverage``: what indexers have, compared with what their chains have."""

from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from lookout.app.process import run
from lookout.base.clock import SystemClock
from lookout.cli.arguments import NOT_FINE, config_option, fail, settings_of
from lookout.config.file import read_config
from lookout.core.completeness.coverage import Finding
from lookout.core.model import Check
from lookout.monitor.range_check import CheckedRange, Ends, check_ranges

NOT_COMPARED: Final = 3


@click.command()
@config_option
@click.option("--from", "first", type=click.IntRange(0), metavar="N", help="The first block; default: first_block.")
@click.option("--to", "last", type=click.IntRange(0), metavar="N", help="The last block; default: the last final one.")
def coverage(config: Path, first: int | None, last: int | None) -> None:
    """Compare the list of every indexer that has a table `complete` with its chain, now, and print which transactions
    are missing or too many.

    What differs is read twice on both sides. Nothing is stored. Exit code 0 if all of it agreed, 1 if something is
    missing or too many, 3 if something could not be compared.
    """
    settings = settings_of(config, read_config)
    names = {chain.id: chain.name for chain in settings.chains}
    if first is not None and last is not None and first > last:
        fail(f"--from {first} is above --to {last}")
    if not settings.transaction_lists():
        fail(f"{config}: no indexer has a table `complete`, so there is no list to compare; docs/coverage.md says more")
    shown: dict[Check, str] = {}
    with Console(stderr=True).status("reading the heads") as status:

        def report(check: Check, checked: int, blocks: int) -> None:
            shown[check] = f"{_name(check, names)}: {checked} of {blocks} blocks"
            status.update(Text(", ".join(shown.values())))

        ranges = run(check_ranges(settings, SystemClock(), Ends(first, last), report))
    for each in ranges:
        _show(each, names)
    if any(each.differs for each in ranges):
        raise SystemExit(NOT_FINE)
    if not all(each.is_whole for each in ranges):
        raise SystemExit(NOT_COMPARED)


def _show(checked: CheckedRange, names: dict[int, str]) -> None:
    click.echo(f"{_name(checked.check, names)}, blocks {checked.first} to {checked.last}:")
    if not checked.differs and checked.is_whole:
        click.echo("  agrees with the chain")
    _list("missing", checked.missing)
    _list("too many", checked.extra)
    _list("differs, and could not be confirmed; a longer range may help", checked.suspected)
    for each in checked.not_compared:
        click.echo(f"  not compared: blocks {each.first} to {each.last}: {each.why}")
    for cause in checked.causes:
        click.echo(f"  {cause}")


def _list(what: str, findings: tuple[Finding, ...]) -> None:
    if findings:
        click.echo(f"  {what}: {len(findings)}")
    for each in findings:
        click.echo(f"    {each.hash} in blocks {each.first} to {each.last}")


def _name(check: Check, names: dict[int, str]) -> str:
    return check.service if check.chain_id is None else f"{check.service} on {names[check.chain_id]}"
