"""``lookout replay``: a recorded log run through the policy."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
from lookout.core.plan import Plan
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


@click.command(short_help="Run a recorded observation log through the policy.")
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
def replay(
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
    _check_outputs((log, config, other), live, history)
    plan = settings_of(config).plan()
    replayed, compared = Replay(plan), None if other is None else _comparable(plan, other)
    warnings = _run(log, [each for each in (replayed, compared) if each is not None], until)
    for file, each in ((config, replayed), (other, compared)):
        if each is not None and each.skipped:
            warnings.append(
                f"{each.skipped} lines skipped: {'the configuration' if compared is None else file} does not have their"
                f" check or chain (the first: {each.first_skipped})"
            )
    for warning in warnings:
        click.echo(f"lookout: warning: {log}: {warning}", err=True)
    documents: dict[Path, bytes] = {}
    if live is not None:
        documents[live] = live_document(replayed.ledger.report()).body
    if history is not None:
        documents[history] = history_document(replayed.ledger.view()).body
    write_all(documents)
    if compared is not None:
        comparison = compare(replayed.ledger.view(), compared.ledger.view())
        if as_json:
            click.echo(msgspec.json.format(msgspec.json.encode(comparison), indent=2))
        else:
            show(comparison, f"{config} → {other}", rich.console.Console())


def _check_outputs(read: Iterable[Path | None], live: Path | None, history: Path | None) -> None:
    """End the command if an output would overwrite what is read, or the other output."""
    for output, others in ((live, read), (history, (*read, live))):
        for used in others:
            if output is not None and used is not None and _is_one_file(output, used):
                fail(f"{output} would be overwritten: it is also {'--live' if used is live else 'read from'}")


def _run(log: Path, replays: list[Replay], until_at: int | None) -> list[str]:
    """Run the log through these; its warnings."""
    warnings: list[str] = []
    try:
        with _opened(log) as lines:
            run_log(read_log(lines, warnings), *replays, until_at=until_at)
    except OSError as error:
        fail(f"{log}: {error.strerror}")
    except LogError as error:
        fail(f"{log}: {error}")
    return warnings


def _comparable(plan: Plan, other: Path) -> Replay:
    compared = settings_of(other).plan()
    try:
        check_comparable(plan, compared)
    except ComparisonError as error:
        fail(str(error))
    return Replay(compared)


@contextmanager
def _opened(log: Path) -> Iterator[BinaryIO]:
    """The log for reading, with a progress bar on a terminal where its length is known."""
    if str(log) == "-":
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        opened: BinaryIO = stack.enter_context(log.open("rb"))
        console = rich.console.Console(stderr=True)
        if console.is_terminal and log.is_file():
            size = log.stat().st_size
            opened = stack.enter_context(
                rich.progress.wrap_file(
                    opened, size, description=f"replaying {log.name}", console=console, transient=True
                )
            )
        yield opened


def _is_one_file(one: Path, other: Path) -> bool:
    """Whether writing the one would write the other."""
    try:
        return one.samefile(other) if one.exists() else one.absolute() == other.absolute()
    except OSError:  # one of them is not there, or cannot be looked at: reading or writing it will say so
        return False
