"""What ``lookout replay --compare`` shows a person."""

from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lookout.core.buckets import CHARACTERS, NO_DATA
from lookout.core.model import Check
from lookout.replay.comparison import ChangedStretch, ComparedRow, Figure, HistoryComparison

_SHOWN_STRETCHES: Final = 20
_WORDS: Final = {**{character: status for status, character in CHARACTERS.items()}, NO_DATA: "no data"}


def show(comparison: HistoryComparison, title: str, console: Console) -> None:
    """A table of the rows that would change, the first stretches of buckets that do, and a sentence in total."""
    total = comparison.total
    table = Table(
        "check",
        "buckets",
        "uptime 24 h",
        "7 d",
        "14 d",
        title=f"{escape(title)}\n{comparison.since} to {comparison.until}",
    )
    for row in comparison.rows:
        if row.changed or any(figure.was != figure.would_be for figure in row.uptime.values()):
            table.add_row(_name(row), f"{row.changed:,}", *map(_figure, row.uptime.values()))
    table.add_section()
    table.add_row(f"all {total.rows}", f"{total.changed:,}", *map(_figure, total.uptime.values()))
    console.print(table)
    stretches = [(row, stretch) for row in comparison.rows for stretch in row.stretches]
    for row, stretch in stretches[:_SHOWN_STRETCHES]:
        console.print(f"{_name(row)}: {_describe(stretch)}", highlight=False)
    if len(stretches) > _SHOWN_STRETCHES:
        console.print(f"and {len(stretches) - _SHOWN_STRETCHES} more; --json lists them all")
    console.print(
        f"{total.changed:,} of {total.buckets:,} buckets would change, in {total.changed_rows} of {total.rows} rows"
        f"{_changes(total.changes.items())}.",
        highlight=False,
    )
    if comparison.left_out:
        console.print(f"Left out, since only one configuration has them: {', '.join(comparison.left_out)}.")


def _name(row: ComparedRow) -> str:
    return Check(row.service, row.chain_id).name


def _figure(figure: Figure) -> str:
    was, would_be = ("-" if share is None else f"{share:.2%}" for share in (figure.was, figure.would_be))
    return was if figure.was == figure.would_be else f"{was} → {would_be}"


def _describe(stretch: ChangedStretch) -> str:
    buckets = f"{stretch.buckets} bucket{'s' if stretch.buckets > 1 else ''}"
    return f"{stretch.since}, {buckets}: {_WORDS[stretch.was]} → {_WORDS[stretch.would_be]}"


def _changes(counted: Iterable[tuple[str, int]]) -> str:
    changes = [f"{number:,} from {_WORDS[pair[0]]} to {_WORDS[pair[1]]}" for pair, number in counted]
    return f": {', '.join(changes)}" if changes else ""
