"""The public description of a deployment, as it is served: what a viewer without the configuration needs.
An operator's notes are part of it, as data and in words."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from lookout.base.instants import format_second
from lookout.core.history import DAY_MS
from lookout.core.notices import PAST_DAYS, Notice
from lookout_reader.about import NO_ABOUT, About, parse_about
from lookout_reader.document import Unreadable

PATH: Final = "/about.json"


class ChainDescription(Struct, frozen=True, rename="camel"):
    id: Annotated[int, Meta(ge=1)]
    name: str
    test_network: Annotated[bool, Meta(description="no summary counts its rows")] = False
    no_block_since: Annotated[
        str | None,
        Meta(description="since when its endpoints have given no newer block, if that is long; to the second"),
    ] = None


class ServiceDescription(Struct, frozen=True, rename="camel"):
    name: Annotated[str, Meta(description="as in the documents")]
    title: Annotated[str, Meta(description="for people")]
    run_by_others: Annotated[bool, Meta(description="and not by the operator of the monitor")] = False
    effect: Annotated[str, Meta(description="what its failure means for users; empty claims nothing")] = ""


class NoteDescription(Struct, frozen=True, rename="camel"):
    """What the operator declares. It stands beside what is measured, and changes nothing of it."""

    id: str
    text: str
    services: Annotated[tuple[str, ...], Meta(description="none: all of them")]
    chains: Annotated[tuple[int, ...], Meta(description="none: all of them, and the rows without a chain")]
    from_: Annotated[str, Meta(description="UTC, to the second")] = field(name="from")
    until: Annotated[
        str | None,
        Meta(description="from then on it is shown only beside incidents of its time; null: until it is ended"),
    ]
    added_at: Annotated[str, Meta(description="when it was declared")]


class DissentDescription(Struct, frozen=True, rename="camel"):
    """A row that a place sees otherwise than it is published."""

    service: str
    chain_id: int | None
    status: Annotated[str, Meta(description="what this place sees")]
    since: Annotated[str, Meta(description="by the monitor's clock")]


class PlaceDescription(Struct, frozen=True, rename="camel", kw_only=True, omit_defaults=True):
    """A place from which the services are watched: the monitor's own, or a witness's."""

    name: str
    own: Annotated[bool, Meta(description="the monitor's")] = False
    url: Annotated[str, Meta(description="its own page")] = ""
    silent_since: Annotated[str | UnsetType, Meta(description="it has no row that counts")] = UNSET
    differs: Annotated[tuple[DissentDescription, ...], Meta(description="for a minute or longer")]


class Description(Struct, frozen=True, rename="camel"):
    """A deployment: its chains and services in the report's order, and what its operator says of it."""

    protocol: str
    chains: tuple[ChainDescription, ...]
    services: tuple[ServiceDescription, ...]
    title: Annotated[str, Meta(description="of the status page")]
    operator: Annotated[str, Meta(description="who runs the monitor; empty if that is not said")] = ""
    contact: Annotated[str, Meta(description="an address or a URL; empty if there is none")] = ""
    show_unmonitored: Annotated[bool, Meta(description="whether the page shows rows that are not watched")] = True
    notes: Annotated[list[NoteDescription], Meta(description="the newest first, then those that are over")] = []
    logo: Annotated[str, Meta(description="where its picture is; empty if there is none")] = ""
    accent: Annotated[str, Meta(description="a colour such as #0b7a5e; empty if there is none")] = ""
    places: Annotated[tuple[PlaceDescription, ...] | UnsetType, Meta(description="if there are several")] = UNSET

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    def follow_monitor(self, stored: "Description") -> "Description":
        """With the chains, services, notes and places of the monitor's description. What the page says stays as it is
        here, and so does who runs a service that is known here."""
        run_by_others = {service.name: service.run_by_others for service in self.services}
        services = (
            replace(service, run_by_others=run_by_others.get(service.name, service.run_by_others))
            for service in stored.services
        )
        return replace(self, chains=stored.chains, services=tuple(services), notes=stored.notes, places=stored.places)

    def drop_old_notes(self, now: int) -> "Description":
        """Without the notes that ended before the history: the monitor that declared them may be gone."""
        second = format_second(now - PAST_DAYS * DAY_MS)
        return replace(self, notes=[note for note in self.notes if note.until is None or note.until > second])

    def read(self) -> About:
        """As every reader reads it."""
        about = parse_about(self.encode())
        return NO_ABOUT if isinstance(about, Unreadable) else about


def describe_note(note: Notice) -> NoteDescription:
    return NoteDescription(
        id=note.id,
        text=note.text,
        services=note.services,
        chains=note.chains,
        from_=format_second(note.from_at),
        until=None if note.until_at is None else format_second(note.until_at),
        added_at=format_second(note.added_at),
    )


def scope_text(services: Sequence[str], chain_names: Sequence[str]) -> str:
    """The rows that a note is about, such as ``indexer, ppoi on Polygon``."""
    if not services and not chain_names:
        return "everything"
    what = ", ".join(services) or "all services"
    return f"{what} on {', '.join(chain_names)}" if chain_names else what


def time_text(from_at: int, until_at: int | None) -> str:
    """Both ends in UTC, and the day once if it is one."""
    begin = _minute_text(from_at)
    if until_at is None:
        return f"from {begin} UTC on"
    end = _minute_text(until_at)
    day, _, time = end.partition(" ")
    return f"from {begin} to {time if begin.startswith(day) else end} UTC"


def _minute_text(at: int) -> str:
    """Without seconds, where there are none."""
    return format_second(at).removesuffix("Z").removesuffix(":00").replace("T", " ")
