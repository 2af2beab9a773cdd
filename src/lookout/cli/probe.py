"""The command that asks every source once."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookout.app.probe import Probed, ProbedChain, ProbedEndpoint, ProbedRow, probe_once
from lookout.app.process import log_crashes_alone, run
from lookout.base.clock import SystemClock
from lookout.cli.arguments import NO_LIMIT, NOT_FINE, config_option, fail, settings_of, show_status
from lookout.config.file import read_config
from lookout.config.settings import Settings
from lookout.core.causes import choose_next_step, code_of, describe_cause
from lookout.core.model import Check, Status

_STYLES: Final[dict[Status, str]] = {"current": "green", "unmonitored": "dim", "unavailable": "red", "degraded": "red"}


@click.command()
@config_option
def probe(config: Path) -> None:
    """Ask every source and endpoint once. Show each row as a monitor that has just started would publish it, and each
    endpoint beside the head.

    Exit code 0 if every row would be current or unmonitored, otherwise 1. A status that takes several probes, such as
    "unavailable", is never shown.
    """
    settings = settings_of(config, read_config)
    with show_status(f"asking, for up to {settings.policy.probe_timeout_s:g} s"), log_crashes_alone():
        probed = run(probe_once(settings, SystemClock()))
    if not probed.chains and all(row.row.status == "unmonitored" for row in probed.rows):
        fail(f"{config}: nothing is configured to be probed; add [[chains]] with rpc, or the table of a service")
    show_probed(probed, settings)
    if not all(row.is_fine for row in probed.rows):
        raise SystemExit(NOT_FINE)


def show_probed(probed: Probed, settings: Settings, *, on_stderr: bool = False) -> None:
    is_terminal = (sys.stderr if on_stderr else sys.stdout).isatty()
    console = Console(stderr=on_stderr, width=None if is_terminal else NO_LIMIT, highlight=False)
    if probed.chains:
        console.print(_tabulate_heads(probed.chains))
        console.print()
    rows = tuple(row for row in probed.rows if settings.page.show_unmonitored or row.row.status != "unmonitored")
    seen = {(part.place, part.check): part.found for part in probed.parts if part.place}
    console.print(_tabulate_rows(rows, seen, {chain.id: chain.name for chain in settings.chains}))
    console.print()
    wrong = sum(not row.is_fine for row in probed.rows)
    console.print(
        f"{wrong} of {len(rows)} rows are not current" if wrong else "every row would be current or unmonitored"
    )
    for part in (part for part in probed.parts if not part.place):
        console.print(Text(f"{part.check.name}: {part.found}", "" if part.can_be_checked else "yellow"))
    of_endpoints = (endpoint.cause for chain in probed.chains for endpoint in chain.endpoints)
    for doubted in (row for row in probed.rows if row.doubts):
        said = "; ".join(map(describe_cause, doubted.doubts))
        console.print(Text(f"{doubted.row.check.name}: {said}", "yellow"))
    of_rows = (cause for row in probed.rows for cause in (row.cause, *row.doubts))
    for line in dict.fromkeys(list_next_steps((*of_endpoints, *of_rows))):
        console.print(line)


def list_next_steps(causes: Iterable[str | None]) -> Iterator[str]:
    """What to do about these causes, by their codes; with their details where a code needs different steps."""
    steps = {cause: step for cause in causes if cause and (step := choose_next_step(cause))}
    by_code: dict[str, set[str]] = {}
    for cause, step in steps.items():
        by_code.setdefault(code_of(cause), set()).add(step)
    names = {cause: code_of(cause) if len(by_code[code_of(cause)]) == 1 else cause for cause in sorted(steps)}
    yield from dict.fromkeys(f"{name}: {steps[cause]}" for cause, name in names.items())


def explain_row(probed: ProbedRow) -> str:
    """The reason, the code of the cause if there is one, and what was found, unless that begins with the reason."""
    if probed.found.startswith(probed.row.reason):
        return probed.found
    codes = f"{probed.row.reason}, {code_of(probed.cause)}" if probed.cause else probed.row.reason
    return ": ".join(filter(None, (codes, probed.found)))


def _explain_endpoint(probed: ProbedEndpoint) -> str:
    return f"{code_of(probed.cause)}: {probed.found}" if probed.cause else probed.found


def _tabulate_heads(chains: tuple[ProbedChain, ...]) -> Table:
    table = _make_table("endpoint", "head")
    for chain in chains:
        table.add_row(Text(chain.name), Text(chain.found, "" if chain.has_head else "red"))
        for endpoint in chain.endpoints:
            explained = Text(_explain_endpoint(endpoint), "green" if endpoint.is_fine else "red")
            table.add_row(Text(f"  {endpoint.name}"), explained, f"{endpoint.took_ms} ms")
    return table


def _tabulate_rows(
    rows: tuple[ProbedRow, ...], seen: Mapping[tuple[str, Check], str], chain_names: dict[int, str]
) -> Table:
    """``seen`` has what other places see, which stands beside the rows."""
    places = dict.fromkeys(place for place, _ in seen)
    table = _make_table("service", "chain", "status", *places, "why")
    for probed in rows:
        check, status = probed.row.check, probed.row.status
        chain = "" if check.chain_id is None else chain_names[check.chain_id]
        took = "" if probed.took_ms is None else f"{probed.took_ms} ms"
        shown = Text(status, _STYLES.get(status, "yellow"))
        beside = (seen.get((place, check), "") for place in places)
        others = (Text(word, "" if word == status else "yellow") for word in beside)
        table.add_row(Text(check.service), Text(chain), shown, *others, Text(explain_row(probed)), took)
    return table


def _make_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    table.add_column("took", justify="right", no_wrap=True)
    return table
