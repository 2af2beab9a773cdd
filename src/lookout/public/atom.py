"""The incidents as an Atom feed (RFC 4287).

An entry keeps its id for as long as it is there: the id is made of the row and of the instant at which the incident
began. A server does not know the names that it is reached by, so ids stand under one that nobody can have.
"""

from collections.abc import Iterator
from html import escape
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from lookout.base.instants import format_second
from lookout.core.history import DAY_MS
from lookout.public.about import time_text
from lookout.public.picture import (
    MINUTE_MS,
    NOT_OFFICIAL,
    SILENT_MS,
    EffectiveRow,
    Names,
    Past,
    Picture,
    RowTrouble,
    duration_text,
    instant_text,
    replace_unprintable,
)
from lookout_reader.about import AboutNote
from lookout_reader.document import Check
from lookout_reader.statuses import EFFECTIVE_STATUSES, TROUBLE_STATUSES, EffectiveStatus

MEDIA_TYPE: Final = "application/atom+xml; charset=utf-8"

_TAG: Final = "tag:lookout.invalid,2026:"
_MOST_ROWS: Final = 20  # that one entry names


class _Entry(NamedTuple):
    id: str
    title: str
    published_at: int
    updated_at: int
    category: EffectiveStatus | Literal["note"]
    text: str


def encode_feed(picture: Picture, names: Names) -> bytes:
    entries = sorted(_entries(picture, names), key=lambda entry: (entry.updated_at, entry.id), reverse=True)
    # A feed that has no entry has had none since its history began.
    since_at = picture.generated_at if picture.past is None else picture.past.from_at
    updated_at = entries[0].updated_at if entries else since_at
    head = f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">
<id>{_id(names)}</id>
<title>Incidents of the services that a wallet depends on</title>
<subtitle>{escape(_subtitle(picture))}</subtitle>
<updated>{format_second(updated_at)}</updated>
<author><name>Lookout</name></author>
<link rel="self" type="application/atom+xml" href="/feed.atom"/>
<link rel="alternate" type="text/html" href="/"/>
"""
    return f"{head}{''.join(map(_format_entry, entries))}</feed>\n".encode()


def _format_entry(entry: _Entry) -> str:
    return f"""<entry>
