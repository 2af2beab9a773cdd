"""``lookout verify``: any deployment held against the contract."""

import time
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookout.base.clock import SystemClock
from lookout.base.instants import format_instant
from lookout.base.url import BaseUrlError, parse_base_url
from lookout.cli.arguments import NOT_FINE, fail, protocol_option, show_status
from lookout.verify.clauses import SHOWN, VERDICTS, find_doubts, verify_visit
from lookout.verify.documents import Remark
from lookout.verify.visit import VisitOptions, visit

_COLOURS: Final = {"pass": "green", "fail": "bold red", "could not tell": "yellow", "not seen": "dim"}


@click.command()
@click.argument("url")
@protocol_option
@click.option("--json", "wants_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--all", "wants_all", is_flag=True, help="List every clause, not only what is wrong.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(0.1, 60),
    default=5,
    show_default=True,
    metavar="SECONDS",
    help="How long a request may take.",
)
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 3600),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="Keep watching this long to see both documents change: 40 is enough for the live report, 80 for the history.",
)
@click.option(
    "--rate-limit", is_flag=True, help="Also try the rate limit: up to 245 more requests, then a minute of refusals."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 1 also if something that every healthy deployment shows was not seen, or if the monitor seems to"
    " have stopped.",
)
def verify(  # Click gives each option as a parameter
    url: str,
    protocol: str,
    wants_json: bool,
    wants_all: bool,
    timeout_s: float,
    wait_s: float,
    rate_limit: bool,
    strict: bool,
) -> None:
    """Compare the deployment at URL (http://host:port) with the contract, clause by clause.

    Prints the clauses that fail, with what was seen, and how many pass. A clause is "not seen" if none of the answers
    could have broken it. At most 40 requests are made on a path. Exit code 1 if a clause failed.
    """
    try:
        base = parse_base_url(url)
    except BaseUrlError as error:
        fail(str(error))
    options = VisitOptions(protocol, timeout_s, wait_s, rate_limit)
    with show_status(f"asking {base}"):
        seen = visit(base, options, SystemClock(), time.sleep)
    findings = verify_visit(seen)
    doubts = find_doubts(seen, findings)
    summary = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}
    if wants_json:
        report = {
            "url": str(base),
            "protocol": protocol,
            "at": format_instant(seen.at),
            "findings": [finding._asdict() for finding in findings],
            "summary": summary,
            "doubts": [finding.clause for finding in doubts],
        }
        click.echo(msgspec.json.encode(report))
    else:
        _show(findings, doubts, wants_all=wants_all)
        rest = f"{summary['pass']} pass, {summary['could not tell']} undecided, {summary['not seen']} not seen"
        click.echo(
            f"Of {len(findings)} clauses {summary['fail']} fail, {rest}{'' if wants_all else ' (--all lists them)'}"
        )
        unseen = (finding.clause for finding in findings if finding.verdict == "not seen" and finding.clause in SHOWN)
        click.echo(f"Not seen here, though another visit may show them: {', '.join(unseen)}")
    if summary["fail"] or (strict and doubts):
        raise SystemExit(NOT_FINE)


def _show(findings: list[Remark], doubts: list[Remark], *, wants_all: bool) -> None:
    """What fails, or else what a healthy deployment shows and this one did not."""
    console = Console()
    failures = [finding for finding in findings if finding.verdict == "fail"]
    table = Table("clause", "verdict", "what was seen")
    for clause, verdict, what in findings if wants_all else failures or doubts:
        table.add_row(clause, Text(verdict, _COLOURS[verdict]), Text(what))
    if table.row_count:
        console.print(table)
    if doubts and not failures:
        ids = ", ".join(finding.clause for finding in doubts)
        console.print(f"A healthy deployment shows these, and this one did not: {ids}", highlight=False)
