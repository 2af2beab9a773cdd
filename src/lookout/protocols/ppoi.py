"""PPOI node (private proof of innocence): one answer with the indexes of every network it serves."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from lookout.core.model import Check, Failed, Found, Indexes, MissingList, Nothing
from lookout.protocols.answers import call, count, entries, open_value, result_of, table
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import Request
from lookout.protocols.settings import PPOI_NETWORKS, Ppoi
from lookout.protocols.source import OneRequest

_REQUEST_ID: Final = 1


def ppoi_source(settings: Ppoi) -> OneRequest:
    networks = {**PPOI_NETWORKS, **{int(chain_id): name for chain_id, name in settings.networks.items()}}
    named = {chain_id: networks.get(chain_id) for chain_id in settings.chains}
    return OneRequest(
        "ppoi",
        tuple(Check("ppoi", chain_id) for chain_id in settings.chains),
        Request("POST", settings.url, settings.headers, call("ppoi_node_status", {}, _REQUEST_ID)),
        lambda body: parse_node_status(body, named, settings.required_list),
    )


def parse_node_status(body: bytes, networks: Mapping[int, str | None], required_list: str) -> dict[Check, Found]:
    """What the node has for each chain. A network that is not understood fails alone."""
    status = table(result_of(body, _REQUEST_ID), "no status")
    for_network = table(status.get("forNetwork"), "no forNetwork")
    list_keys = open_value(status.get("listKeys", []))  # once, for it is as long as the node likes
    found: dict[Check, Found] = {}
    for chain_id, name in networks.items():
        try:
            found[Check("ppoi", chain_id)] = _parse_network(for_network, name, list_keys, required_list)
        except ProbeFailed as failure:
            found[Check("ppoi", chain_id)] = Failed(failure.reason)
    return found


def _parse_network(for_network: dict[str, Any], name: str | None, list_keys: Any, required_list: str) -> Found:
    if name not in for_network:  # before the list: a node without the network cannot carry a list for it
        return Nothing()
    network = table(for_network[name], "a network")
    # Compared as it is written: the others need not be opened for that.
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
