"""``lookout backup`` and ``lookout restore``."""

import signal
from pathlib import Path

import click
from rich.console import Console

from lookout.app.backup import Contents, back_up, name_backup, remove_old_backups
from lookout.app.backup import restore as restore_from
from lookout.app.process import stopping_signals
from lookout.base.clock import SystemClock
from lookout.cli.arguments import config_option, fail, settings_of
from lookout.config.file import read_config
from lookout.store.protocol import StoreError


@click.command()
@config_option
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=1),
    help="OUT is a folder: name the file by the time, then remove all but the newest N of such files.",
)
@click.argument("out", type=click.Path(path_type=Path))
def backup(config: Path, keep: int | None, out: Path) -> None:
    """Copy the store into the new file OUT, also while a monitor and servers are using it.

    The file is the same for every kind of store, and restores into any.
    """
    settings = settings_of(config, read_config)
    _end_cleanly()
    if keep is not None:
        out /= name_backup(SystemClock().now())
    try:
        with Console(stderr=True).status(f"backing up into {out.name}"):
            contents, size = back_up(settings, config.absolute().parent, out)
    except StoreError as error:
        fail(str(error))
    click.echo(f"{out}: {_describe(contents)}; {size:,} bytes")
    if keep is not None:
        try:
            removed = remove_old_backups(out, keep)
        except StoreError as error:
            fail(str(error))
        click.echo("".join(f"removed {path}\n" for path in removed), nl=False)


@click.command()
@config_option
@click.option("--force", is_flag=True, help="Replace what is stored.")
@click.argument("backup", metavar="IN", type=click.Path(path_type=Path))
def restore(config: Path, backup: Path, force: bool) -> None:
    """Replace the content of the store with the backup IN, completely or not at all.

    No monitor may be writing to the store. Servers may be running: they then serve what was restored.
    """
    settings = settings_of(config, read_config)
    _end_cleanly()
    try:
        with Console(stderr=True).status(f"restoring {backup.name}"):
            contents = restore_from(settings, config.absolute().parent, backup, force=force)
    except StoreError as error:
        fail(str(error))
    click.echo(f"restored {backup}: {_describe(contents)}")


def _describe(contents: Contents) -> str:
    rows, from_, to, generated_at = contents
    return f"{rows} rows, the history from {from_} to {to}, a report of {generated_at}"


def _end_cleanly() -> None:
    """Whatever asks for the end is met like Ctrl-C, so that no half file stays behind."""
    for name in stopping_signals():
        signal.signal(name, signal.default_int_handler)
