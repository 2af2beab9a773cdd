"""What ``lookout watch`` shows: one update of a reader as a table for a terminal, by the reader's rules.

All that a deployment says is shown as plain text: it may say anything.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

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

# Shape, word and colour: none of them has to be told from the others by itself. The second shape is for ASCII.
_LOOK: Final[dict[EffectiveStatus, tuple[str, str, str]]] = {
    "current": ("●", "*", "green"),
    "catching-up": ("◆", ">", "yellow"),
    "degraded": ("▲", "!", "dark_orange"),
    "unavailable": ("✖", "x", "red"),
    "stale": ("◌", "~", "bright_black"),
    "unknown": ("?", "?", "bright_black"),
    "unmonitored": ("·", "-", "bright_black"),
}
# A cell of the strip shows the worst that is known in it; without anything known, unknown before nothing at all.
_CELL: Final = {
    "u": ("✖", "x", "red"),
    "d": ("▲", "!", "dark_orange"),
    "k": ("◆", ">", "yellow"),
    "c": ("▪", "=", "green"),
    "?": ("?", "?", "bright_black"),
    ".": ("·", "-", "bright_black"),
    "-": (" ", " ", "bright_black"),
}
_DAY_S: Final = 86_400
_QUIET_MS: Final = 150_000  # a monitor that lives publishes every 30 s, and caches add a minute and more
_LONGEST_NAME: Final = 20


class View(NamedTuple):
    """Where it is shown. ``height`` is None where anything may scroll by."""

    width: int
    height: int | None
    is_ascii: bool


class _Columns(NamedTuple):
    """What there is room for beside a check and its status, the most important first."""

    seen: bool
    about: bool
    uptime: bool
    cells: int  # of the last day's strip


_ROOM: Final = (
    (170, _Columns(True, True, True, 48)),
    (146, _Columns(True, True, True, 24)),
    (118, _Columns(True, True, True, 0)),
    (92, _Columns(True, True, False, 0)),
    (64, _Columns(True, False, False, 0)),
    (0, _Columns(False, False, False, 0)),
)


class _Shown(NamedTuple):
    row: Row | UnreadableRow
    effective: EffectiveStatus


def screen(update: Update, now: int, address: str, view: View, waited_ms: float = 0) -> RenderableType:
    """Everything, as it is worth at this instant, ``waited_ms`` after the update."""
    received_ago_ms = (update.received_ago_ms or 0) + waited_ms
    head = [Text(address, style="bold"), *_head_lines(update, now, received_ago_ms, view)]
    head.append(Text(" ".join(note.text for note in NOTES if note.services is None), style="bright_black"))
    if update.report is None:
        return Group(*head)
    rows = [_Shown(row, effective_status(row, now, received_ago_ms)) for row in update.report.rows]
    shown = _fitting(rows, head, view)
    parts: list[RenderableType] = [*head, _table(shown, update.history, now, view)]
    if len(shown) < len(rows):
        parts.append(Text(f"and {len(rows) - len(shown)} more, for which this terminal is too low", style="yellow"))
    return Group(*parts)


def _fitting(rows: Sequence[_Shown], head: Sequence[Text], view: View) -> Sequence[_Shown]:
    """As many rows as there is room for, those that are not current before the others."""
    if view.height is None:
        return rows
    lines = sum(-(-line.cell_len // view.width) for line in head)
    room = max(1, view.height - lines - 2)  # the header, and a line for those that are left out
    return rows if len(rows) <= room else sorted(rows, key=lambda shown: shown.effective == "current")[:room]


def _head_lines(update: Update, now: int, received_ago_ms: float, view: View) -> list[Text]:
    report = update.report
    troubles = [
        f"The {name} cannot be read: {_plain(problem, 200)}."
        for name, problem in (("report", update.report_problem), ("history", update.history_problem))
        if problem is not None
    ]
    lines = []
    if report is not None:
        age = _age(report, now)
        if age is not None:
            troubles.append(age)
        rolled = roll_up(report, now, received_ago_ms=received_ago_ms)
        lines.append(_overall(rolled, view, in_trouble=bool(troubles)))
        if age is None and report.generated_at is not None:
            lines.append(Text(f"Report of {_span(max(0, now - report.generated_at))} ago.", style="bright_black"))
    return [*lines, *(Text(trouble, style="yellow") for trouble in troubles)]


def _overall(rolled: RollUp, view: View, *, in_trouble: bool) -> Text:
    counted = ", ".join(f"{number} {status}" for status, number in rolled.counts.items() if number)
    if not rolled.healthy:
        return Text(f"{_shape(rolled.status, view)} Mainnets: {counted}.", style=_LOOK[rolled.status][2])
    if in_trouble:
        return Text(f"{_shape('unknown', view)} Mainnets: {counted}, when last read.", style="bright_black")
    return Text(f"{_shape('current', view)} Mainnets: everything that is monitored is current.", style="green")


def _age(report: LiveReport, now: int) -> str | None:
    """What is wrong with the age of the report, if anything is."""
    if report.generated_at is None:
        return "The report does not say when it was made."
    age_ms = now - report.generated_at
    if age_ms > _QUIET_MS:
        return f"The report is {_span(age_ms)} old: the monitor may have stopped."
    if age_ms < -_QUIET_MS:
        return f"The report is {_span(-age_ms)} ahead of this machine's clock."
    return None


def _table(rows: Sequence[_Shown], history: History | None, now: int, view: View) -> Table:
    columns = next(columns for least, columns in _ROOM if view.width >= least)
    table = Table(pad_edge=False, box=None, header_style="bold")
    for name, is_there in (
        ("check", True),
        ("status", True),
        ("seen", columns.seen),
        ("", columns.about),
        ("uptime, 24 hours", columns.uptime),
        ("last 24 hours", bool(columns.cells)),
    ):
        if is_there:
            table.add_column(name, no_wrap=True)
    for row, effective in rows:
        past = _past(history, row)
        cells = [_name(row), Text(f"{_shape(effective, view)} {effective}", style=_LOOK[effective][2])]
        if columns.seen:
            cells.append(Text(_seen(row, now)))
        if columns.about:
            cells.append(Text(_about(row, effective)[:38]))
        if columns.uptime:
            cells.append(Text("") if past is None else _uptime(*past))
        if columns.cells:
            cells.append(Text("") if past is None else _strip(*past, columns.cells, view))
        table.add_row(*cells)
    return table


def _name(row: Row | UnreadableRow) -> Text:
    service = _plain(row.service or "?", _LONGEST_NAME)
    return Text(service if row.chain_id is None else f"{service} {row.chain_id}")


def _seen(row: Row | UnreadableRow, now: int) -> str:
    if not isinstance(row, Row) or row.observed_at is None:
        return "never"
    return f"{_span(max(0, now - row.observed_at))} ago"


def _about(row: Row | UnreadableRow, effective: EffectiveStatus) -> str:
    if not isinstance(row, Row):
        return _plain(row.problem, 80)
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


def _past(history: History | None, row: Row | UnreadableRow) -> tuple[History, HistoryRow] | None:
    if history is None or row.service is None:
        return None
    past = find_row(history, row.service, row.chain_id)
    return (history, past) if isinstance(past, HistoryRow) else None


def _strip(history: History, past: HistoryRow, cells: int, view: View) -> Text:
    """The last day in cells, the newest at the right; the one that is still filling is dim."""
    strip = Text()
    per_cell = max(1, _DAY_S // history.bucket_seconds // cells)
    last_day = past.buckets[-per_cell * cells :].rjust(per_cell * cells, "-")
    for begin in range(0, len(last_day), per_cell):
        cell = last_day[begin : begin + per_cell]
        look = next((look for character, look in _CELL.items() if character in cell), _CELL["-"])
        is_filling = begin + per_cell >= len(last_day)
        strip.append(look[view.is_ascii], style=f"dim {look[2]}" if is_filling else look[2])
    return strip


def _uptime(history: History, past: HistoryRow) -> Text:
    share, coverage = past.uptime.get("24h"), coverage_of(history, past, "24h")
    if share is None:
        return Text("too little known", style="bright_black")
    return Text(f"{share:.2%} of the {coverage.share:.0%} known")


def _shape(effective: EffectiveStatus, view: View) -> str:
    return _LOOK[effective][view.is_ascii]


def _plain(text: str, longest: int) -> str:
    """Short, and without anything that a terminal would obey or could not show."""
    shown = "".join(character if " " <= character <= "~" else "?" for character in text)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


def _span(ms: int) -> str:
    """Rounded down: nothing is told to be older than it is by rounding."""
    seconds = ms // 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
