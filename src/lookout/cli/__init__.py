"""The commands: they read arguments, call one function and print its result."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

import lookout


class _Command(NamedTuple):
    """The module of ``lookout.cli`` that has the command, imported when it is used, and what it does."""

    module: str
    purpose: str


_COMMANDS: Final = {
    "init": _Command("init", "Write a configuration: ask on a terminal, or take options."),
    "demo": _Command("demo", "Show the whole service on a simulated world."),
    "run": _Command("commands", "Monitor and serve together, until stopped."),
    "monitor": _Command("commands", "Probe every source and store what was seen, until stopped."),
    "serve": _Command("commands", "Serve the page and the API from the store, until stopped."),
    "reload": _Command("admin", "Make the running monitor read its configuration again."),
    "recheck": _Command("admin", "Make the running monitor ask a source now."),
    "probe": _Command("probe", "Ask every source once and show the rows this leads to."),
    "coverage": _Command("coverage", "Compare indexers' lists of transactions with their chains."),
    "check-config": _Command("commands", 'List everything wrong with a configuration, or print "ok".'),
    "replay": _Command("record", "Run a recorded observation log through the policy."),
    "sim": _Command("demo", "Run the upstreams of a simulated world, faults on demand."),
    "edge-config": _Command("commands", "Print the configuration of Varnish for these settings."),
    "watch": _Command("watch", "Show a deployment's rows in the terminal, live."),
    "verify": _Command("verify", "Compare a deployment with the contract, clause by clause."),
    "alerts": _Command("alerts", "Send a sample of an alert."),
    "silence": _Command("admin", "Hold back alerts for some time."),
    "note": _Command("admin", "Publish a note beside the measurements."),
    "backup": _Command("record", "Copy the store into a file, while it is in use."),
    "restore": _Command("record", "Replace the store with a backup."),
    "completion": _Command("commands", "Print the completion script of a shell."),
}

_ENVIRONMENT_FILES: Final = "LOOKOUT_ENV_FILE"  # of the environment: with : between several
_INTERRUPTED: Final = 130  # what shells say of a command that SIGINT ended


class _Commands(click.Group):
    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module = import_module(f"lookout.cli.{_COMMANDS[name].module}")
        command = getattr(module, name.replace("-", "_"))
        return command if isinstance(command, click.Command) else None

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of all commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.purpose) for name, command in _COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        """Ctrl-C ends a command without a word; Click would say that it was aborted."""
        try:
            return super().invoke(context)
        except (KeyboardInterrupt, click.Abort):  # the latter at a question
            raise SystemExit(_INTERRUPTED) from None

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands without importing them: a person waits at a prompt."""
        commands = [CompletionItem(name) for name in _COMMANDS if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, context, incomplete)]


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lookout.__version__, prog_name="lookout", message="%(prog)s %(version)s")
@click.option(
    "--env-file",
    "env_files",
    metavar="FILE",
    type=click.Path(path_type=Path, readable=False),  # whether it can be read, its reader says
    multiple=True,
    envvar=_ENVIRONMENT_FILES,
    help="Set the environment variables of a file first, as systemd does for a unit; may be repeated.",
)
@click.pass_context
def main(context: click.Context, env_files: tuple[Path, ...]) -> None:
    """Watches the services a wallet depends on and reports, honestly, what it sees."""
    import_module("lookout.app.process").hide_memory()
    if env_files:
        context.obj = import_module("lookout.cli.arguments").set_variables(env_files)
