"""One world alone, with all that happened in it."""

import sys
from pathlib import Path

import click
import msgspec

from tests.simulation.worlds.hunt import describe
from tests.simulation.worlds.script import draw, encode_script, read_script
from tests.simulation.worlds.world import live


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--seed", type=int, help="The world of this seed.")
@click.option("--case", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The world in this file.")
def main(seed: int | None, case: Path | None) -> None:
    """Live through one world, and print what happened in it. Exit code 1 if a rule was broken."""
    if (seed is None) == (case is None):
        raise click.UsageError("Give either --seed or --case.")
    try:
        script = draw(seed or 0) if case is None else read_script(case)
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"{case} is not a case: {error}") from None
    click.echo(encode_script(script).decode())
    outcome = live(script)
    click.echo(describe(outcome))
    hours = outcome.simulated_ms / 3_600_000
    click.echo(f"{hours:.2f} simulated hours, {outcome.publications} publications, trace {outcome.trace}")
    sys.exit(1 if outcome.rule else 0)


if __name__ == "__main__":
    main(prog_name="tests.simulation.worlds")
