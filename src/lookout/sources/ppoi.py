"""PPOI node (private proof of innocence): one answer with the indexes of every network it serves."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lookout.core.model import Check, Failed, Found, Indexes, MissingList, Nothing
from lookout.settings import PPOI_NETWORKS, Ppoi
from lookout.sources.answers import call, count, entries, result_of, table
from lookout.sources.failure import ProbeFailed
from lookout.sources.fetching import MIB, Request
from lookout.sources.source import OneRequest

LIMIT_BYTES: Final = 2 * MIB  # a status tells of every list on every network
_REQUEST_ID: Final = 1


def ppoi_source(settings: Ppoi) -> OneRequest:
    networks = {**PPOI_NETWORKS, **{int(chain_id): name for chain_id, name in settings.networks.items()}}
    named = {chain_id: networks.get(chain_id) for chain_id in settings.chains}
    return OneRequest(
        "ppoi",
        tuple(Check("ppoi", chain_id) for chain_id in settings.chains),
        Request("POST", settings.url, settings.headers, call("ppoi_node_status", {}, _REQUEST_ID), LIMIT_BYTES),
        lambda body: parse_node_status(body, named, settings.required_list),
    )


def parse_node_status(body: bytes, networks: Mapping[int, str | None], required_list: str) -> dict[Check, Found]:
    """What the node has for each chain. A network that is not understood fails alone."""
    status = table(result_of(body, _REQUEST_ID), "no status")
    for_network = table(status.get("forNetwork"), "no forNetwork")
    found: dict[Check, Found] = {}
    for chain_id, name in networks.items():
        try:
            found[Check("ppoi", chain_id)] = _parse_network(for_network, name, status, required_list)
        except ProbeFailed as failure:
            found[Check("ppoi", chain_id)] = Failed(failure.reason)
    return found


def _parse_network(for_network: dict[str, Any], name: str | None, status: dict[str, Any], required_list: str) -> Found:
    if name not in for_network:  # before the list: a node without the network cannot carry a list for it
        return Nothing()
    network = table(for_network[name], "a network")
    carried: tuple[Iterable[Any], ...] = (
        entries(status.get("listKeys", []), "listKeys"),
        table(network.get("listStatuses", {}), "listStatuses"),
    )
    if any(required_list not in keys for keys in carried):
        return MissingList()
    txids = table(network.get("txidStatus", {}), "txidStatus")
    if "validatedTxidIndex" not in txids or "currentTxidIndex" not in txids:  # absent is unknown, never 0
        return Nothing()
    return Indexes(
        count(txids["validatedTxidIndex"], "validatedTxidIndex"),
        count(txids["currentTxidIndex"], "currentTxidIndex"),
    )
