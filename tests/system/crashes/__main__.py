"""Tries crash points: all, those of a kind, or a single one, to see a failure again."""

import sys

import click

from tests.campaign.part import show_progress
from tests.system.crashes.kinds import LeftOut, try_points
from tests.system.crashes.points import KINDS
from tests.system.crashes.verdict import Wrong


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--kind", "kinds", type=click.Choice(list(KINDS)), multiple=True, help="All kinds otherwise.")
@click.option("--point", help="A single one, as a failure names it; with one --kind.")
@click.option("--step", type=click.IntRange(1), default=1, help="Every so many points.")
@click.option("--offset", type=click.IntRange(0), default=0, help="The first of them.")
def main(kinds: tuple[str, ...], point: str | None, step: int, offset: int) -> None:
    """Try crash points. Exit code 1 if anything failed."""
    if point is not None:
        if len(kinds) != 1:
            raise click.UsageError("--point needs the --kind that it is of")
        _try_one(kinds[0], point)
        return
    show_progress()
    failures = 0
    for name in kinds or tuple(KINDS):
        try:
            failures += len(try_points(name, KINDS[name], offset, step).failures)
        except LeftOut as why:
            click.echo(f"{name} left out: {why}")
    click.echo(f"{failures} failed")
    sys.exit(1 if failures else 0)


def _try_one(kind: str, point: str) -> None:
    with KINDS[kind].prepare() as (points, attempt):
        if point not in points:
            raise click.UsageError(f"{kind} has no point {point}; its first is {points[0]}, its last {points[-1]}")
        try:
            attempt(point)
        except Wrong as wrong:
            raise click.ClickException(str(wrong)) from None
    click.echo("it held")


if __name__ == "__main__":
    main(prog_name="tests.system.crashes")
