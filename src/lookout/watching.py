"""What ``lookout watch`` shows: one update of a reader as a table for a terminal, by the reader's rules."""

from collections.abc import Iterable
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lookout_reader import (
    NOTES,
    History,
    HistoryRow,
    LiveReport,
    Metrics,
    RollUp,
    Row,
    UnreadableRow,
    Update,
    coverage_of,
    effective_status,
    find_row,
    reason_text,
    roll_up,
)
from lookout_reader.status import EffectiveStatus

# Shape, word and colour: none of them has to be told from the others by itself.
_LOOK: Final[dict[EffectiveStatus, tuple[str, str]]] = {
    "current": ("●", "green"),
    "catching-up": ("◆", "yellow"),
    "degraded": ("▲", "dark_orange"),
    "unavailable": ("✖", "red"),
    "stale": ("◌", "bright_black"),
    "unknown": ("?", "bright_black"),
    "unmonitored": ("·", "bright_black"),
}
_CELLS: Final = ((130, 48), (105, 24), (0, 0))  # of a day's strip, by the width that there has to be
_DAY_S: Final = 86_400
# A cell of the strip shows the worst that is known in it; without anything known, unknown before nothing at all.
_CELL: Final = {
    "u": ("✖", "red"),
    "d": ("▲", "dark_orange"),
    "k": ("◆", "yellow"),
    "c": ("▪", "green"),
    "?": ("?", "bright_black"),
    ".": ("·", "bright_black"),
    "-": (" ", "bright_black"),
}
_QUIET_MS: Final = 90_000  # a monitor that lives publishes every 30 s


def screen(update: Update, now: int, address: str, width: int) -> RenderableType:
    """Everything, as it is worth at this instant, which may be later than the update."""
    cells = next(cells for least, cells in _CELLS if width >= least)
    parts: list[RenderableType] = [Text(address, style="bold"), *_head_lines(update, now)]
    if update.report is not None:
        parts.append(_table(update.report, update.history, now, cells))
    parts.append(Text(" ".join(note.text for note in NOTES if note.services is None), style="bright_black"))
    return Group(*parts)


def _head_lines(update: Update, now: int) -> Iterable[Text]:
    report = update.report
    if report is not None:
        yield _overall(roll_up(report, now))
        yield _age(report, now)
    for name, problem in (("report", update.report_problem), ("history", update.history_problem)):
        if problem is not None:
            yield Text(f"The {name} cannot be read: {problem}.", style="yellow")


def _overall(rolled: RollUp) -> Text:
    if rolled.healthy:
        return Text("● Mainnets: everything that is monitored is current.", style="green")
    counted = ", ".join(f"{number} {status}" for status, number in rolled.counts.items() if number)
    return Text(f"{_LOOK[rolled.status][0]} Mainnets: {counted}.", style=_LOOK[rolled.status][1])


def _age(report: LiveReport, now: int) -> Text:
    if report.generated_at is None:
        return Text("The report does not say when it was made.", style="yellow")
    age_ms = now - report.generated_at
    if age_ms > _QUIET_MS:
        return Text(f"Report of {_span(age_ms)} ago: the monitor may have stopped.", style="yellow")
    if age_ms < -_QUIET_MS:
        return Text(f"Report of {_span(-age_ms)} ahead of this machine's clock.", style="yellow")
    return Text(f"Report of {_span(max(0, age_ms))} ago.", style="bright_black")


def _table(report: LiveReport, history: History | None, now: int, cells: int) -> Table:
    table = Table(pad_edge=False, box=None, header_style="bold")
    for column in ("service", "chain", "status", "seen", "", "last 24 hours" if cells else "", "uptime, 24 hours"):
        table.add_column(column, no_wrap=True)
    for row in report.rows:
        effective = effective_status(row, now)
        shape, colour = _LOOK[effective]
        table.add_row(
            row.service or "?",
            "" if row.chain_id is None else str(row.chain_id),
            Text(f"{shape} {effective}", style=colour),
            _seen(row, now),
            _about(row, effective),
            *_past(history, row, cells),
        )
    return table


def _seen(row: Row | UnreadableRow, now: int) -> str:
    if not isinstance(row, Row) or row.observed_at is None:
        return "never"
    return f"{_span(max(0, now - row.observed_at))} ago"


def _about(row: Row | UnreadableRow, effective: EffectiveStatus) -> str:
    if not isinstance(row, Row):
        return row.problem
    if effective == "stale":
        return "No recent reading."
    if effective == "unmonitored":
        return ""
    return _metrics(row.metrics) or reason_text(row.reason) or ""


def _metrics(metrics: Metrics) -> str:
    if metrics.responding is not None and metrics.monitored is not None:
        return f"{metrics.responding} of {metrics.monitored} answer"
    if metrics.peers is not None:
        return f"{metrics.peers} peers"
    if metrics.position is not None and metrics.head is not None:
        lag = metrics.head - metrics.position
        return f"{lag:,} behind {metrics.head:,}" if lag > 0 else f"at {metrics.position:,}"
    return ""


def _past(history: History | None, row: Row | UnreadableRow, cells: int) -> tuple[Text, Text]:
    past = None if history is None or row.service is None else find_row(history, row.service, row.chain_id)
    if history is None or not isinstance(past, HistoryRow):
        return Text("", style="bright_black"), Text("")
    return _strip(past.buckets, history.bucket_seconds, cells), _uptime(history, past)


def _strip(buckets: str, bucket_s: int, cells: int) -> Text:
    """The last day in cells, the newest at the right; the one that is still filling is dim."""
    strip = Text()
    if not cells:
        return strip
    per_cell = max(1, _DAY_S // bucket_s // cells)
    last_day = buckets[-per_cell * cells :].rjust(per_cell * cells, "-")
    for begin in range(0, len(last_day), per_cell):
        cell = last_day[begin : begin + per_cell]
        shape, colour = next((look for character, look in _CELL.items() if character in cell), _CELL["-"])
        is_filling = begin + per_cell >= len(last_day)
        strip.append(shape, style=f"dim {colour}" if is_filling else colour)
    return strip


def _uptime(history: History, past: HistoryRow) -> Text:
    share, coverage = past.uptime.get("24h"), coverage_of(history, past, "24h")
    if share is None:
        return Text("too little known", style="bright_black")
    return Text(f"{share:.2%} of the {coverage.share:.0%} known")


def _span(ms: int) -> str:
    """Rounded down: nothing is told to be older than it is by rounding."""
    seconds = ms // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
