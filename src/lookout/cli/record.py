"""The commands on what was recorded: backup and restore of the store, and replay of an observation log."""

import signal
from pathlib import Path
from typing import Any

import click

from lookout.app.backup import Contents, back_up, name_backup, remove_old_backups
from lookout.app.backup import restore as restore_from
from lookout.app.process import stopping_signals
from lookout.base.clock import SystemClock
from lookout.base.instants import parse_instant, parse_second
from lookout.cli.arguments import config_option, fail, open_private, settings_of, show_status
from lookout.config.file import read_config
from lookout.config.settings import Settings, around_of
from lookout.documents.reports import history_document, live_document
from lookout.features.feature import Rehearsal
from lookout.features.registry import FEATURES
from lookout.replay.comparison import compare
from lookout.replay.replay import LogError, Replay, read_log, run_log
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
        with show_status(f"backing up into {out.name}"):
            contents, size = back_up(settings, config.absolute().parent, out)
        click.echo(f"{out}: {_describe_contents(contents)}; {size:,} bytes")
        for removed in remove_old_backups(out, keep) if keep is not None else ():
            click.echo(f"removed {removed}")
    except StoreError as error:
        fail(str(error))


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
        with show_status(f"restoring {backup.name}"):
            contents = restore_from(settings, config.absolute().parent, backup, force=force)
    except StoreError as error:
        fail(str(error))
    click.echo(f"restored {backup}: {_describe_contents(contents)}")


def _describe_contents(contents: Contents) -> str:
    rows, from_, to, generated_at = contents
    return f"{rows} rows, the history from {from_} to {to}, a report of {generated_at}"


def _end_cleanly() -> None:
    """Treat every signal to stop like Ctrl-C, so that no half-written file stays behind."""
    for name in stopping_signals():
        signal.signal(name, signal.default_int_handler)


class _Instant(click.ParamType[int]):
    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return parse_second(value) if len(value) == len("2026-11-01T00:00:00Z") else parse_instant(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.argument("log", type=click.Path(allow_dash=True, path_type=Path))
@config_option
@click.option("--until", type=_Instant(), help="Stop at this instant (UTC); default: the end of the log.")
@click.option("--live", type=click.Path(path_type=Path), help="Write the live report here.")
@click.option("--history", type=click.Path(path_type=Path), help="Write the history here.")
@click.option(
    "--compare",
    "other",
    metavar="OTHER",
    type=click.Path(path_type=Path),
    help="Show which buckets, uptimes and alerts this configuration would have changed.",
)
def replay(
    log: Path, config: Path, until: int | None, live: Path | None, history: Path | None, other: Path | None
) -> None:
    """Run a recorded observation LOG through the rules and write the resulting documents.

    The thresholds are taken from the configuration, so you can try other thresholds on a log; --compare shows what
    they would have changed. LOG may be - for standard input.
    """
    if live is None and history is None and other is None:
        fail("nothing to do: give --live FILE, --history FILE or --compare FILE")
    configs = [config] if other is None else [config, other]
    inputs = {path.resolve() for path in (log, *configs)}
    for output in (live, history):
        if output is not None and output.resolve() in inputs:
            fail(f"{output} would be overwritten: it is also read from")
    replays = _replays_of(configs, with_messages=other is not None)
    _run(log, configs, replays, until)
    ledger = replays[0].ledger
    documents = (live, live_document(ledger.report())), (history, history_document(ledger.view()))
    for path, document in documents:
        if path is not None:
            with open_private(path) as file:
                file.write(document.body)
    if other is not None:
        was, would_be = replays
        if was.has_views or would_be.has_views:
            click.echo("our own observations are judged again; what the witnesses saw stays as it was recorded")
        for line in compare(was.ledger.view(), would_be.ledger.view(), was.messages, would_be.messages):
            click.echo(line)


def _replays_of(configs: list[Path], *, with_messages: bool) -> list[Replay]:
    settings = [settings_of(config, read_config) for config in configs]
    plans = [config.plan() for config in settings]
    if plans[0].span.bucket_ms != plans[-1].span.bucket_ms:
        fail("history.bucket_s differs: buckets of different lengths cannot be compared")
    rehearsals = [_rehearse(config, with_messages=with_messages) for config in settings]
    return [Replay(plan, of) for plan, of in zip(plans, rehearsals, strict=True)]


def _rehearse(settings: Settings, *, with_messages: bool) -> list[Rehearsal]:
    rehearsals = (feature.rehearse(settings.table_of(feature), around_of(settings)) for feature in FEATURES)
    return [
        rehearsal
        for rehearsal in rehearsals
        if rehearsal is not None and (with_messages or rehearsal.combine is not None)
    ]


def _run(log: Path, configs: list[Path], replays: list[Replay], until_at: int | None) -> None:
    """Run the log through all replays, and warn of the lines that were left out."""
    warnings: list[str] = []
    try:
        with click.open_file(str(log), "rb") as lines, show_status(f"replaying {log.name}"):
            run_log(read_log(lines, warnings), *replays, until_at=until_at)
    except OSError as error:
        fail(f"{log}: {error.strerror}")
    except LogError as error:
        fail(f"{log}: {error}")
    for config, replay in zip(configs, replays, strict=True):
        if replay.skipped:
            whose = "the configuration" if len(configs) == 1 else config
            what = f"{whose} does not have their check or chain (the first: {replay.first_skipped})"
            warnings.append(f"{replay.skipped} lines skipped: {what}")
    for warning in warnings:
        click.echo(f"lookout: warning: {log}: {warning}", err=True)
