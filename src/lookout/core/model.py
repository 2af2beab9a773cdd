"""The contract's words as values: checks, what a probe found, rows."""

from collections.abc import Iterable
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from lookout_reader.statuses import PublishedStatus
from lookout_reader.words import Reason as Reason

Service = Literal["messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer"]
Status = PublishedStatus

# In the report's order (R12).
SERVICES: Final[tuple[Service, ...]] = ("messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer")

LARGEST_METRIC: Final = 2**53 - 1
Count = Annotated[int, Meta(ge=0, le=LARGEST_METRIC)]


class Check(NamedTuple):
    """One service on one chain: what a row is about, and its identity."""

    service: Service
    chain_id: int | None

    @property
    def name(self) -> str:
        """For people who run it."""
        return self.service if self.chain_id is None else f"{self.service} {self.chain_id}"


def all_checks(chain_ids: Iterable[int]) -> tuple[Check, ...]:
    """Every service on every chain, in the report's order (R3, R12): the one messaging check is of no chain."""
    ascending = sorted(chain_ids)
    return (
        Check("messaging", None),
        *(Check(service, chain_id) for service in SERVICES if service != "messaging" for chain_id in ascending),
    )


class Blocks(Struct, frozen=True, gc=False):
    """An indexer answered with the last block it has."""

    position: Count


class Indexes(Struct, frozen=True, gc=False):
    """A ppoi node answered with its validated index and its own current one."""

    position: Count
    head: Count


class Members(Struct, frozen=True, gc=False):
    """So many of the monitored broadcasters answered; ``responding`` is never above ``monitored``."""

    responding: Count
    monitored: Count


class Peers(Struct, frozen=True, gc=False):
    """The messaging connection answered with the number of its peers."""

    peers: Count


class Nothing(Struct, frozen=True, gc=False):
    """The service answered, but has nothing for this chain."""


class MissingList(Struct, frozen=True, gc=False):
    """The ppoi node answered, but does not carry the required list."""


class Failed(Struct, frozen=True, gc=False):
    """The service could not be reached or understood."""

    error: str


Found = Blocks | Indexes | Members | Peers | Nothing | MissingList | Failed


class Observation(Struct, frozen=True, gc=False):
    """What one probe of a check found, and when it completed."""

    check: Check
    at: int
    found: Found


class Metrics(Struct, frozen=True, gc=False):
    """A row's numbers; what is not known is left out (R8)."""

    position: Annotated[Count, Meta(description="the service's own position: an index or a block")] | UnsetType = UNSET
    head: Annotated[Count, Meta(description="what the position is compared with")] | UnsetType = UNSET
    responding: Annotated[Count, Meta(description="broadcasters that answered")] | UnsetType = UNSET
    monitored: Annotated[Count, Meta(description="broadcasters that were checked")] | UnsetType = UNSET
    peers: Annotated[Count, Meta(description="connected peers of the messaging node")] | UnsetType = UNSET


NO_METRICS: Final = Metrics()


class Row(Struct, frozen=True, gc=False):
    """What is published about one check."""

    check: Check
    status: Status
    reason: Reason
    observed_at: int | None = None
    last_success_at: int | None = None
    expires_at: int | None = None
    metrics: Metrics = NO_METRICS


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
