"""The ppoi node: its status over JSON-RPC and over GET, with the answers that its web framework gives of itself."""

import hashlib
import json
from collections.abc import Iterable
from typing import Final

from lookout.demo.sim.announcements import REQUIRED_LIST
from lookout.demo.sim.http.reply import UpstreamReply, html_reply, json_reply
from lookout.demo.sim.http.upstream import Asked, Upstream
from lookout.demo.sim.upstreams import Network

NETWORKS: Final = {
    1: "Ethereum",
    56: "BNB_Chain",
    137: "Polygon",
    42161: "Arbitrum",
    11155111: "Ethereum_Sepolia",
}


def node_status(networks: Iterable[Network], *, carries_list: bool) -> dict[str, object]:
    """The status as a document."""
    return {
        "forNetwork": {
            NETWORKS.get(network.chain_id, str(network.chain_id)): _network_status(network) for network in networks
        },
        "listKeys": [REQUIRED_LIST] if carries_list else [],
    }


def ppoi_reply(method: str, path: str, body: bytes, status: dict[str, object]) -> UpstreamReply | None:
    """What a node with this status answers to a request for a path beneath it; None if it never does."""
    match method, path.removesuffix("/"):
        case "GET", "":
            return json_reply({"status": "ok"})
        case "GET", "/node-status-v2":
            return json_reply(status)
        case "POST", "":
            return _rpc_reply(body, status)
        case _:
            return html_reply(f"Cannot {method} {path or '/'}", 404)


def _rpc_reply(body: bytes, status: dict[str, object]) -> UpstreamReply | None:
    try:
        request = json.loads(body)
    except ValueError as problem:
        return html_reply(f"SyntaxError: {problem}", 400)
    match request:
        case {"jsonrpc": "2.0", "method": "ppoi_node_status", "params": dict()}:
            return json_reply({"jsonrpc": "2.0", "result": status, "id": request.get("id")})
        case {"jsonrpc": "2.0", "method": "ppoi_node_status", "params": _}:
            return _error(request, -32602, "Invalid params", 400)
        case {"jsonrpc": "2.0", "method": "ppoi_node_status"}:
            return None  # the real one never answers when params are left out
        case {"jsonrpc": "2.0", "method": str(method)}:
            return _error(request, -32601, f"Method not found: {method}", 404)
        case _:
            return _error(request, -32600, "Invalid Request", 400)


def _error(request: object, code: int, message: str, http_code: int) -> UpstreamReply:
    request_id = request.get("id") if isinstance(request, dict) else None
    return json_reply({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": request_id}, http_code)


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
        "listProviderPOIEventQueueLength": 0,
        "pendingTransactProofs": 0,
        "blockedShields": 0,
        "historicalMerklerootsLength": current,
        "latestHistoricalMerkleroot": _root(network.chain_id, current),
    }
    return {
        "txidStatus": indexes if network.indexed else {},
        "listStatuses": {REQUIRED_LIST: list_status} if network.listed else {},
        "shieldQueueStatus": {"unknown": 0, "pending": 1, "allowed": current, "blocked": 0, "addedPOI": current},
        "legacyTransactProofs": 0,
    }


def _root(chain_id: int, index: int) -> str:
    return hashlib.sha256(f"{chain_id}/{index}".encode()).hexdigest()


def _reply(asked: Asked) -> UpstreamReply | None:
    networks, carries_list = asked.upstreams.networks(asked.at), asked.upstreams.carries_list(asked.at)
    return ppoi_reply(asked.method, asked.path, asked.body, node_status(networks, carries_list=carries_list))


NODE: Final = Upstream("*", "/ppoi{path:(/.*)?}", "ppoi", _reply)
