"""The commands: they read arguments, call one function and say what came of it."""

import click

import lookout
from lookout.cli.monitor import check_config, monitor, probe
from lookout.cli.replay import replay
from lookout.cli.sim import sim


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lookout.__version__, prog_name="lookout", message="%(prog)s %(version)s")
def main() -> None:
    """Watches the services a privacy wallet depends on and reports, honestly, what it sees."""


for command in (check_config, monitor, probe, replay, sim):
    main.add_command(command)
