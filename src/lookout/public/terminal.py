"""What ``lookout watch`` shows: one update of a reader as a table for a terminal, by the reader's rules.

All that a deployment says is shown as plain text: it may say anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lookout.base.instants import format_duration, format_time
from lookout.base.text import can_be_shown, make_plain, shorten
from lookout.core.causes import STANDS_AFTER_MS
from lookout.public.about import scope_text, time_text
from lookout_reader import (
    NOTES,
    About,
    Headline,
    History,
    HistoryRow,
    LiveReport,
    Metrics,
    Row,
    UnreadableRow,
    Update,
    coverage_of,
    effective_status,
    find_row,
    headline_of,
    rows_by_check,
    wrong_clock,
)
from lookout_reader.document import Check
from lookout_reader.statuses import BY_WORD, CHARACTERS, KNOWN_STATUSES, NO_DATA, EffectiveStatus

# A cell of the strip shows the worst that is known in it; without anything known, unknown before nothing at all.
_CELL_ORDER: Final = tuple(dict.fromkeys((*KNOWN_STATUSES, *CHARACTERS)))
_DAY_S: Final = 86_400
# As on the page: a monitor that lives publishes every 30 s, and caches and asking add more than a minute.
_QUIET_MS: Final = 150_000
_LONGEST_NAME: Final = 20
_NAMED_AT_MOST: Final = 3
_NOTES_AT_MOST: Final = 5
_LONGEST_REASON: Final = 30
_STATUS_WIDTH: Final = 18
_ABOUT_LEAST: Final = 14
_CELLS: Final = 24  # of the last day's strip
# The optional columns and the room that each takes, the most important first: as many as fit are shown.
_SEEN, _ABOUT, _UPTIME, _STRIP = "seen ago", "", "uptime, 24 hours", "last 24 hours"
_COLUMNS: Final = ((_SEEN, 9), (_ABOUT, _ABOUT_LEAST + 1), (_UPTIME, 19), (_STRIP, _CELLS + 1))

ChainNames = Mapping[int, str]


class View(NamedTuple):
    width: int
    is_ascii: bool


Standing = Mapping[Check, tuple[int, int]]
"""The positions of rows that are behind, and since when each is that one, as far as this reader saw."""
_NO_STANDING: Final[Standing] = {}


def follow_positions(standing: Standing, update: Update) -> Standing:
    """The same after an update."""
    followed: dict[Check, tuple[int, int]] = {}
    rows = () if update.report is None else update.report.rows
    for row in (each for each in rows if isinstance(each, Row) and each.reason == "behind"):
        if row.metrics.position is not None and row.observed_at is not None:
            check = row.service, row.chain_id
            position, since_at = standing.get(check, (None, 0))
            has_moved = row.metrics.position != position
            followed[check] = row.metrics.position, row.observed_at if has_moved else since_at
    return followed


class Shown(NamedTuple):
    """What is shown: an update of the reader, of the deployment at an address, and how that describes itself."""

    address: str
    about: About
    update: Update
    standing: Standing = _NO_STANDING

    def chain_ids(self) -> set[int | None]:
        """Those that either document has rows of."""
        report, history = self.update.report, self.update.history
        checks = [*(rows_by_check(report) if report else ()), *(rows_by_check(history) if history else ())]
        return {chain_id for _, chain_id in checks}

    def chain_names(self) -> dict[int, str]:
        ids = {*self.about.chains, *self.chain_ids()} - {None}
        return {
            chain_id: make_plain(self.about.chain_name(chain_id), _LONGEST_NAME)
            for chain_id in ids
            if chain_id is not None
        }


class _RowNow(NamedTuple):
    row: Row | UnreadableRow
    effective: EffectiveStatus


def draw_screen(shown: Shown, now: int, view: View, waited_ms: float = 0) -> RenderableType:
    """Everything, as it is worth at this instant, ``waited_ms`` after the update."""
    update = shown.update
    received_ago_ms = (update.received_ago_ms or 0) + waited_ms
    head = [
        Text(shown.address, style="bold"),
        *_head_lines(shown, now, received_ago_ms, view),
        *_notes(shown, now, view),
    ]
    head.append(Text(" ".join(note.text for note in NOTES if note.services is None), style="bright_black"))
    if update.report is None:
        return Group(*head)
    found = (
        _RowNow(row, effective_status(row, now, received_ago_ms, update.clock_ahead_ms)) for row in update.report.rows
    )
    rows = [row for row in found if shown.about.show_unmonitored or row.effective != "unmonitored"]
    # A terminal may be too low for all: problems come first, and what nobody watches last.
    return Group(*head, _table(sorted(rows, key=_order), shown, now, view))


def _order(row: _RowNow) -> int:
    return {"current": 1, "unmonitored": 2}.get(row.effective, 0)


def _head_lines(shown: Shown, now: int, received_ago_ms: float, view: View) -> list[Text]:
    update, about = shown.update, shown.about
    report = update.report
    troubles = [] if update.report_problem is None else [_describe_problem("report", update.report_problem)]
    lines: list[Text] = []
    if report is not None:
        age = _age(report, now, received_ago_ms)
        if age is not None:
            troubles.append(age)
        if wrong_clock(update.clock_ahead_ms) == "behind":
            troubles.append("This machine's clock is behind the server's: by it nothing can be known.")
        if report.unreadable_rows:
            troubles.append(f"Rows of the report that cannot be read: {report.unreadable_rows:,}.")
        headline = headline_of(
            report,
            now,
            received_ago_ms,
            update.clock_ahead_ms,
            chains=about.counted_chains(shown.chain_ids()),
            test_networks=about.test_networks,
            in_doubt=bool(troubles),
            show_unmonitored=about.show_unmonitored,
        )
        lines += _headline_lines(headline, shown.chain_names(), view)
        if age is None and report.generated_at is not None:
            age_ms = _age_ms(report.generated_at, now, received_ago_ms)
            lines.append(Text(f"Report of {_span(max(0, age_ms))} ago.", style="bright_black"))
    if update.history_problem is not None:
        troubles.append(_describe_problem("history", update.history_problem))
    return [*lines, *(Text(trouble, style="yellow") for trouble in troubles)]


def _notes(shown: Shown, now: int, view: View) -> Iterator[Text]:
    """What the operator says beside what is measured."""
    notes, names = shown.about.notes_at(now), shown.chain_names()
    for note in notes[:_NOTES_AT_MOST]:
        chains = [names.get(chain_id, str(chain_id)) for chain_id in note.chains]
        about = make_plain(f"{scope_text(note.services, chains)}, {time_text(note.from_at, note.until_at)}", 200)
        text = make_plain(note.text, 500) if view.is_ascii else shorten("".join(filter(can_be_shown, note.text)), 500)
        yield Text(f"Note: {text} ({about})", style="cyan")


def _describe_problem(document: str, problem: str) -> str:
    return f"The {document} cannot be read: {make_plain(problem, 200)}."


def _headline_lines(headline: Headline, names: ChainNames, view: View) -> Iterator[Text]:
    """The head line, in the words of the page's, and which checks it is about."""
    yield Text(f"{_shape(headline.status, view)} {headline.text}.", style=_colour(headline.status))
    if headline.checks and headline.checks[0].effective not in ("current", "unmonitored"):
        named = [_name((check.service, check.chain_id), names) for check in headline.checks[:_NAMED_AT_MOST]]
        more = len(headline.checks) - len(named)
        yield Text(", ".join(named) + (f" and {more} more" if more else ""), style="bright_black")


