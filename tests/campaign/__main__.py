"""Runs the campaign's parts one after the other, and says what was tried and what failed."""

import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests import fuzz
from tests.campaign import rooms, suite
from tests.campaign.part import Outcome, Part, show_progress
from tests.simulation import lists_by_the_thousand, places_by_the_thousand, worlds
from tests.system import soak

PARTS: dict[str, Part] = {
    "tests": suite.PART,
    "worlds": worlds.PART,
    "lists": lists_by_the_thousand.PART,
    "places": places_by_the_thousand.PART,
    "hostile": fuzz.PART,
    "life": soak.PART,
    "rooms": rooms.PART,
}


def _list_parts() -> str:
    width = max(map(len, PARTS), default=0)
    return "\n".join(f"  {name:{width}}  {part.what} ({part.minutes:g} min)" for name, part in PARTS.items())


@click.command(epilog="\b\nParts:\n" + _list_parts(), context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", metavar="[PART]...", nargs=-1, type=click.Choice(list(PARTS)))
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), help="For each part that can be cut short; its own otherwise."
)
def main(names: tuple[str, ...], minutes: float | None) -> None:
    """Try everything at once that can go wrong, for long: all parts, or those that are named.

    Exit code 1 if anything failed.
    """
    show_progress()
    console = Console(stderr=True)
    asked = names or tuple(PARTS)
    # One after the other, but those that mostly wait beside those that compute.
    lanes = [[name for name in asked if PARTS[name].mostly_waits is leisurely] for leisurely in (False, True)]
    with ThreadPoolExecutor(len(lanes)) as pool:
        done = list(pool.map(lambda lane: [_run(name, minutes, console) for name in lane], lanes))
    table = Table("part", "took", "tried", "", title="The campaign")
    ended = [each for lane in done for each in lane]
    for name, minutes_taken, outcome in ended:
        table.add_row(name, f"{minutes_taken:.1f} min", _count(outcome), _summarize(outcome))
    Console().print(table)
    sys.exit(1 if any(outcome.failures for _, _, outcome in ended) else 0)


def _run(name: str, minutes: float | None, console: Console) -> tuple[str, float, Outcome]:
    part, began = PARTS[name], time.monotonic()
    console.print(f"[bold]{name}[/bold]: {escape(part.what)}")
    try:
        outcome = part.run(60 * (minutes or part.minutes))
    except Exception:  # noqa: BLE001  what the other parts found is printed all the same
        outcome = Outcome({}, (f"it broke off:\n{traceback.format_exc()}",))
    # At once: if you end the campaign early, you have what was found so far.
    console.print(f"[bold]{name}[/bold]: {_summarize(outcome)}; {escape(_count(outcome))}")
    for failure in outcome.failures:
        click.echo(f"\n{name}: {failure}", err=True)
    return name, (time.monotonic() - began) / 60, outcome


def _count(outcome: Outcome) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in outcome.tried.items())


def _summarize(outcome: Outcome) -> str:
    if outcome.failures:
        return f"[bold red]{len(outcome.failures)} failed[/bold red]"
    return f"left out: {escape(outcome.left_out)}" if outcome.left_out else "held"


if __name__ == "__main__":
    main(prog_name="campaign")
