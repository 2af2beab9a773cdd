"""``lookout check-config``."""

from pathlib import Path

import click

from lookout.cli.arguments import config_option, settings_of
from lookout.contradictions import doubts


@click.command("check-config")
@config_option
def check_config(config: Path) -> None:
    """Say everything that is wrong with a configuration, or "ok"."""
    for doubt in doubts(settings_of(config, judge_targets=True)):
        click.echo(f"lookout: warning: {config}: {doubt}", err=True)
    click.echo("ok")