<id>{escape(entry.id)}</id>
<title>{escape(entry.title)}</title>
<published>{format_second(entry.published_at)}</published>
<updated>{format_second(entry.updated_at)}</updated>
<category term="{entry.category}"/>
<link rel="alternate" type="text/html" href="/"/>
<content type="text">{escape(entry.text)}</content>
</entry>
"""


def _subtitle(picture: Picture) -> str:
    as_of = f"{_as_of(picture)}."
    if picture.silent:
        as_of = f"The monitor has been silent since {instant_text(picture.generated_at)}: what is up now is not known."
    history = " The history cannot be read, so past incidents are missing." if picture.past is None else ""
    return f"{as_of}{history} {NOT_OFFICIAL}"


def _as_of(picture: Picture) -> str:
    """The instant to the minute, so that a feed that has nothing new stays the same for one."""
    return f"As of {instant_text(picture.generated_at // MINUTE_MS * MINUTE_MS)}"


def _entries(picture: Picture, names: Names) -> Iterator[_Entry]:
    past = picture.past
    if picture.silent:
        yield _silence(picture, names)
    bad = [row for row in picture.rows if row.is_counted and row.status in TROUBLE_STATUSES]
    if bad:
        yield _now(bad, picture, names)
    yield from (_note(note, names) for note in picture.notes)
    if past is not None:
        yield from (_incident(trouble, past, names) for trouble in past.troubles)


def _silence(picture: Picture, names: Names) -> _Entry:
    since_at = picture.generated_at
    return _Entry(
        id=_id(names, "silent", format_second(since_at)),
        title=f"The monitor has been silent since {instant_text(since_at)}",
        published_at=since_at + SILENT_MS,
        updated_at=since_at + SILENT_MS,
        category="unknown",
        text="Nothing was reported since, so what is up now is not known. Incidents that lasted then may be over.",
    )


def _note(note: AboutNote, names: Names) -> _Entry:
    """Its number alone would not do for an id: it is counted again from a backup, or in another store."""
    text, declared_at = replace_unprintable(note.text), note.from_at if note.added_at is None else note.added_at
    about = f"About {names.note_scope(note)}, {time_text(note.from_at, note.until_at)}."
    return _Entry(
        id=_id(names, "note", quote(replace_unprintable(note.note_id), safe=""), format_second(declared_at)),
        title=f"Note: {text}",
        published_at=declared_at,
        updated_at=declared_at,
        category="note",
        text=f"{text} ({about} The operator's words; what is measured is not changed by them.)",
    )


def _now(bad: list[EffectiveRow], picture: Picture, names: Names) -> _Entry:
    """What is not well at this moment, some of which no history has yet. It is new when a row joins it."""
    worst = min((row.status for row in bad), key=EFFECTIVE_STATUSES.index)
    named = [f"{names.row(row.check)}: {row.status}" for row in bad[:_MOST_ROWS]]
    if len(bad) > _MOST_ROWS:
        named.append(f"and {len(bad) - _MOST_ROWS} more")
    past = picture.past
    began_at = {} if past is None else _find_ongoing(past)
    bucket_ms = MINUTE_MS if past is None else past.bucket_ms
    joined_at = max(began_at.get(row.check, (row.observed_at or 0) // bucket_ms * bucket_ms) for row in bad)
    return _Entry(
        id=_id(names, "now"),
        title=f"{_as_of(picture)}: {len(bad)} not current, at worst {worst}",
        published_at=joined_at,
        updated_at=joined_at,
        category=worst,
        text=f"{_as_of(picture)}: {'; '.join(named)}.",
    )


def _find_ongoing(past: Past) -> dict[Check, int]:
    return {trouble.check: trouble.incident.begins_at for trouble in past.troubles if trouble.incident.ends_at is None}


def _incident(trouble: RowTrouble, past: Past, names: Names) -> _Entry:
    check, incident, cut = trouble
    service, chain_id = check
    name = names.row(check)
    began = "earlier" if cut else format_second(incident.begins_at)
    begins_at = incident.begins_at // DAY_MS * DAY_MS if cut else incident.begins_at  # a window that slides is no news
    return _Entry(
        id=_id(
            names, quote(replace_unprintable(service), safe=""), "all" if chain_id is None else str(chain_id), began
        ),
        title=f"{name}: {incident.worst}",
        published_at=begins_at,
        updated_at=begins_at if incident.ends_at is None else incident.ends_at,
        category=incident.worst,
        text=_story(names, trouble, past),
    )


def _story(names: Names, trouble: RowTrouble, past: Past) -> str:
    """A bucket that is bad is bad for a minute or more, so both instants are as exact as a bucket is long."""
    name, incident = names.row(trouble.check), trouble.incident
    lasted = duration_text(incident.buckets * past.bucket_ms)
    begin = f"{'before ' if trouble.cut else ''}{instant_text(incident.begins_at)}"
    if incident.ends_at is None:
        written = (
            "" if past.written_at is None else f" when the history was written, at {instant_text(past.written_at)}"
        )
        parts = [
            f"{name} was not current from {begin} on, and not seen to recover{written}. At worst {incident.worst}."
        ]
    else:
        parts = [f"{name} was not current from {begin} to {instant_text(incident.ends_at)} ({lasted})."]
        parts.append(f"At worst {incident.worst}.")
        if not incident.end_seen:
            parts.append("It was not seen to recover: what came after is not known.")
    if not incident.begin_seen:
        parts.append("It may have begun earlier.")
    return " ".join((*parts, *names.limits_of(trouble.check[0])))


def _id(names: Names, *parts: str) -> str:
    return _TAG + "/".join((names.protocol, *parts))
