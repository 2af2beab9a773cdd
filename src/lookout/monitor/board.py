"""The last outcome of every source and RPC endpoint, for the operator: ``/sources`` on the admin port (M16)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from lookout.base.instants import format_instant
from lookout.core.heads import Reading
from lookout.core.model import Check, Row


class RowOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    service: str
    chain_id: int | None
    status: str
    reason: str
    cause: str | UnsetType = UNSET


class Entry(Struct, frozen=True, rename="camel"):
    """Of a source the rows that its last probe gave; of an endpoint the block that it read, and how far that is below
    the head that the chain's endpoints agree on (less than 0: above it). Never an address."""

    name: str
    kind: Literal["source", "endpoint"]
    at: str
    took_ms: int
    outcome: Literal["answered", "failed"]
    cause: str | UnsetType = UNSET
    rows: tuple[RowOutcome, ...] | UnsetType = UNSET
    chain_id: int | UnsetType = UNSET
    height: int | UnsetType = UNSET
    block_at: str | UnsetType = UNSET
    lag_blocks: int | UnsetType = UNSET


class Board:
    """Written on the event loop; read by threads, which take the entries as they are then."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int | UnsetType], Entry] = {}

    def list_entries(self) -> list[Entry]:
        return list(self._entries.copy().values())

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the others: they were removed from the configuration."""
        self._entries = {key: entry for key, entry in self._entries.items() if entry.name in names}

    def note_source(self, name: str, at: int, took_ms: int, rows: Iterable[Row], causes: Mapping[Check, str]) -> None:
        outcomes = tuple(RowOutcome(*row.check, row.status, row.reason, causes.get(row.check, UNSET)) for row in rows)
        failed = all(row.reason == "unreachable" for row in outcomes)
        causes_of_all = {row.cause for row in outcomes}
        cause = causes_of_all.pop() if failed and len(causes_of_all) == 1 else UNSET
        outcome: Literal["answered", "failed"] = "failed" if failed else "answered"
        self._put(Entry(name, "source", format_instant(at), took_ms, outcome, cause, outcomes))

    def note_reading(
        self, name: str, chain_id: int, at: int, took_ms: int, reading: Reading | str, agreed: Reading | None
    ) -> None:
        """``reading`` is the cause where there is none."""
        if isinstance(reading, str):
            entry = Entry(name, "endpoint", format_instant(at), took_ms, "failed", reading, chain_id=chain_id)
        else:
            entry = Entry(
                name,
                "endpoint",
                format_instant(at),
                took_ms,
                "answered",
                chain_id=chain_id,
                height=reading.height,
                block_at=format_instant(reading.block_at),
                lag_blocks=UNSET if agreed is None else agreed.height - reading.height,
            )
        self._put(entry)

    def _put(self, entry: Entry) -> None:
        self._entries[f"{entry.kind} {entry.name}", entry.chain_id] = entry  # two chains may have one name
