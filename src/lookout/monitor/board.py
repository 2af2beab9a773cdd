"""The last outcome of every source and RPC endpoint, for the operator: ``/sources`` on the admin port (M16)."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from lookout.alerts.event import EndpointFact
from lookout.base.instants import format_instant
from lookout.core.agreement import STANDING_WORDS, Standing
from lookout.core.causes import describe_cause
from lookout.core.heads import Reading
from lookout.core.model import Check, Row

_NUMBER: Final = re.compile("([0-9]+)")

EntryOutcome = Literal["answered", "failed", "own_fault", "bug"]


class RowOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    service: str
    chain_id: int | None
    status: str
    reason: str
    cause: str | UnsetType = UNSET


class EntryKey(NamedTuple):
    """A source, or an RPC endpoint of a chain."""

    kind: Literal["source", "endpoint"]
    name: str
    chain_id: int | UnsetType = UNSET  # of an endpoint: two chains may have one name


class Entry(Struct, frozen=True, rename="camel"):
    """Of a source the rows that its last probe gave; of an endpoint the block that it read, how far that is below the
    head that positions were compared with then (less than 0: above it), and what its latest answer counts for. Never
    an address."""

    name: str
    kind: Literal["source", "endpoint"]
    at: str
    took_ms: int
    outcome: EntryOutcome
    cause: str | UnsetType = UNSET
    rows: tuple[RowOutcome, ...] | UnsetType = UNSET
    chain_id: int | UnsetType = UNSET
    height: int | UnsetType = UNSET
    block_at: str | UnsetType = UNSET
    lag_blocks: int | UnsetType = UNSET
    standing: Standing | UnsetType = UNSET


class Board:
    """Written on the event loop; read by threads, which take the entries as they are then."""

    def __init__(self) -> None:
        self._entries: dict[EntryKey, Entry] = {}
        self._standings: dict[int, Mapping[str, Standing]] = {}  # of each chain's endpoints, by name

    def list_entries(self) -> list[Entry]:
        standings = self._standings.copy()
        return [
            replace(entry, standing=standings.get(key.chain_id, {}).get(key.name, UNSET))
            if isinstance(key.chain_id, int)
            else entry
            for key, entry in self._entries.copy().items()
        ]

    def describe_endpoints(self, chain_id: int | None) -> tuple[EndpointFact, ...]:
        """What each RPC endpoint of a chain does, sorted by their names, in which 2 is before 10."""
        entries = [each for each in self.list_entries() if each.kind == "endpoint" and each.chain_id == chain_id]
        entries.sort(key=lambda each: [int(part) if part.isdecimal() else part for part in _NUMBER.split(each.name)])
        return tuple(_describe(each) for each in entries)

    def keep_only(self, watched: Collection[EntryKey]) -> None:
        """Forget the others: they were removed from the configuration."""
        self._entries = {key: entry for key, entry in self._entries.items() if key in watched}

    def note_source(self, name: str, at: int, took_ms: int, rows: Iterable[Row], causes: Mapping[Check, str]) -> None:
        outcomes = tuple(RowOutcome(*row.check, row.status, row.reason, causes.get(row.check, UNSET)) for row in rows)
        failed = all(row.reason == "unreachable" for row in outcomes)
        causes_of_all = {row.cause for row in outcomes}
        cause = causes_of_all.pop() if failed and len(causes_of_all) == 1 else UNSET
        outcome: EntryOutcome = "failed" if failed else "answered"
        self._entries[EntryKey("source", name)] = Entry(
            name, "source", format_instant(at), took_ms, outcome, cause, outcomes
        )

    def note_reading(
        self, endpoint: EntryKey, at: int, took_ms: int, reading: Reading | str, head: Reading | None
    ) -> None:
        """``reading`` is the cause where there is none; ``head`` is what positions are compared with then."""
        if isinstance(reading, str):
            entry = _entry(endpoint, at, took_ms, "failed", reading)
        else:
            entry = replace(
                _entry(endpoint, at, took_ms, "answered"),
                height=reading.height,
                block_at=format_instant(reading.block_at),
                lag_blocks=UNSET if head is None else head.height - reading.height,
            )
        self._entries[endpoint] = entry

    def note_own_failure(self, key: EntryKey, at: int, took_ms: int, cause: str | None) -> None:
        """It could not be asked for a fault of the monitor's own, which ``cause`` says, or for a bug."""
        self._entries[key] = (
            _entry(key, at, took_ms, "bug") if cause is None else _entry(key, at, took_ms, "own_fault", cause)
        )

    def note_standings(self, chain_id: int, standings: Mapping[str, Standing]) -> None:
        """Of all endpoints of a chain; of none, while nothing can be said."""
        self._standings[chain_id] = standings


def _describe(endpoint: Entry) -> EndpointFact:
    if endpoint.cause is not UNSET:
        return EndpointFact(endpoint.name, describe_cause(endpoint.cause), endpoint.cause)
    if endpoint.outcome == "bug":
        return EndpointFact(endpoint.name, "the monitor could not ask it because of a bug; its log has more")
    standing = "not_confirmed" if endpoint.standing is UNSET else endpoint.standing
    return EndpointFact(endpoint.name, f"{STANDING_WORDS[standing]} (block {endpoint.height})")


def _entry(key: EntryKey, at: int, took_ms: int, outcome: EntryOutcome, cause: str | UnsetType = UNSET) -> Entry:
    return Entry(key.name, key.kind, format_instant(at), took_ms, outcome, cause, chain_id=key.chain_id)
