"""``lookout verify``: any deployment held against the contract."""

import time

import click
import msgspec
from rich.console import Console
from rich.text import Text

from lookout.base.base_url import BaseUrlError, parse_base_url
from lookout.base.clock import SystemClock
from lookout.cli.arguments import NOT_FINE, fail, protocol_option
from lookout.verify.report import show, to_json
from lookout.verify.verdict import find_doubts, verify_visit
from lookout.verify.visit import VisitOptions, visit


@click.command()
@click.argument("url")
@protocol_option
@click.option("--json", "wants_json", is_flag=True, help="Print the findings as JSON.")
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
    help="Watch so much longer whether both documents change: 40 is enough for the live report, 80 for the history.",
)
@click.option(
    "--rate-limit", is_flag=True, help="Also try the rate limit: up to 245 more requests, then a minute of refusals."
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit code 1 also if something was not seen that every healthy deployment shows, or if the monitor looks"
    " stopped.",
)
def verify(  # Click gives each option as a parameter
    url: str, protocol: str, wants_json: bool, timeout_s: float, wait_s: float, rate_limit: bool, strict: bool
) -> None:
    """Compare the deployment at URL (http://host:port) with the contract, clause by clause.

    Each clause passes, fails, or could not be checked, with the reason. At most 40 requests are made on a path. If the
    two documents have different rows, both are requested again for up to 80 seconds, or 4 minutes behind a cache. Exit
    code 1 if a clause failed.
    """
    try:
        base = parse_base_url(url)
    except BaseUrlError as error:
        fail(str(error))
    options = VisitOptions(protocol, timeout_s, wait_s, rate_limit)
    with Console(stderr=True).status(Text(str(base))) as status:
        seen = visit(base, options, SystemClock(), time.sleep, lambda text: status.update(Text(text)))
    findings = verify_visit(seen)
    if wants_json:
        click.echo(msgspec.json.encode(to_json(seen, findings)))
    else:
        show(Console(), seen, findings)
    if any(finding.verdict == "fail" for finding in findings) or (strict and find_doubts(seen, findings)):
        raise SystemExit(NOT_FINE)
