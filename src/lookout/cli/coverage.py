"""The command that compares indexers' lists with their chains once (S17)."""

from pathlib import Path
from typing import Final

import click

from lookout.app.probe import asking_once
from lookout.app.process import log_crashes_alone, run
from lookout.base.clock import SystemClock
from lookout.cli.arguments import NOT_FINE, config_option, fail, settings_of, show_status
from lookout.config.file import read_config
from lookout.config.settings import Settings, upstreams_of
from lookout.core.causes import describe_cause
from lookout.core.model import Check
from lookout.features.lists.range_check import CheckedRange, check_ranges
from lookout.features.lists.readers import choose_lists
from lookout.features.lists.rules.coverage import Finding, split_confirmed, suspected_of
from lookout.protocols.client.failure import OwnFault
from lookout.protocols.lists import ListTable

_NOT_COMPARED: Final = 3


@click.command()
@config_option
@click.option("--from", "first", type=click.IntRange(0), metavar="N", help="The first block; default: first_block.")
@click.option(
    "--to",
    "last",
    type=click.IntRange(0),
    metavar="N",
    help="The last block; default: the last final one that the indexer has.",
)
def coverage(config: Path, first: int | None, last: int | None) -> None:
    """Compare the list of every indexer that has a table `complete` with its chain now, and print which transactions
    are missing or too many.

    What differs is read twice on both sides. Nothing is stored. Exit code 0 if everything agreed, 1 if something is
    missing or too many, 3 if something could not be compared.
    """
    settings = settings_of(config, read_config)
    names = {chain.id: chain.name for chain in settings.chains}
    if first is not None and last is not None and first > last:
        fail(f"--from {first} is above --to {last}")
    if not choose_lists(settings.sources_by_check(), ListTable.transaction_list):
        fail(f"{config}: no indexer has a table `complete`, so there is no list to compare (docs/operations.md)")
    with show_status("comparing"), log_crashes_alone():
        try:
            ranges = run(_compare(settings, first, last))
        except OwnFault as fault:
            fail(describe_cause(fault.reason), exit_code=_NOT_COMPARED)
    for checked in ranges:
        _show_range(checked, names)
    if any(checked.differs for checked in ranges):
        raise SystemExit(NOT_FINE)
    if not all(checked.is_whole for checked in ranges):
        raise SystemExit(_NOT_COMPARED)


async def _compare(settings: Settings, first: int | None, last: int | None) -> list[CheckedRange]:
    endpoints_alone = upstreams_of(settings)._replace(sources=())
    async with asking_once(settings, SystemClock(), endpoints_alone) as (_, probing):
        return await check_ranges(probing, first, last)


def _show_range(checked: CheckedRange, names: dict[int, str]) -> None:
    click.echo(f"{_name(checked.check, names)}, blocks {checked.first} to {checked.last}:")
    if not checked.differs and checked.is_whole:
        click.echo("  agrees with the chain")
    missing, extra = split_confirmed(checked.coverage)
    _list_findings("missing", missing)
    _list_findings("too many", extra)
    _list_findings("differs, and could not be confirmed; a longer range may help", suspected_of(checked.coverage))
    for part in checked.not_compared:
        click.echo(f"  not compared: {part}")
    if checked.coverage.unusable:
        click.echo(f"  the list cannot be used: {checked.coverage.unusable}")
    for cause in () if checked.is_whole else checked.causes:
        click.echo(f"  {cause}")


def _list_findings(what: str, findings: list[Finding]) -> None:
    if findings:
        click.echo(f"  {what}: {sum(abs(finding.shortfall) for finding in findings)}")
    for finding in findings:
        to_last = f" to {finding.last}" if finding.last > finding.first else ""
        click.echo(f"    {finding.hash} in block {finding.first}{to_last}")


def _name(check: Check, names: dict[int, str]) -> str:
    return check.service if check.chain_id is None else f"{check.service} on {names[check.chain_id]}"
