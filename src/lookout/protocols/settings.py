"""The tables of the configuration that name what is watched."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from lookout.base.problem import Problem
from lookout.base.setting_types import (
    Duration,
    DurationOrZero,
    Headers,
    KeyedByChain,
    Natural,
    Positive,
    Table,
    Text,
    Url,
    chain_ids,
    must,
)
from lookout.protocols.broadcasters.addresses import ADDRESS_LENGTH, viewing_key

# The ppoi node's own names of the networks that are built in.
PPOI_NETWORKS: Final[Mapping[int, str]] = {
    1: "Ethereum",
    56: "BNB_Chain",
    137: "Polygon",
    42161: "Arbitrum",
    11155111: "Ethereum_Sepolia",
}

Chains = Annotated[tuple[Positive, ...], Meta(min_length=1)]
BroadcasterAddress = Annotated[
    str,
    Meta(min_length=1),
    must(
        lambda address: viewing_key(address) is not None,
        f"is no 0zk1 address, or mistyped; copy all {ADDRESS_LENGTH} characters",
    ),
]


class Ppoi(Table, frozen=True):
    url: Url
    required_list: Text
    chains: Chains
    networks: Annotated[dict[str, Text], KeyedByChain] = field(default_factory=dict)
    headers: Headers = field(default_factory=dict)

    def checks(self) -> Iterable[Iterable[Problem]]:
        return (self._check_names(),)

    def _check_names(self) -> Iterator[Problem]:
        named = {*PPOI_NETWORKS, *chain_ids(self.networks)}
        for chain_id in dict.fromkeys(self.chains):
            if chain_id not in named:
                yield Problem("networks", f"has no name for chain {chain_id}, and none is built in")


class Indexer(Table, frozen=True):
    chain: Positive
    kind: Literal["squid", "subgraph", "ponder", "json"]
    url: Url
    confirmations: Natural
    deployment: str = ""
    pointer: str = ""
    headers: Headers = field(default_factory=dict)

    def checks(self) -> Iterable[Iterable[Problem]]:
        return self._check_pointer(), self._check_deployment()

    def _check_pointer(self) -> Iterator[Problem]:
        if self.kind != "json":
            if self.pointer:
                yield Problem("pointer", 'is for kind "json" alone')
            return
        if not self.pointer.startswith("/"):
            yield Problem("pointer", 'kind "json" needs a JSON Pointer such as "/status/lastBlock"')
        if re.search(r"~(?![01])", self.pointer):
            yield Problem("pointer", "has a ~ that is not part of ~0 or ~1")

    def _check_deployment(self) -> Iterator[Problem]:
        if self.kind != "subgraph" and self.deployment:
            yield Problem("deployment", 'is for kind "subgraph" alone')


class Messaging(Table, frozen=True):
    url: Url
    headers: Headers = field(default_factory=dict)


class Broadcasters(Table, frozen=True):
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
    members: Annotated[dict[str, tuple[BroadcasterAddress, ...]], KeyedByChain] = field(default_factory=dict)
    headers: Headers = field(default_factory=dict)

    def by_source(self) -> tuple["Broadcasters", ...]:
        """The settings of each source. A store is asked for each chain on its own, so that none waits for another (M6).
        A relay has one cache for all chains, which reading empties."""
        if self.via == "relay":
            return (self,)
        return tuple(replace(self, chains=(each,), members=self._members_of(each)) for each in self.chains)

    def _members_of(self, chain_id: int) -> dict[str, tuple[str, ...]]:
        return {chain: listed for chain, listed in self.members.items() if chain == str(chain_id)}


SourceSettings = Messaging | Ppoi | Broadcasters | Indexer
