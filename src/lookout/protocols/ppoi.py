"""PPOI node (private proof of innocence): one answer with the indexes of every network it serves."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Raw, field

from lookout.base.problem import Problem
from lookout.base.setting_types import ByChain, Chains, Text, Url, chain_ids, must
from lookout.core.model import Check, Failed, Found, Indexes, MissingList, Nothing
from lookout.protocols.answers import call, count, entries, open_value, result_of, table
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request, SourceTable
from lookout.protocols.source import OneRequest, OwnTableProtocol
from lookout.protocols.squid import SquidTable

_REQUEST_ID: Final = 1
# The ppoi node's own names of the networks that are built in.
NETWORKS: Final[Mapping[int, str]] = {
    1: "Ethereum",
    56: "BNB_Chain",
    137: "Polygon",
    42161: "Arbitrum",
    11155111: "Ethereum_Sepolia",
}

_INDEXER_OR_NONE: Final = must(
    lambda name: name in ("", "indexer", "hosted-indexer"), 'has to be "indexer", "hosted-indexer" or "" for none'
)


class PpoiTable(SourceTable, frozen=True):
    url: Url
    """The node's base address."""
    required_list: Text
    """The key of the list that the node has to have on each chain (S13)."""
    chains: Chains
    """Where it is monitored."""
    networks: ByChain[Text] = field(default_factory=dict)
    """The node's names of further networks than the five chains, such as `{"31337" = "Hardhat"}`."""
    agrees_with: Annotated[str, _INDEXER_OR_NONE] = ""
    """[Compare](operations.md#complete-lists) the node with that indexer's list (S21), on chains where it is a squid of
    RAILGUN.
    Allowed: `"indexer"`, `"hosted-indexer"`, `""` for none"""

    def address(self) -> str:
        return self.url

    def check(self) -> Iterator[Problem]:
        named = {*NETWORKS, *chain_ids(self.networks)}
        for chain_id in dict.fromkeys(self.chains):
            if chain_id not in named:
                yield Problem("networks", f"has no name for chain {chain_id}, and none is built in")

    def chain_ids(self) -> tuple[int | None, ...]:
        return self.chains


def find_compared_lists(tables: Mapping[Check, SourceTable]) -> dict[Check, tuple[Check, SquidTable]]:
    """For each ppoi check with ``agrees_with``: the indexer's check and table, whose entries are counted (S21)."""
    compared = {}
    for check, node in tables.items():
        if isinstance(node, PpoiTable) and node.agrees_with:
            indexer = Check(node.agrees_with, check.chain_id)
            table = tables.get(indexer)
            if isinstance(table, SquidTable):
                compared[check] = indexer, table
    return compared


def ppoi_source(service: str, settings: PpoiTable) -> OneRequest:
    networks = {**NETWORKS, **{int(chain_id): name for chain_id, name in settings.networks.items()}}
    named = {chain_id: networks.get(chain_id) for chain_id in settings.chains}
    return OneRequest(
        service,
        tuple(Check(service, chain_id) for chain_id in settings.chains),
        Request("POST", settings.url, settings, call("ppoi_node_status", {}, _REQUEST_ID)),
        lambda body: {
            Check(service, chain_id): found
            for chain_id, found in parse_node_status(body, named, settings.required_list).items()
        },
    )


def parse_node_status(body: bytes, networks: Mapping[int, str | None], required_list: str) -> dict[int, Found]:
    """The node's answer by chain. A malformed network fails alone."""
    status = table(result_of(body, _REQUEST_ID), "no status")
    for_network = table(status.get("forNetwork"), "no forNetwork")
    list_keys = open_value(status.get("listKeys", []))  # once, since the node decides its length
    found: dict[int, Found] = {}
    for chain_id, name in networks.items():
        try:
            found[chain_id] = _parse_network(for_network, name, list_keys, required_list)
        except ProbeFailed as failure:
            found[chain_id] = Failed(failure.reason)
    return found


def _parse_network(for_network: dict[str, Any], name: str | None, list_keys: Any, required_list: str) -> Found:
    if name not in for_network:  # before the list: a node without the network cannot carry a list for it
        return Nothing()
    network = table(for_network[name], "a network")
    # Compared as raw bytes, so that the others stay unopened.
    is_listed = Raw(msgspec.json.encode(required_list)) in entries(list_keys, "listKeys")
    if not is_listed or required_list not in table(network.get("listStatuses", {}), "listStatuses"):
        return MissingList()
    txids = table(network.get("txidStatus", {}), "txidStatus")
    if "validatedTxidIndex" not in txids or "currentTxidIndex" not in txids:  # absent is unknown, never 0
        return Nothing()
    return Indexes(
        count(txids["validatedTxidIndex"], "validatedTxidIndex"),
        count(txids["currentTxidIndex"], "currentTxidIndex"),
    )


PPOI: Final = OwnTableProtocol("ppoi", Indexes, PpoiTable, lambda service, settings: (ppoi_source(service, settings),))
