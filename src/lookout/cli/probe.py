"""``lookout probe``."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookout.app.process import run
from lookout.base.clock import SystemClock
from lookout.cli.arguments import NOT_FINE, config_option, fail, settings_of
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.core.causes import choose_next_step, code_of
from lookout.core.model import Status
from lookout.monitor.probe import Probed, ProbedChain, ProbedEndpoint, ProbedRow, probe_once

_STYLES: Final[dict[Status, str]] = {"current": "green", "unmonitored": "dim", "unavailable": "red", "degraded": "red"}
_NO_LIMIT: Final = 10_000  # columns where nobody looks: a row stays one line, for grep


@click.command()
@config_option
def probe(config: Path) -> None:
    """Ask every source and endpoint once, compare as the monitor does at its start, and show each row as it would be
    published, and each endpoint beside the head.

    Exit code 0 if every row would be current or unmonitored, otherwise 1. What takes several probes, such as
    "unavailable", is said in words.
    """
    settings = settings_of(config, read_config)
    with Console(stderr=True).status(f"asking, for up to {settings.policy.probe_timeout_s:g} s"):
        probed = run(probe_once(settings, SystemClock()))
    if not probed.chains and all(each.row.status == "unmonitored" for each in probed.rows):
        fail(f"{config}: nothing is configured to be probed; add [[chains]] with rpc, or the table of a service")
    show_probed(probed, settings)
    if not all(each.is_fine for each in probed.rows):
        raise SystemExit(NOT_FINE)


def show_probed(probed: Probed, settings: Settings, *, on_stderr: bool = False) -> None:
    is_terminal = (sys.stderr if on_stderr else sys.stdout).isatty()
    console = Console(stderr=on_stderr, width=None if is_terminal else _NO_LIMIT, highlight=False)
    if probed.chains:
        console.print(_heads(probed.chains))
        console.print()
    console.print(_rows(probed.rows, {chain.id: chain.name for chain in settings.chains}))
    console.print()
    wrong = sum(not each.is_fine for each in probed.rows)
    console.print(
        f"{wrong} of {len(probed.rows)} rows would be neither current nor unmonitored"
        if wrong
        else "every row would be current or unmonitored"
    )
    of_endpoints = (each.cause for chain in probed.chains for each in chain.endpoints)
    of_rows = (each.cause for each in probed.rows)
    laters = (each.later for each in probed.rows if each.later)
    for line in dict.fromkeys((*list_next_steps((*of_endpoints, *of_rows)), *laters)):
        console.print(line)


def list_next_steps(causes: Iterable[str | None]) -> Iterator[str]:
    """What to do about these causes, by their codes; with their details where a code needs different steps."""
    steps = {cause: step for cause in causes if cause and (step := choose_next_step(cause))}
    by_code: dict[str, set[str]] = {}
    for cause, step in steps.items():
        by_code.setdefault(code_of(cause), set()).add(step)
    lines = (f"{code_of(each) if len(by_code[code_of(each)]) == 1 else each}: {steps[each]}" for each in sorted(steps))
    yield from dict.fromkeys(lines)


def explain_row(probed: ProbedRow) -> str:
    """The reason, the code of the cause if there is one, and what was found."""
    codes = f"{probed.row.reason}, {code_of(probed.cause)}" if probed.cause else probed.row.reason
    return ": ".join(filter(None, (codes, probed.found)))


def _explain_endpoint(probed: ProbedEndpoint) -> str:
    return f"{code_of(probed.cause)}: {probed.found}" if probed.cause else probed.found


def _heads(chains: tuple[ProbedChain, ...]) -> Table:
    table = _table("endpoint", "head")
    for chain in chains:
        table.add_row(Text(chain.name), Text(chain.found, "" if chain.has_head else "red"))
        for each in chain.endpoints:
            table.add_row(
                Text(f"  {each.name}"),
                Text(_explain_endpoint(each), "green" if each.is_fine else "red"),
                _ms(each.took_ms),
            )
    return table


def _rows(rows: tuple[ProbedRow, ...], chain_names: dict[int, str]) -> Table:
    table = _table("service", "chain", "status", "why")
    for each in rows:
        row = each.row
        chain = "" if row.check.chain_id is None else chain_names[row.check.chain_id]
        status = Text(row.status, _STYLES.get(row.status, "yellow"))
        table.add_row(Text(row.check.service), Text(chain), status, Text(explain_row(each)), _ms(each.took_ms))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    return table


def _ms(took_ms: int | None) -> str:
    return "" if took_ms is None else f"{took_ms} ms"
