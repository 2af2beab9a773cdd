"""The incidents as an Atom feed (RFC 4287).

An entry keeps its id for as long as it is there: the id is made of the row and of the instant at which the incident
began. A server does not know the names that it is reached by, so ids stand under one that nobody can have.
"""

from collections.abc import Iterator
from html import escape
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from lookout.base.instants import format_duration, format_second
from lookout.core.history import DAY_MS
from lookout.public.about import time_text
from lookout.public.picture import (
    SILENT_MS,
    Names,
    Past,
    Picture,
    RowIncident,
    instant_text,
)
from lookout_reader.about import AboutNote
from lookout_reader.statuses import BY_WORD, EffectiveStatus

MEDIA_TYPE: Final = "application/atom+xml; charset=utf-8"

_TAG: Final = "tag:lookout.invalid,2026:"


class _Entry(NamedTuple):
    id: str
    title: str
    published_at: int
    updated_at: int
    category: EffectiveStatus | Literal["note"]
    text: str
    address: str = "/"


def feed_path(chain_id: int | str | None = None) -> str:
    return "/feed.atom" if chain_id is None else f"/feed/{chain_id}.atom"


def encode_feed(picture: Picture, names: Names, chain_id: int | None = None) -> bytes:
    """The feed of everything, or of one chain with what it shares with the others."""
    entries = sorted(_entries(picture, names, chain_id), key=lambda entry: (entry.updated_at, entry.id), reverse=True)
    # A feed that has no entry has had none since its history began.
    since_at = picture.generated_at if picture.past is None else picture.past.from_at
    updated_at = entries[0].updated_at if entries else since_at
    titles = [names.title] if chain_id is None else [names.title, names.about.chain_name(chain_id)]
    head = f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">
<id>{_id(names) if chain_id is None else _id(names, "feed", str(chain_id))}</id>
<title>Incidents · {escape(" · ".join(titles))}</title>
<subtitle>{escape(_subtitle(picture, names))}</subtitle>
<updated>{format_second(updated_at)}</updated>
<author><name>Lookout</name></author>
<link rel="self" type="application/atom+xml" href="{feed_path(chain_id)}"/>
<link rel="alternate" type="text/html" href="{"/" if chain_id is None else f"/#chain={chain_id}"}"/>
"""
    return f"{head}{''.join(map(_format_entry, entries))}</feed>\n".encode()


def _format_entry(entry: _Entry) -> str:
    return f"""<entry>
<id>{escape(entry.id)}</id>
<title>{escape(entry.title)}</title>
<published>{format_second(entry.published_at)}</published>
<updated>{format_second(entry.updated_at)}</updated>
<category term="{entry.category}"/>
<link rel="alternate" type="text/html" href="{escape(entry.address)}"/>
<content type="text">{escape(entry.text)}</content>
</entry>
"""


def _subtitle(picture: Picture, names: Names) -> str:
    """Nothing that changes with every report: a feed without news stays the same."""
    parts = [names.not_official]
    if picture.silent:
        parts.append(f"The monitor has been silent since {instant_text(picture.generated_at)}.")
    if picture.past is None:
        parts.append("The history cannot be read, so past incidents are missing.")
    return " ".join(parts)


def _entries(picture: Picture, names: Names, chain_id: int | None) -> Iterator[_Entry]:
    if picture.silent:
        yield _silence(picture, names)
    for note in picture.notes:
        if chain_id is None or not note.chains or chain_id in note.chains:
            yield _note(note, names)
    if (past := picture.past) is not None:
        for row_incident in past.incidents:
            if chain_id is None or row_incident.check[1] in (None, chain_id):
                yield _incident(row_incident, past, names)


def _silence(picture: Picture, names: Names) -> _Entry:
    since_at = picture.generated_at
    return _Entry(
        id=_id(names, "silent", format_second(since_at)),
        title=f"The monitor has been silent since {instant_text(since_at)}",
        published_at=since_at + SILENT_MS,
        updated_at=since_at + SILENT_MS,
        category="unknown",
        text="Nothing was reported since, so what is up now is not known. Incidents that were open then may be over.",
    )


def _note(note: AboutNote, names: Names) -> _Entry:
    """Its number alone would not do for an id: it is counted again from a backup, or in another store."""
    declared_at = note.from_at if note.added_at is None else note.added_at
    about = f"About {names.note_scope(note)}, {time_text(note.from_at, note.until_at)}."
    return _Entry(
        id=_id(names, "note", quote(note.note_id, safe=""), format_second(declared_at)),
        title=f"Note: {note.text}",
        published_at=declared_at,
        updated_at=declared_at,
        category="note",
        text=f"{note.text} ({about} The operator's words; what is measured is not changed by them.)",
    )


def _incident(row_incident: RowIncident, past: Past, names: Names) -> _Entry:
    check, incident, cut = row_incident
    service, chain_id = check
    name = names.row(check)
    began = "earlier" if cut else format_second(incident.begins_at)
    begins_at = incident.begins_at // DAY_MS * DAY_MS if cut else incident.begins_at  # a window that slides is no news
    return _Entry(
        id=_id(names, quote(service, safe=""), "all" if chain_id is None else str(chain_id), began),
        title=f"{name}: {BY_WORD[incident.worst].name}",
        published_at=begins_at,
        updated_at=begins_at if incident.ends_at is None else incident.ends_at,
        category=incident.worst,
        text=_story(names, row_incident, past),
        address="/" if cut else incident_address(incident.begins_at, chain_id),
    )


def incident_address(begins_at: int, chain_id: int | None) -> str:
    """Where the page has an incident: the path, and the fragment that its scripts read."""
    minute = f"{format_second(begins_at)[:-4]}Z"
    return f"/#at={minute}" if chain_id is None else f"/#at={minute}&chain={chain_id}"


def _story(names: Names, row_incident: RowIncident, past: Past) -> str:
    """A bucket that is bad is bad for a minute or more, so both instants are as exact as a bucket is long."""
    name, incident = names.row(row_incident.check), row_incident.incident
    lasted = format_duration(incident.buckets * past.bucket_ms, units=3)
    begin = f"{'before ' if row_incident.cut else ''}{instant_text(incident.begins_at)}"
    if incident.ends_at is None:
        parts = [f"{name} was not current from {begin} on, and not seen to recover."]
    else:
        parts = [f"{name} was not current from {begin} to {instant_text(incident.ends_at)} ({lasted})."]
        if not incident.end_seen:
            parts.append("It was not seen to recover: what came after is not known.")
    parts.append(f"At worst {BY_WORD[incident.worst].name}.")
    if not incident.begin_seen:
        parts.append("It may have begun earlier.")
    return " ".join((*parts, *names.limits_of(row_incident.check[0])))


def _id(names: Names, *parts: str) -> str:
    return _TAG + "/".join((names.protocol, *parts))
