"""What ``lookout watch`` shows: one update of a reader as a table for a terminal, by the reader's rules.

All that a deployment says is shown as plain text: it may say anything.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lookout.base.instants import format_duration
from lookout.base.text import clean
from lookout.public.about import scope_text, time_text
from lookout_reader import (
    About,
    Clocks,
    History,
    HistoryRow,
    Metrics,
    Row,
    UnreadableRow,
    Update,
    effective_status,
    find_row,
    headline_of,
    notes_for,
    overview_of,
)
from lookout_reader.headline import instant_text
from lookout_reader.statuses import BY_WORD, CHARACTERS, KNOWN_STATUSES, NO_DATA, EffectiveStatus

# A cell of the strip shows the worst that is known in it; without anything known, unknown before nothing at all.
_CELL_ORDER: Final = tuple(dict.fromkeys((*KNOWN_STATUSES, *CHARACTERS)))
_DAY_S: Final = 86_400
_LONGEST_NAME: Final = 20
_NOTES_AT_MOST: Final = 5
_LONGEST_REASON: Final = 30
_LONGEST_LINE: Final = 500
_CELLS: Final = 24  # of the last day's strip
# The optional columns, and how wide a terminal has to be for each.
_SEEN, _ABOUT, _STRIP = "seen ago", "", "last 24 hours"
_COLUMNS: Final = {_SEEN: 60, _ABOUT: 80, _STRIP: 105}


class Shown(NamedTuple):
    """What is shown: an update of the reader, of the deployment at an address, and how that describes itself."""

    address: str
    about: About
    update: Update

    def name(self, row: Row | UnreadableRow) -> str:
        return self.name_check(row.service or "?", row.chain_id)

    def name_check(self, service: str, chain_id: int | None) -> str:
        name = clean(service, _LONGEST_NAME)
        return name if chain_id is None else f"{name} {self.chain_name(chain_id)}"

    def chain_name(self, chain_id: int) -> str:
        return clean(self.about.chain_name(chain_id), _LONGEST_NAME)


class _RowNow(NamedTuple):
    row: Row | UnreadableRow
    effective: EffectiveStatus


def draw_screen(shown: Shown, now: int, width: int) -> RenderableType:
    """Everything, as it is worth at this instant."""
    update = shown.update
    clocks = Clocks(now, update.received_ago_ms, update.clock_ahead_ms, update.answered_ago_ms)
    head = [Text(shown.address, style="bold"), *_head_lines(shown, clocks), *_notes(shown, now)]
    notes = notes_for("", places=shown.about.seen_from)
    head.append(Text(" ".join(note.text for note in notes if note.services is None), style="bright_black"))
    if update.report is None:
        return Group(*head)
    found = (_RowNow(row, effective_status(row, clocks)) for row in update.report.rows)
    rows = [row for row in found if shown.about.show_unmonitored or row.effective != "unmonitored"]
    # A terminal may be too low for all: problems come first, and what nobody watches last.
    return Group(*head, _table(sorted(rows, key=_order), shown, now, width))


def _order(row: _RowNow) -> int:
    return {"current": 1, "unmonitored": 2}.get(row.effective, 0)


def _head_lines(shown: Shown, clocks: Clocks) -> list[Text]:
    update = shown.update
    overview = overview_of(
        update.report, clocks, about=shown.about, history=update.history, report_code=update.report_code
    )
    said = headline_of(overview)
    line = Text(f"{_shape(overview.status)} {clean(said.line, _LONGEST_LINE)}.", style=_colour(overview.status))
    problems = {"report": update.report_problem, "history": update.history_problem}
    found = (_describe_problem(document, problem) for document, problem in problems.items() if problem is not None)
    return [
        line,
        *(Text(trouble, style="yellow") for trouble in (*said.doubts, *found, *_places(shown, clocks))),
    ]


def _places(shown: Shown, clocks: Clocks) -> Iterator[str]:
    """What single places see otherwise than all of them together (W8), and which chain stands still."""
    now, report = int(clocks.now), shown.update.report
    for chain in shown.about.chains.values():
        if (since_at := chain.no_block_since_at) is not None:
            yield f"{shown.chain_name(chain.chain_id)}: no new block since {instant_text(since_at, now)}."
    for place in shown.about.places:
        name = clean(place.name, _LONGEST_NAME) or "This monitor"
        if place.silent_since_at is not None:
            yield f"{name}: nothing known from there since {instant_text(place.silent_since_at, now)}."
        for found in place.differs:
            row = find_row(report, found.service, found.chain_id) if report else None
            if not isinstance(row, Row) or effective_status(row, clocks) == "stale":  # of another time
                continue
            what = f"{shown.name_check(found.service, found.chain_id)}: {BY_WORD[found.status].name}"
            views, agreeing = row.metrics.views, row.metrics.agreeing
            agree = f" {agreeing} of {views} places see it as published." if views and agreeing else ""
            yield f"{name} sees {what} since {instant_text(found.since_at, now)}.{agree}"


def _notes(shown: Shown, now: int) -> Iterator[Text]:
    """What the operator says beside what is measured."""
    for note in shown.about.notes_at(now)[:_NOTES_AT_MOST]:
        scope = scope_text(note.services, [*map(shown.chain_name, note.chains)])
        about = clean(f"{scope}, {time_text(note.from_at, note.until_at)}")
        text = clean(note.text, 500)
        yield Text(f"Note: {text} ({about})", style="cyan")


def _describe_problem(document: str, problem: str) -> str:
    return f"The {document} cannot be read: {clean(problem)}."


def _table(rows: Sequence[_RowNow], shown: Shown, now: int, width: int) -> Table:
    columns = [title for title, least in _COLUMNS.items() if width >= least]
    table = Table(pad_edge=False, padding=(0, 1, 0, 0), box=None, header_style="bold")
    for title in ("check", "status", *columns):
        table.add_column(title, no_wrap=True)
    for row, effective in rows:
        past = _past(shown.update.history, row)
        cells = {
            _SEEN: Text(_seen(row, now)),
            _ABOUT: Text(_about(row, effective)),
            _STRIP: Text("") if past is None else _strip(*past),
        }
        status = Text(f"{_shape(effective)} {BY_WORD[effective].name}", style=_colour(effective))
        table.add_row(Text(shown.name(row)), status, *(cells[title] for title in columns))
    return table


def _seen(row: Row | UnreadableRow, now: int) -> str:
    if not isinstance(row, Row) or row.observed_at is None:
        return "never"
    return _span(max(0, now - row.observed_at))


def _about(row: Row | UnreadableRow, effective: EffectiveStatus) -> str:
    if not isinstance(row, Row):
        return "unreadable"
    if effective in ("stale", "unmonitored"):
        return ""
    return _metrics(row.service, row.metrics) or clean(row.reason or "", _LONGEST_REASON)


def _metrics(service: str, metrics: Metrics) -> str:
    if metrics.responding is not None and metrics.monitored is not None:
        return f"{metrics.responding} of {metrics.monitored} {'heard' if service == 'broadcasters' else 'answer'}"
    if metrics.peers is not None:
        return f"{metrics.peers} peers"
    counts = {"missing": metrics.missing, "breaks": metrics.breaks, "extra": metrics.extra, "gap": metrics.gap}
    if any(counts.values()):
        return ", ".join(f"{name}: {number:,}" for name, number in counts.items() if number)
    if metrics.position is not None and metrics.head is not None:
        lag = metrics.head - metrics.position
        return f"{lag:,} behind" if lag > 0 else f"at {metrics.position:,}"
    return ""


def _past(history: History | None, row: Row | UnreadableRow) -> tuple[History, HistoryRow] | None:
    if history is None or row.service is None:
        return None
    past = find_row(history, row.service, row.chain_id)
    return (history, past) if isinstance(past, HistoryRow) else None


def _strip(history: History, past: HistoryRow) -> Text:
    """The last day in cells, the newest at the right; the one that is still filling is dim."""
    strip = Text()
    per_cell = max(1, _DAY_S // history.bucket_seconds // _CELLS)
    last_day = past.buckets[-per_cell * _CELLS :].rjust(per_cell * _CELLS, NO_DATA)
    for begin in range(0, len(last_day), per_cell):
        cell = last_day[begin : begin + per_cell]
        status = next((status for status in _CELL_ORDER if CHARACTERS[status] in cell), None)
        colour = "bright_black" if status is None else _colour(status)
        is_filling = begin + per_cell >= len(last_day)
        strip.append(" " if status is None else _shape(status), style=f"dim {colour}" if is_filling else colour)
    return strip


def _shape(effective: EffectiveStatus) -> str:
    return BY_WORD[effective].look.shape


def _colour(effective: EffectiveStatus) -> str:
    return BY_WORD[effective].look.terminal_colour


def _span(ms: int) -> str:
    """In one unit, and exact below two of it."""
    return format_duration(ms, units=1, least=2)
