"""The commands: they read arguments, call one function and print its result."""

import gc
import os
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

import lookout


class _Command(NamedTuple):
    """The module of ``lookout.cli`` that has it, and what it does. The module is imported when the command is used:
    neither does the list of all commands need any, nor a server those that probe."""

    module: str
    purpose: str


_COMMANDS: Final = {
    "init": _Command("init", "Write a configuration: ask on a terminal, or take options."),
    "demo": _Command("demo", "Show the whole service on a simulated world."),
    "run": _Command("run", "Monitor and serve together, until stopped."),
    "monitor": _Command("monitor", "Probe every source and store what was seen, until stopped."),
    "serve": _Command("serve", "Serve the page and the API from the store, until stopped."),
    "reload": _Command("reload", "Make the running monitor read its configuration again."),
    "probe": _Command("probe", "Ask every source once and show the rows this leads to."),
    "coverage": _Command("coverage", "Compare indexers' lists of transactions with their chains."),
    "check-config": _Command("check_config", 'List everything wrong with a configuration, or print "ok".'),
    "replay": _Command("replay", "Run a recorded observation log through the policy."),
    "sim": _Command("sim", "Run the upstreams of a simulated world, faults on demand."),
    "edge-config": _Command("edge", "Print the configuration of Varnish for these settings."),
    "watch": _Command("watch", "Show a deployment's rows in the terminal, live."),
    "verify": _Command("verify", "Compare a deployment with the contract, clause by clause."),
    "alerts": _Command("alerts", "Send a sample of an alert."),
    "silence": _Command("notices", "Hold back alerts for some time."),
    "note": _Command("notices", "Publish a note beside the measurements."),
    "backup": _Command("backup", "Copy the store into a file, while it is in use."),
    "restore": _Command("backup", "Replace the store with a backup."),
    "completion": _Command("completion", "Print the completion script of a shell."),
}

_ENVIRONMENT_FILES: Final = "LOOKOUT_ENV_FILE"  # of the environment: with : between several
_INTERRUPTED: Final = 130  # what shells say of a command that SIGINT ended


class _Commands(click.Group):
    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        gc.disable()  # imported modules are never garbage: scanning them meanwhile takes a tenth of the import
        try:
            module = import_module(f"lookout.cli.{_COMMANDS[name].module}")
        finally:
            gc.enable()
        command = getattr(module, name.replace("-", "_"))
        return command if isinstance(command, click.Command) else None

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of all commands, as the library writes it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.purpose) for name, command in _COMMANDS.items()])

    def invoke(self, context: click.Context) -> Any:
        """Ctrl-C ends a command without a word; the library would say that it was aborted."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            raise SystemExit(_INTERRUPTED) from None

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """With what may have been meant, which the library looks for among the commands that have been read."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as unknown:
            near = get_close_matches(args[0], _COMMANDS, n=1)
            if not near:
                raise
            context.fail(f"{unknown.message} Did you mean {near[0]!r}?")

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """Without reading every command's module for its help: somebody waits at a prompt."""
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
def main(env_files: tuple[Path, ...]) -> None:
    """Watches the services a privacy wallet depends on and reports, honestly, what it sees."""
    _keep_standard_files()
    import_module("lookout.base.environment").hide_memory()
    if env_files:
        import_module("lookout.cli.environment").set_variables(env_files)


def _keep_standard_files() -> None:
    """Where one of the three was closed, the next file to be opened would take its number: log lines in a store."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
