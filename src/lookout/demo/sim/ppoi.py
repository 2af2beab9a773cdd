"""The ppoi node: its status over JSON-RPC and over GET, with the errors of its web framework."""

import hashlib
import json
from typing import Final

from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, html_reply, json_reply, rpc_error
from lookout.demo.sim.world import Network

REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
_NETWORKS: Final = {1: "Ethereum", 56: "BNB_Chain", 137: "Polygon", 42161: "Arbitrum", 11155111: "Ethereum_Sepolia"}


def _reply(asked: Asked) -> UpstreamReply | None:
    match asked.method, asked.path.removesuffix("/"):
        case "GET", "":
            return json_reply({"status": "ok"})
        case "GET", "/node-status-v2":
            return json_reply(_node_status(asked))
        case "POST", "":
            return _rpc_reply(asked)
        case method, path:
            return html_reply(f"Cannot {method} {path or '/'}", 404)


def _rpc_reply(asked: Asked) -> UpstreamReply | None:
    try:
        request = json.loads(asked.body)
    except ValueError as problem:
        return html_reply(f"SyntaxError: {problem}", 400)
    match request:
        case {"jsonrpc": "2.0", "method": "ppoi_node_status", "params": dict()}:
            return json_reply({"jsonrpc": "2.0", "result": _node_status(asked), "id": request.get("id")})
        case {"jsonrpc": "2.0", "method": "ppoi_node_status", "params": _}:
            return json_reply(rpc_error(request, -32602, "Invalid params"), 400)
        case {"jsonrpc": "2.0", "method": "ppoi_node_status"}:
            return None  # the real one never answers when params are left out
        case {"jsonrpc": "2.0", "method": str(method)}:
            return json_reply(rpc_error(request, -32601, f"Method not found: {method}"), 404)
        case _:
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
    indexes = {
        "currentTxidIndex": current,
        "currentMerkleroot": _root(network.chain_id, current),
        "validatedTxidIndex": validated,
        "validatedMerkleroot": _root(network.chain_id, validated),
    }
    list_status = {
        "poiEventLengths": {"Shield": current // 2, "Transact": current // 3, "Unshield": 0, "LegacyTransact": 0},
        "historicalMerklerootsLength": current,
        "latestHistoricalMerkleroot": _root(network.chain_id, current),
    }
    return {
        "txidStatus": indexes if network.indexed else {},
        "listStatuses": {REQUIRED_LIST: list_status} if network.listed else {},
        "shieldQueueStatus": {"unknown": 0, "pending": 1, "allowed": current, "blocked": 0, "addedPOI": current},
    }


def _root(chain_id: int, index: int) -> str:
    return hashlib.sha256(f"{chain_id}/{index}".encode()).hexdigest()


NODE: Final = Upstream("*", "/ppoi{path:(/.*)?}", "ppoi", _reply)
