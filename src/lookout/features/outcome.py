"""How asking something ended, and how ``/sources`` and the metrics show it (M16)."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, Self

from msgspec import UNSET, Struct, UnsetType

from lookout.base.instants import format_instant
from lookout.core.agreement import Standing
from lookout.core.model import Check

EntryOutcome = Literal["answered", "failed", "own_fault", "bug", "not_asked"]
Sample = tuple[str, Sequence[str], float]
"""The name of a gauge, the values of its labels, and its value."""


StandInKind = Literal["chain", "endpoint", "source", "the", "view", "witness"]
"""Of "the" there is only the store. A view is a row as one place sees it."""


class EntryKey(NamedTuple):
    """A source, an RPC endpoint of a chain, or what a feature asks."""

    kind: str
    name: str
    chain_id: int | UnsetType = UNSET  # an endpoint's: its name may occur on two chains


class StandIn(Check):
    """Stands in alerts for what no row shows, such as an RPC endpoint. Its kind is stored as the first word of
    ``service``, which no row's service has: they are without spaces."""

    def __new__(cls, kind: StandInKind, name: str, chain_id: int | None) -> Self:
        return super().__new__(cls, f"{kind} {name}", chain_id)


def kind_of(check: Check) -> str | None:
    """The kind of a stand-in; None for a row's check."""
    kind, space, _ = check.service.partition(" ")
    return kind if space else None


STORE_KEY: Final = EntryKey("store", "")


class Outcome(NamedTuple):
    """``cause`` says why it failed, or which fault of the monitor's own there was. ``not_asked`` is since the start."""

    at: int
    took_ms: int
    cause: str | None = None
    kind: EntryOutcome = "answered"


def end(at: int, took_ms: int, cause: str | None) -> Outcome:
    """It answered, or failed for this cause."""
    return Outcome(at, took_ms, cause, "answered" if cause is None else "failed")


class RowOutcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    service: str
    chain_id: int | None
    status: str
    reason: str
    cause: str | UnsetType = UNSET


class Entry(Struct, frozen=True, rename="camel"):
    """A source with the rows of its last probe; or an endpoint with the block that it read, the distance below the head
    of that time (negative if above), and how its latest answer counts. A feature's have more. Never an address."""

    name: str
    kind: str
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
    doubts: tuple[str, ...] | UnsetType = UNSET
    """Causes of what is wrong with a source, whatever its rows."""


class Note(Struct, frozen=True):
    """The last outcome of something that is asked, with what is known of it. It stays known while it cannot be asked
    because of a fault of the monitor's own."""

    key: EntryKey
    outcome: Outcome

    def describe(self) -> Entry:
        return Entry(*self.common(), chain_id=self.key.chain_id)

    def samples(self, now: int) -> Iterator[Sample]:
        yield from ()

    def common(self) -> tuple[str, str, str, int, EntryOutcome, str | UnsetType]:
        """The first fields of an entry."""
        outcome, cause = self.outcome, self.outcome.cause
        at = format_instant(outcome.at)
        return self.key.name, self.key.kind, at, outcome.took_ms, outcome.kind, UNSET if cause is None else cause


def chain_label(check: Check) -> str:
    return "" if check.chain_id is None else str(check.chain_id)


def row_labels(check: Check) -> tuple[str, str]:
    return check.service, chain_label(check)
