"""The public description of a deployment, ``/about.json``: its chains' names, and which of them are counted (C11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from lookout_reader.document import DEEPEST, Check, Fields, Unreadable, is_list, is_object, read_json, whole
from lookout_reader.instants import parse_instant
from lookout_reader.rollup import TEST_NETWORK
from lookout_reader.statuses import KNOWN_STATUSES, EffectiveStatus

MOST_ENTRIES: Final = 2_000  # of a list; later entries are ignored


@dataclass(frozen=True, slots=True)
class AboutChain:
    chain_id: int
    name: str
    test_network: bool
    no_block_since_at: int | None = None  # since when its endpoints have given no newer block, if that is long


@dataclass(frozen=True, slots=True)
class AboutService:
    name: str
    title: str
    run_by_others: bool
    effect: str = ""  # what its failure means for users; empty claims nothing


@dataclass(frozen=True, slots=True)
class AboutNote:
    """What the operator declares about these services and chains; an empty tuple means all. It does not change any
    measurement."""

    note_id: str
    text: str
    services: tuple[str, ...]
    chains: tuple[int, ...]
    from_at: int
    until_at: int | None  # None: until it is removed
    added_at: int | None

    def covers(self, check: Check) -> bool:
        """Whether it is about this row. A note that names chains is not about rows without a chain."""
        service, chain_id = check
        return (not self.services or service in self.services) and (not self.chains or chain_id in self.chains)


@dataclass(frozen=True, slots=True)
class AboutDissent:
    """A row that a place sees otherwise than it is published."""

    service: str
    chain_id: int | None
    status: EffectiveStatus
    since_at: int


@dataclass(frozen=True, slots=True)
class AboutPlace:
    """One of the places from which the services are watched, with what it sees otherwise than all of them together."""

    name: str  # empty: the operator's monitor, which has no name
    url: str  # its own page; empty if it has none
    own: bool  # whether it is this monitor
    silent_since_at: int | None
    differs: tuple[AboutDissent, ...]


@dataclass(frozen=True)
class About:
    """Its chains by id and its services, in the operator's order; an empty text is absent."""

    chains: Mapping[int, AboutChain]
    services: tuple[AboutService, ...]
    title: str
    operator: str
    contact: str
    notes: tuple[AboutNote, ...]
    show_unmonitored: bool = True
    places: tuple[AboutPlace, ...] = ()  # none: this monitor alone

    @property
    def seen_from(self) -> int:
        """From how many places something is known, at least from this monitor's."""
        return max(1, sum(place.silent_since_at is None for place in self.places))

    def notes_at(self, now: float) -> tuple[AboutNote, ...]:
        """The current and future notes at ``now``, the newest first."""
        return tuple(note for note in self.notes if note.until_at is None or note.until_at > now)

    @cached_property
    def test_networks(self) -> frozenset[int]:
        return frozenset({TEST_NETWORK, *(chain_id for chain_id, chain in self.chains.items() if chain.test_network)})

    def counted_chains(self, reported: Iterable[int | None]) -> tuple[int, ...]:
        """The chains that a summary counts, of a report with rows of these chains: all but test networks, including
        chains that the description lacks."""
        others = sorted({chain_id for chain_id in reported if chain_id is not None} - self.chains.keys())
        return tuple(chain_id for chain_id in (*self.chains, *others) if chain_id not in self.test_networks)

    def chain_name(self, chain_id: int) -> str:
        chain = self.chains.get(chain_id)
        return f"chain {chain_id}" if chain is None else chain.name

    @cached_property
    def run_by_others(self) -> frozenset[str]:
        """The services whose nodes others run than the operator of the monitor (C12)."""
        return frozenset(service.name for service in self.services if service.run_by_others)


#: For a deployment without a description.
NO_ABOUT: Final = About({}, (), "", "", "", ())


def parse_about(text: str | bytes) -> About | Unreadable:
    """The description in ``text``, or why it cannot be read. Unknown fields are ignored (C5)."""
    found = read_json(text, DEEPEST)
    if not is_object(found):
        return found if isinstance(found, Unreadable) else Unreadable("it is not a JSON object")
    return About(
        {chain.chain_id: chain for chain in filter(None, map(_read_chain, _objects(found, "chains")))},
        tuple(filter(None, map(_read_service, _objects(found, "services")))),
        _text(found, "title"),
        _text(found, "operator"),
        _text(found, "contact"),
        tuple(filter(None, map(_read_note, _objects(found, "notes")))),
        found.get("showUnmonitored") is not False,
        tuple(filter(None, map(_read_place, _objects(found, "places")))),
    )


def _read_chain(raw: Fields) -> AboutChain | None:
    chain_id = whole(raw.get("id"), 1)
    if chain_id is None:
        return None
    name, is_test = _text(raw, "name") or f"chain {chain_id}", raw.get("testNetwork") is True
    return AboutChain(chain_id, name, is_test, parse_instant(raw.get("noBlockSince")))


def _read_service(raw: Fields) -> AboutService | None:
    name = _text(raw, "name")
    title, run_by_others = _text(raw, "title") or name, raw.get("runByOthers") is True
    return AboutService(name, title, run_by_others, _text(raw, "effect")) if name else None


def _read_note(raw: Fields) -> AboutNote | None:
    """None also if its rows or its end cannot be read."""
    text, until = _text(raw, "text"), raw.get("until")
    from_at, until_at = parse_instant(raw.get("from")), parse_instant(until)
    services, chains = _list(raw, "services"), _list(raw, "chains")
    named = tuple(service for service in services if isinstance(service, str))
    chain_ids = tuple(filter(None, (whole(chain, 1) for chain in chains)))
    is_scope_whole = len(named) + len(chain_ids) == len(services) + len(chains)
    if not text or from_at is None or (until is not None and until_at is None) or not is_scope_whole:
        return None
    return AboutNote(_text(raw, "id"), text, named, chain_ids, from_at, until_at, parse_instant(raw.get("addedAt")))


def _read_place(raw: Fields) -> AboutPlace | None:
    name, url, own = _text(raw, "name"), _text(raw, "url"), raw.get("own") is True
    if not name and not own:
        return None
    return AboutPlace(
        name,
        url if url.startswith(("https://", "http://")) else "",
        own,
        parse_instant(raw.get("silentSince")),
        tuple(filter(None, map(_read_dissent, _objects(raw, "differs")))),
    )


def _read_dissent(raw: Fields) -> AboutDissent | None:
    service, found, since_at = _text(raw, "service"), raw.get("chainId"), parse_instant(raw.get("since"))
    chain_id, word = whole(found, 1), raw.get("status")
    if not service or (chain_id is None and found is not None) or since_at is None:
        return None
    status: EffectiveStatus = next((known for known in KNOWN_STATUSES if known == word), "unknown")
    return AboutDissent(service, chain_id, status, since_at)


def _text(raw: Fields, key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _list(raw: Fields, key: str) -> list[object]:
    value = raw.get(key)
    return value[:MOST_ENTRIES] if is_list(value) else []


def _objects(raw: Fields, key: str) -> list[Fields]:
    return [entry for entry in _list(raw, key) if is_object(entry)]