def _age(report: LiveReport, now: int, received_ago_ms: float) -> str | None:
    """What is wrong with the age of the report, if anything is."""
    if report.generated_at is None:
        return "The report does not say when it was made."
    age_ms = _age_ms(report.generated_at, now, received_ago_ms)
    if age_ms > _QUIET_MS:
        return f"The report is {_span(age_ms)} old: the monitor may have stopped."
    if age_ms < -_QUIET_MS:
        return f"The report is {_span(-age_ms)} ahead of this machine's clock."
    return None


def _age_ms(generated_at: int, now: int, received_ago_ms: float) -> int:
    """By the clock, and no less than the report has been here; negative by a clock that is plainly behind."""
    age_ms = now - generated_at
    return age_ms if age_ms < -_QUIET_MS else max(age_ms, int(received_ago_ms))


def _table(rows: Sequence[_RowNow], shown: Shown, now: int, view: View) -> Table:
    chain_names = shown.chain_names()
    names = [_name((row.service or "?", row.chain_id), chain_names) for row, _ in rows]
    room = view.width - max(map(len, names), default=0) - _STATUS_WIDTH
    columns = []
    for title, width in _COLUMNS:
        if width > room:
            break
        columns.append(title)
        room -= width
    table = Table(pad_edge=False, padding=(0, 1, 0, 0), box=None, header_style="bold")
    for title in ("check", "status", *columns):
        most = room + _ABOUT_LEAST if title == _ABOUT else None
        table.add_column(title, no_wrap=True, overflow="crop" if view.is_ascii else "ellipsis", max_width=most)
    for name, (row, effective) in zip(names, rows, strict=True):
        past = _past(shown.update.history, row)
        cells = {
            _SEEN: Text(_seen(row, now)),
            _ABOUT: Text(_about(row, effective, shown.standing, now)),
            _UPTIME: Text("") if past is None else _uptime(*past),
            _STRIP: Text("") if past is None else _strip(*past, view),
        }
        status = Text(f"{_shape(effective, view)} {BY_WORD[effective].name}", style=_colour(effective))
        table.add_row(Text(name), status, *(cells[title] for title in columns))
    return table


