"""The ppoi node: its status over JSON-RPC."""

import hashlib
import json
from typing import Final

from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, json_reply, rpc_error
from lookout.demo.sim.world import Network

REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
_NETWORKS: Final = {1: "Ethereum", 56: "BNB_Chain", 137: "Polygon", 42161: "Arbitrum", 11155111: "Ethereum_Sepolia"}


def _reply(asked: Asked) -> UpstreamReply:
    match json.loads(asked.body):
        case {"jsonrpc": "2.0", "method": "ppoi_node_status", "params": dict(), "id": request_id}:
            return json_reply({"jsonrpc": "2.0", "result": _node_status(asked), "id": request_id})
        case request:
            return json_reply(rpc_error(request, -32600, "Invalid Request"), 400)


def _node_status(asked: Asked) -> dict[str, object]:
    networks = (asked.world.network(chain.chain_id, asked.at) for chain in asked.world.layout)
    return {
        "forNetwork": {
            _NETWORKS.get(network.chain_id, str(network.chain_id)): _network_status(network)
            for network in networks
            if network is not None
        },
        "listKeys": [REQUIRED_LIST] if asked.world.carries_list(asked.at) else [],
    }


def _network_status(network: Network) -> dict[str, object]:
    current, validated = network.current, network.validated
    list_status = {
        "poiEventLengths": {"Shield": current // 2, "Transact": current // 3, "Unshield": 0, "LegacyTransact": 0},
        "historicalMerklerootsLength": current,
        "latestHistoricalMerkleroot": _root(network.chain_id, current),
    }
    return {
        "txidStatus": {
            "currentTxidIndex": current,
            "currentMerkleroot": _root(network.chain_id, current),
            "validatedTxidIndex": validated,
            "validatedMerkleroot": _root(network.chain_id, validated),
        },
        "listStatuses": {REQUIRED_LIST: list_status} if network.listed else {},
        "shieldQueueStatus": {"unknown": 0, "pending": 1, "allowed": current, "blocked": 0, "addedPOI": current},
    }


def _root(chain_id: int, index: int) -> str:
    return hashlib.sha256(f"{chain_id}/{index}".encode()).hexdigest()


NODE: Final = Upstream("POST", "/ppoi", "ppoi", _reply)
