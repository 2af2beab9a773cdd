"""The table of the configuration that names the broadcasters to watch."""

from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from lookout.base.setting_types import ByChain, Chains, Duration, DurationOrZero, Positive, Text, Url, must
from lookout.protocols.broadcasters.announcements import ADDRESS_LENGTH, viewing_key
from lookout.protocols.tables import SourceTable

BroadcasterAddress = Annotated[
    str,
    Meta(min_length=1),
    must(
        lambda address: viewing_key(address) is not None,
        f"is no 0zk1 address, or mistyped; copy all {ADDRESS_LENGTH} characters",
    ),
]


class BroadcastersTable(SourceTable, frozen=True):
    url: Url
    chains: Chains
    via: Literal["store", "relay"] = "store"
    pubsub_topic: Text = "/waku/2/rs/5/1"
    content_topic: Annotated[
        str, Meta(min_length=1), must(lambda topic: "{chainId}" in topic, "has to contain {chainId}")
    ] = "/railgun/v2/0-{chainId}-fees/json"
    limit: Positive = 20
    fresh_s: Duration = 120
    expiry_margin_s: DurationOrZero = 40
    seen_s: Duration = 86_400
    members: ByChain[tuple[BroadcasterAddress, ...]] = field(default_factory=dict)

    def address(self) -> str:
        return self.url

    def by_source(self) -> tuple["BroadcastersTable", ...]:
        """The settings of each source. A store is asked for each chain on its own, so that none waits for another (M6).
        A relay has one cache for all chains, which reading empties."""
        if self.via == "relay":
            return (self,)
        return tuple(replace(self, chains=(chain,), members=self._members_of(chain)) for chain in self.chains)

    def _members_of(self, chain_id: int) -> dict[str, tuple[str, ...]]:
        return {chain: listed for chain, listed in self.members.items() if chain == str(chain_id)}

    def chain_ids(self) -> tuple[int | None, ...]:
        return self.chains