def _name(check: Check, names: ChainNames) -> str:
    service, chain_id = make_plain(check[0], _LONGEST_NAME), check[1]
    return service if chain_id is None else f"{service} {names.get(chain_id, chain_id)}"


def _seen(row: Row | UnreadableRow, now: int) -> str:
    if not isinstance(row, Row) or row.observed_at is None:
        return "never"
    return _span(max(0, now - row.observed_at))


def _about(row: Row | UnreadableRow, effective: EffectiveStatus, standing: Standing, now: int) -> str:
    if not isinstance(row, Row):
        return "unreadable"
    if effective in ("stale", "unmonitored"):
        return ""
    observed_at = row.observed_at or 0
    _, since_at = standing.get((row.service, row.chain_id), (0, observed_at))
    if row.reason == "behind" and observed_at - since_at >= STANDS_AFTER_MS:
        return f"{_metrics(row.service, row.metrics)}, not moving since {format_time(since_at, now)}"
    return _metrics(row.service, row.metrics) or make_plain(row.reason or "", _LONGEST_REASON)


def _metrics(service: str, metrics: Metrics) -> str:
    if metrics.responding is not None and metrics.monitored is not None:
        return f"{metrics.responding} of {metrics.monitored} {'heard' if service == 'broadcasters' else 'answer'}"
    if metrics.peers is not None:
        return f"{metrics.peers} peers"
    if metrics.missing:
        return f"{metrics.missing:,} missing"
    if metrics.breaks:
        return f"{metrics.breaks:,} break{'s' * (metrics.breaks > 1)} in its list"
    if metrics.extra:
        return f"{metrics.extra:,} too many"
    if metrics.gap:
        return f"{metrics.gap:,} fewer than the indexer"
    if metrics.position is not None and metrics.head is not None:
        lag = metrics.head - metrics.position
        return f"{lag:,} behind" if lag > 0 else f"at {metrics.position:,}"
    return ""


def _past(history: History | None, row: Row | UnreadableRow) -> tuple[History, HistoryRow] | None:
    if history is None or row.service is None:
        return None
    past = find_row(history, row.service, row.chain_id)
    return (history, past) if isinstance(past, HistoryRow) else None


def _strip(history: History, past: HistoryRow, view: View) -> Text:
    """The last day in cells, the newest at the right; the one that is still filling is dim."""
    strip = Text()
    per_cell = max(1, _DAY_S // history.bucket_seconds // _CELLS)
    last_day = past.buckets[-per_cell * _CELLS :].rjust(per_cell * _CELLS, NO_DATA)
    for begin in range(0, len(last_day), per_cell):
        cell = last_day[begin : begin + per_cell]
        status = next((status for status in _CELL_ORDER if CHARACTERS[status] in cell), None)
        colour = "bright_black" if status is None else _colour(status)
        is_filling = begin + per_cell >= len(last_day)
        strip.append(" " if status is None else _shape(status, view), style=f"dim {colour}" if is_filling else colour)
    return strip


def _uptime(history: History, past: HistoryRow) -> Text:
    share, coverage = past.uptime.get("24h"), coverage_of(history, past, "24h")
    if share is None:
        return Text("too little known", style="bright_black")
    known = 100 * coverage.known // coverage.buckets or "under 1"  # only all of it is 100%
    return Text(f"{'100%' if share == 1 else f'{share:.2%}'}, {known}% known")


def _shape(effective: EffectiveStatus, view: View) -> str:
    return BY_WORD[effective].look.shapes[view.is_ascii]


def _colour(effective: EffectiveStatus) -> str:
    return BY_WORD[effective].look.terminal_colour


def _span(ms: int) -> str:
    """In one unit, and exact below two of it."""
    return format_duration(ms, units=1, least=2)
