"""The picture in the shape that readers of Atlassian Statuspage expect (its API v2)."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from lookout.base.instants import format_instant
from lookout.public.picture import (
    EffectiveRow,
    Names,
    Picture,
    RowIncident,
    instant_text,
)
from lookout_reader.document import Check
from lookout_reader.statuses import BY_WORD, STATUSES, ComponentStatus, EffectiveStatus, Indicator
from lookout_reader.words import status_text

Impact = Literal["minor", "major", "critical"]

COMPONENT_STATUSES: Final[dict[EffectiveStatus, ComponentStatus]] = {
    status.word: status.statuspage.component for status in STATUSES if status.statuspage.component is not None
}
INDICATORS: Final[dict[EffectiveStatus, Indicator]] = {status.word: status.statuspage.indicator for status in STATUSES}
_IMPACTS: Final[dict[EffectiveStatus, Impact]] = {
    status.word: status.statuspage.indicator for status in STATUSES if status.statuspage.indicator != "none"
}
_MOST_COMPONENTS: Final = 100  # of a note, which may be about all of thousands

Instant = Annotated[str, Meta(description="UTC, to the millisecond")]
Never = Annotated[list[str], Meta(max_length=0)]


class Page(Struct, frozen=True):
    id: str
    name: str
    url: Annotated[str, Meta(description="relative to this document")]
    time_zone: str
    updated_at: Annotated[Instant, Meta(description="when the report was assembled")]


class Status(Struct, frozen=True):
    indicator: Indicator
    description: str


class Component(Struct, frozen=True):
    """A row that is watched."""

    id: str
    name: str
    status: ComponentStatus
    description: Annotated[str, Meta(description="the status in Lookout's own word, and what it means")]
    position: int
    updated_at: Annotated[Instant, Meta(description="when it was last looked at")]
    page_id: str
    created_at: None = None
    start_date: None = None
    group_id: None = None
    group: bool = False
    showcase: bool = False
    only_show_if_degraded: bool = False


class _Event(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    created_at: Instant
    started_at: Instant
    updated_at: Instant
    page_id: str
    components: Annotated[list[Component], Meta(description="at most 100")]
    incident_updates: Never = []
    monitoring_at: None = None
    resolved_at: None = None
    shortlink: None = None


class Incident(_Event, frozen=True, kw_only=True):
    """What lasts, by the history."""

    status: Annotated[Literal["investigating"], Meta(description="it lasts; it need not be under investigation")]
    impact: Impact


class Maintenance(_Event, frozen=True, kw_only=True):
    """A note of the operator's. It changes no status."""

    status: Annotated[Literal["scheduled", "in_progress"], Meta(description="whether its time has begun")]
    scheduled_for: Instant
    scheduled_until: Annotated[Instant | None, Meta(description="null: until it is taken away")]
    impact: Literal["maintenance"] = "maintenance"


class StatusReport(Struct, frozen=True):
    """How the services are outside of test networks, in one word, and what the operator notes beside that."""

    page: Page
    status: Status
    scheduled_maintenances: list[Maintenance]


class Summary(StatusReport, frozen=True):
    """Every row that is watched, the incidents that last, and what the operator notes."""

    components: list[Component]
    incidents: list[Incident]


def encode_summaries(picture: Picture, names: Names) -> tuple[bytes, bytes]:
    """The summary and the status."""
    page = Page(names.protocol, names.title, "/", "Etc/UTC", format_instant(picture.generated_at))
    as_of = f"As of {instant_text(picture.generated_at)}"
    status = Status(INDICATORS[picture.overview.status], f"{picture.headline.line}. {as_of}. {names.not_official}")
    components = dict(_components(picture, names))
    maintenances = list(_maintenances(picture, names, components))
    incidents = list(_incidents(picture, names, components))
    summary = Summary(page, status, maintenances, list(components.values()), incidents)
    return msgspec.json.encode(summary), msgspec.json.encode(StatusReport(page, status, maintenances))


def _components(picture: Picture, names: Names) -> Iterator[tuple[Check, Component]]:
    watched = (row for row in picture.rows if row.status != "unmonitored")
    for position, row in enumerate(watched, start=1):
        yield row.check, _component(row, position, picture, names)


def _component(row: EffectiveRow, position: int, picture: Picture, names: Names) -> Component:
    seen_at = picture.generated_at if row.observed_at is None else row.observed_at
    return Component(
        id=_id(row.check),
        name=names.row(row.check),
        status=COMPONENT_STATUSES[row.status],
        description=" ".join(
            (f"{BY_WORD[row.status].name}: {status_text(row.status)}", *names.limits_of(row.check[0]))
        ),
        position=position,
        updated_at=format_instant(seen_at),
        page_id=names.protocol,
    )


def _incidents(picture: Picture, names: Names, components: dict[Check, Component]) -> Iterator[Incident]:
    """The incidents of rows that have not recovered since the history was written."""
    recovered = {row.check for row in picture.rows if row.status == "current"}
    for row_incident in () if picture.past is None else picture.past.incidents:
        lasts = row_incident.incident.ends_at is None and row_incident.check not in recovered
        if lasts and row_incident.check in components:
            yield _incident(row_incident, names, components[row_incident.check])


def _maintenances(picture: Picture, names: Names, components: dict[Check, Component]) -> Iterator[Maintenance]:
    for note in picture.notes:
        begin = format_instant(note.from_at)
        added = begin if note.added_at is None else format_instant(note.added_at)
        covered = [component for check, component in components.items() if note.covers(check)]
        yield Maintenance(
            id=f"note-{note.note_id}",
            name=note.text,
            status="in_progress" if note.from_at <= picture.now else "scheduled",
            created_at=added,
            started_at=begin,
            updated_at=added,
            scheduled_for=begin,
            scheduled_until=None if note.until_at is None else format_instant(note.until_at),
            page_id=names.protocol,
            components=covered[:_MOST_COMPONENTS],
        )


def _incident(row_incident: RowIncident, names: Names, component: Component) -> Incident:
    began = format_instant(row_incident.incident.begins_at)
    return Incident(
        id=f"{component.id}-{'earlier' if row_incident.cut else began}",
        name=f"{component.name}: {BY_WORD[row_incident.incident.worst].name}",
        status="investigating",
        impact=_IMPACTS[row_incident.incident.worst],
        created_at=began,
        started_at=began,
        updated_at=component.updated_at,
        page_id=names.protocol,
        components=[component],
    )


def _id(check: Check) -> str:
    service, chain_id = check
    if chain_id is not None:
        return f"{service}-{chain_id}"
    # "indexer-1" may be a service, too: no name has a point in it.
    return f"{service}.shared" if service.rpartition("-")[2].isdecimal() else service
