"""The contract's words as values: checks, what a probe found, rows."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from lookout_reader.statuses import PublishedStatus

if TYPE_CHECKING:
    from lookout_reader.words import Reason as Reason
else:
    Reason = str  # what is stored may have one of a witness's later version (W2)

Status = PublishedStatus

LARGEST_METRIC: Final = 2**53 - 1
_LATELY_MS: Final = 86_400_000
Count = Annotated[int, Meta(ge=0, le=LARGEST_METRIC)]


class Check(NamedTuple):
    """One service on one chain: what a row is about, and its identity."""

    service: str
    chain_id: int | None

    @property
    def name(self) -> str:
        """For operators."""
        return self.service if self.chain_id is None else f"{self.service} {self.chain_id}"

    def is_among(self, services: Collection[str], chains: Collection[int]) -> bool:
        """Whether the check is of these services and chains; an empty collection means all."""
        return (not services or self.service in services) and (not chains or self.chain_id in chains)


class Blocks(Struct, frozen=True, gc=False):
    """The service answered with the last block it has, which is compared with the chain's head."""

    position: Count


class FaultyBlocks(Blocks, frozen=True, gc=False):
    """The answer also reports errors, which are for the operator alone."""


class Indexes(Struct, frozen=True, gc=False):
    """The service answered with how far it is and with its own head: a ppoi node's validated and current index."""

    position: Count
    head: Count


class Members(Struct, frozen=True, gc=False):
    """So many of the monitored members answered; ``responding`` is never above ``monitored``."""

    responding: Count
    monitored: Count


class Peers(Struct, frozen=True, gc=False):
    """The service answered with the number of its peers."""

    peers: Count


class Responding(Struct, frozen=True, gc=False):
    """The service answered, and its answer carries no data."""


class Nothing(Struct, frozen=True, gc=False):
    """The service answered without data for this chain, or without data yet, as ``cause`` says."""

    cause: str = "nothing"


class MissingList(Struct, frozen=True, gc=False):
    """The ppoi node answered, but does not carry the required list."""


class Failed(Struct, frozen=True, gc=False):
    error: str


Answer = Blocks | Indexes | Members | Peers | Responding
Found = Answer | Nothing | MissingList | Failed


class Observation(Struct, frozen=True, gc=False):
    check: Check
    at: int
    found: Found


Counts = Mapping[str, int]
"""How often transactions count on one side, by their hashes: once, or with ``each`` once for every entry or log."""


class Log(NamedTuple):
    """An event of the contracts, as an endpoint has it."""

    block: int
    block_hash: str
    transaction: str
    number: int
    """The log's number in its block."""


class Listed(NamedTuple):
    entries: Counts
    length: int
    """Of the longest single list: one as long as the limit may have been cut."""


class ListEntry(Struct, frozen=True, gc=False, array_like=True):
    """What a list says of one transaction. ``value`` and ``hash`` are 0x and 64 digits, None if they are missing."""

    id: str
    block: int
    value: str | None
    hash: str | None
    transaction: str = ""


class Gaps(Struct, frozen=True, gc=False, omit_defaults=True):
    """Faults of a service that would be current otherwise: transactions missing from an indexer's list, extra
    transactions in it (S18), breaks of its running hash (S20), and entries that a ppoi node is behind the list
    (S21)."""

    missing: Count = 0
    extra: Count = 0
    breaks: Count = 0
    gap: Count = 0


NO_GAPS: Final = Gaps()


class Metrics(Struct, frozen=True, gc=False):
    """A row's numbers; what is not known is left out (R8)."""

    position: Annotated[Count, Meta(description="the service's own position: an index or a block")] | UnsetType = UNSET
    head: Annotated[Count, Meta(description="what the position is compared with")] | UnsetType = UNSET
    responding: Annotated[Count, Meta(description="broadcasters that answered")] | UnsetType = UNSET
    monitored: Annotated[Count, Meta(description="broadcasters that were checked")] | UnsetType = UNSET
    peers: Annotated[Count, Meta(description="connected peers of the messaging node")] | UnsetType = UNSET
    missing: Annotated[Count, Meta(description="transactions of the chain that the indexer lacks")] | UnsetType = UNSET
    extra: Annotated[Count, Meta(description="transactions of the indexer that the chain lacks")] | UnsetType = UNSET
    breaks: Annotated[Count, Meta(description="places where the list's running hash breaks")] | UnsetType = UNSET
    gap: Annotated[Count, Meta(description="entries of the indexer's list that the node lacks")] | UnsetType = UNSET
    views: Annotated[Count, Meta(description="places that watch the row")] | UnsetType = UNSET
    agreeing: Annotated[Count, Meta(description="places that see the published status")] | UnsetType = UNSET


NO_METRICS: Final = Metrics()


class Row(Struct, frozen=True, gc=False):
    check: Check
    status: Status
    reason: Reason
    observed_at: int | None = None
    last_success_at: int | None = None
    expires_at: int | None = None
    metrics: Metrics = NO_METRICS
    has_lapsed: bool = False  # the last broadcaster of the chain is no longer monitored, since it was silent for long
    still_since_at: int | None = None  # behind, and since when at the same position

    @property
    def has_failed(self) -> bool:
        """Whether the probe failed: only failed probes give this reason (S1, S2)."""
        return self.reason == "unreachable"

    @property
    def answered_without_data(self) -> bool:
        """Whether the service answered, and has no data for this chain (S10, S12)."""
        return self.reason == "no-observation" and self.observed_at is not None

    def lost_data(self, since_at: int) -> bool:
        """Whether the service had data for this chain within the day before this instant, and has none any more. A
        broadcaster that left is no loss of data: its absence was reported while it was monitored."""
        if self.last_success_at is None or self.has_lapsed:
            return False
        return self.answered_without_data and since_at - self.last_success_at < _LATELY_MS

    def stood_still(self, for_ms: int) -> bool:
        """Whether its position is behind and did not move for so long."""
        at, since_at = self.observed_at, self.still_since_at
        return at is not None and since_at is not None and at - since_at >= for_ms

    def has_expired(self, at: int) -> bool:
        return self.expires_at is not None and self.expires_at <= at


class Report(Struct, frozen=True, gc=False):
    """All rows of one publication, in the report's order (R12)."""

    published_at: int
    rows: tuple[Row, ...]


def unobserved(check: Check) -> Row:
    """A monitored check before its first probe completed (S12)."""
    return Row(check, "unknown", "no-observation")


def unmonitored(check: Check) -> Row:
    """A check that is not configured (S14)."""
    return Row(check, "unmonitored", "not-configured")
