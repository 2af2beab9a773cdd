"""Tries one kind of hostile input: ``python -m tests.fuzz --kind http --seed 5 --cases 1000``."""

import sys

import click

from tests.campaign.part import show_progress
from tests.fuzz.fuzzer import Until, fuzz
from tests.fuzz.kinds import KINDS


@click.command()
@click.option("--kind", type=click.Choice(list(KINDS)), required=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--cases", type=click.IntRange(1), default=1_000, show_default=True)
def main(kind: str, seed: int, cases: int) -> None:
    """Try so many cases; the same seed tries the same. What fails is shrunk and kept in tests/fuzz/corpus/."""
    show_progress()
    tried = fuzz(kind, KINDS[kind], seed, Until(cases=cases))
    click.echo(f"{kind}, seed {seed}: {tried.cases:,} cases, {tried.outcomes:,} outcomes, {len(tried.failures)} failed")
    for failure in tried.failures:
        click.echo(failure)
    sys.exit(1 if tried.failures else 0)


if __name__ == "__main__":
    main()
