"""``lookout replay``: a recorded log run through the policy."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec
import rich.console
import rich.progress

from lookout.base.instants import parse_instant, parse_second
from lookout.cli.arguments import config_option, fail, settings_of
from lookout.cli.comparison import show
from lookout.cli.files import write_all
from lookout.config.file import read_config
from lookout.core.ledger import Ledger
from lookout.documents.reports import history_document, live_document
from lookout.replay.comparison import ComparisonError, check_comparable, compare
from lookout.replay.replay import LogError, Replay, read_log, run_log


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
    help="Show which buckets and uptimes this configuration would have changed.",
)
@click.option("--json", "as_json", is_flag=True, help="Show the whole comparison as JSON.")
def replay(  # Click gives each option as a parameter
    log: Path,
    config: Path,
    until: int | None,
    live: Path | None,
    history: Path | None,
    other: Path | None,
    as_json: bool,
) -> None:
    """Run a recorded observation LOG through the policy and write the documents it leads to.

    The thresholds are those of the configuration, so you can try a log with others than it was recorded with; --compare
    shows what they would have changed. LOG may be - for standard input.
    """
    if live is None and history is None and other is None:
        fail("nothing to do: give --live FILE, --history FILE or --compare FILE")
    if as_json and other is None:
        fail("--json is for --compare")
    configs = [config] if other is None else [config, other]
    _check_outputs((log, *configs), live, history)
    replays = _replays_of(configs)
    _run(log, configs, replays, until)
    _write_documents(replays[0].ledger, live, history)
    if other is not None:
        comparison = compare(*(each.ledger.view() for each in replays))
        if as_json:
            click.echo(msgspec.json.format(msgspec.json.encode(comparison), indent=2))
        else:
            show(comparison, f"{config} → {other}", rich.console.Console())


def _check_outputs(inputs: Iterable[Path], live: Path | None, history: Path | None) -> None:
    """End the command if an output would overwrite what is read, or the other output."""
    for output, others in ((live, inputs), (history, (*inputs, live))):
        for used in others:
            if output is not None and used is not None and _is_one_file(output, used):
                fail(f"{output} would be overwritten: it is also {'--live' if used is live else 'read from'}")


def _replays_of(configs: list[Path]) -> list[Replay]:
    plans = [settings_of(each, read_config).plan() for each in configs]
    try:
        check_comparable(plans[0], plans[-1])
    except ComparisonError as error:
        fail(str(error))
    return [Replay(plan) for plan in plans]


def _run(log: Path, configs: list[Path], replays: list[Replay], until_at: int | None) -> None:
    """Run the log through each of these, and warn of what was left out."""
    warnings: list[str] = []
    try:
        with _open_log(log) as lines:
            run_log(read_log(lines, warnings), *replays, until_at=until_at)
    except OSError as error:
        fail(f"{log}: {error.strerror}")
    except LogError as error:
        fail(f"{log}: {error}")
    for config, each in zip(configs, replays, strict=True):
        if each.skipped:
            whose = "the configuration" if len(configs) == 1 else config
            what = f"{whose} does not have their check or chain (the first: {each.first_skipped})"
            warnings.append(f"{each.skipped} lines skipped: {what}")
    for warning in warnings:
        click.echo(f"lookout: warning: {log}: {warning}", err=True)


def _write_documents(ledger: Ledger, live: Path | None, history: Path | None) -> None:
    documents: dict[Path, bytes] = {}
    if live is not None:
        documents[live] = live_document(ledger.report()).body
    if history is not None:
        documents[history] = history_document(ledger.view()).body
    write_all(documents)


@contextmanager
def _open_log(log: Path) -> Iterator[BinaryIO]:
    """The log for reading, with a progress bar on a terminal where its length is known."""
    if str(log) == "-":
        yield sys.stdin.buffer
        return
    console = rich.console.Console(stderr=True)
    with log.open("rb") as lines:
        if not (console.is_terminal and log.is_file()):
            yield lines
            return
        what, size = f"replaying {log.name}", log.stat().st_size
        with rich.progress.wrap_file(lines, size, description=what, console=console, transient=True) as shown:
            yield shown


def _is_one_file(one: Path, other: Path) -> bool:
    """Whether writing the one would write the other."""
    try:
        return one.samefile(other) if one.exists() else one.absolute() == other.absolute()
    except OSError:  # one of them is not there, or cannot be looked at: reading or writing it will say so
        return False
