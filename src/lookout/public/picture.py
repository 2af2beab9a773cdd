"""A snapshot of both documents at an instant, read as every reader reads them: for feeds, summaries and badges.

Names and notes are text that can be printed: the configuration and the monitor refuse any other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from lookout.base.instants import format_second
from lookout.public.about import scope_text
from lookout_reader.about import About, AboutNote
from lookout_reader.clocks import Clocks
from lookout_reader.document import Check, Unreadable, UnreadableRow
from lookout_reader.headline import SINCE_MS, Headline, headline_of
from lookout_reader.history import History, parse_history
from lookout_reader.incidents import Incident, incidents_of
from lookout_reader.overview import HISTORY_OLD_BUCKETS, STOPPED_MS, UNREACHED_MS, Overview, overview_of
from lookout_reader.report import LiveReport, Row, parse_report
from lookout_reader.status import FUTURE_MS, OLD_MS, effective_status
from lookout_reader.statuses import EffectiveStatus
from lookout_reader.words import notes_for

MOST_INCIDENTS: Final = 100
# A feed cannot retract an entry, so it waits until every row has expired: twice as long as the page.
SILENT_MS: Final = OLD_MS

_DAY_S: Final = 86_400


class Names(NamedTuple):
    """What the operator calls things."""

    protocol: str
    about: About

    @property
    def title(self) -> str:
        """The operator's; the project's name if there is none, or only the protocol's."""
        own = self.about.title
        return "Lookout" if own in ("", self.protocol) else own

    @property
    def not_official(self) -> str:
        count = self.about.seen_from
        places = f"{count} places" if count > 1 else "one place"
        return f"What one monitor sees from {places}: no official status, and no signal that it is safe to transact."

    def row(self, check: Check) -> str:
        service, chain_id = check
        return service if chain_id is None else f"{service} on {self.about.chain_name(chain_id)}"

    def limits_of(self, service: str) -> list[str]:
        """What a service's rows do not say (C12)."""
        caveats = notes_for(service, service in self.about.run_by_others)
        return [caveat.text for caveat in caveats if caveat.services is not None]

    def note_scope(self, note: AboutNote) -> str:
        return scope_text(note.services, [*map(self.about.chain_name, note.chains)])


class EffectiveRow(NamedTuple):
    """A row, and its status for readers at the picture's instant."""

    check: Check
    status: EffectiveStatus
    observed_at: int | None


class RowIncident(NamedTuple):
    """An incident of a row. If it is ``cut``, it began at an unknown time before the history's window."""

    check: Check
    incident: Incident
    cut: bool


@dataclass(frozen=True, slots=True)
class Past:
    """What the history says, with at most ``MOST_INCIDENTS``: open incidents first, then the newest."""

    from_at: int
    bucket_ms: int
    incidents: tuple[RowIncident, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Both documents at an instant. Without new documents it stays true for ``holds_ms``; None is for ever."""

    generated_at: int
    silent: bool
    rows: tuple[EffectiveRow, ...]
    overview: Overview
    headline: Headline
    past: Past | None
    notes: tuple[AboutNote, ...]  # that are not over
    now: int
    holds_ms: int | None


def take_picture(about: About, live: bytes, history: bytes | None, now: int, received_ago_ms: int) -> Picture | None:
    """The picture at ``now``, of a report that arrived so long ago; None if it cannot be read."""
    report = read_report(live)
    if isinstance(report, Unreadable) or report.generated_at is None:
        return None
    age_ms = max(now - report.generated_at, received_ago_ms)
    past = None if history is None else _read_history(history)
    overview = overview_of(report, Clocks(now, received_ago_ms), about=about, history=past)
    edges = (
        *(silence_ms - age_ms for silence_ms in (STOPPED_MS, SINCE_MS, SILENT_MS)),
        *(() if past is None else (past.to_at + HISTORY_OLD_BUCKETS * past.bucket_seconds * 1000 - now,)),
        *_edges(report.rows, now, received_ago_ms),
        *note_edges(about, now),
    )
    return Picture(
        generated_at=report.generated_at,
        silent=age_ms >= SILENT_MS,
        rows=tuple(_effective_rows(report.rows, now, received_ago_ms)),
        overview=overview,
        headline=headline_of(overview),
        past=None if past is None else _past(past),
        notes=about.notes_at(now),
        now=now,
        holds_ms=min((edge for edge in edges if edge > 0), default=None),
    )


def instant_text(at: int) -> str:
    return f"{format_second(at)[:-1].replace('T', ' ')} UTC"


def _effective_rows(rows: Iterable[Row | UnreadableRow], now: int, received_ago_ms: int) -> Iterator[EffectiveRow]:
    for row in rows:
        if row.check is not None:
            observed_at = row.observed_at if isinstance(row, Row) else None
            status = effective_status(row, Clocks(now, received_ago_ms))
            yield EffectiveRow(row.check, status, observed_at)


def _edges(rows: Iterable[Row | UnreadableRow], now: int, received_ago_ms: int) -> Iterator[int]:
    """Milliseconds until ``effective_status`` may change."""
    for row in rows:
        if isinstance(row, Row) and row.observed_at is not None and row.expires_at is not None:
            age_ms = now - row.observed_at
            yield -FUTURE_MS - age_ms
            lifetime_ms = min(row.expires_at - row.observed_at, OLD_MS)
            yield lifetime_ms - max(age_ms, received_ago_ms)
        elif isinstance(row, Row) and row.observed_at is not None:
            yield UNREACHED_MS - max(now - row.observed_at, received_ago_ms)


def note_edges(about: About, now: int) -> Iterator[int]:
    """Milliseconds until a note begins or ends."""
    for note in about.notes:
        yield from (at - now for at in (note.from_at, note.until_at) if at is not None and at > now)


@lru_cache(1)
def read_report(live: bytes) -> LiveReport | Unreadable:
    """The report, read once for all that is made of it."""
    return parse_report(live)


@lru_cache(1)
def _read_history(history: bytes) -> History | None:
    found = parse_history(history)
    return None if isinstance(found, Unreadable) else found


def _past(history: History) -> Past:
    incidents = [
        row_incident
        for row_incident in _row_incidents(history)
        # An ended incident whose beginning is cut off would get a new id with every bucket.
        if not row_incident.cut or row_incident.incident.ends_at is None
    ]
    incidents.sort(key=lambda each: (each.incident.ends_at is None, each.incident.begins_at), reverse=True)
    return Past(
        from_at=history.from_at,
        bucket_ms=history.bucket_seconds * 1000,
        incidents=tuple(incidents[:MOST_INCIDENTS]),
    )


def _row_incidents(history: History) -> Iterator[RowIncident]:
    days = history.retention_days
    is_full = days is None or history.length > days * _DAY_S // history.bucket_seconds
    for row in history.rows:
        if row.check is not None:
            for incident in incidents_of(history, row):
                yield RowIncident(row.check, incident, is_full and incident.begins_at == history.from_at)
