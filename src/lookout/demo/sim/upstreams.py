"""The simulated upstreams but the waku node, each one value beside the functions that answer for it, without a network:
endpoints, which speak JSON-RPC as nodes do; squids, and an indexer with a plain JSON document of its position; the ppoi
node. GraphQL is canned: the variables of a query say what it asks for.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from lookout.demo.sim.chain import CONTRACT, EVENT, ContractEvent, HashedEntry, hash_of
from lookout.demo.sim.world import MOST_LOGS, EndpointHead, Network, World

_LONGEST_LIST: Final = 1_000  # as ``limit: 1000`` would cut it
REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
_NETWORKS: Final = {1: "Ethereum", 56: "BNB_Chain", 137: "Polygon", 42161: "Arbitrum", 11155111: "Ethereum_Sepolia"}


class UpstreamReply(NamedTuple):
    body: bytes
    content_type: str = "application/json"
    http_code: int = 200


class Asked(NamedTuple):
    world: World
    address: str
    query: Mapping[str, str]
    body: bytes
    at: int


class Upstream(NamedTuple):
    """``route`` is aiohttp's; ``address`` may have the route's variables in it."""

    method: str
    route: str
    address: str
    reply: Callable[[Asked], UpstreamReply]


def json_reply(document: object, http_code: int = 200) -> UpstreamReply:
    return UpstreamReply(json.dumps(document, separators=(",", ":")).encode(), http_code=http_code)


def text_reply(text: str, http_code: int) -> UpstreamReply:
    return UpstreamReply(text.encode(), "text/plain", http_code)


def rpc_error(request: object, code: int, message: str) -> dict[str, object]:
    request_id = request.get("id") if isinstance(request, dict) else None
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": request_id}


class CallError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _answer_call(asked: Asked) -> UpstreamReply:
    request = json.loads(asked.body)
    match request:
        case {"jsonrpc": "2.0", "method": str(method), "params": list(params), "id": request_id}:
            try:
                return json_reply({"jsonrpc": "2.0", "id": request_id, "result": _call(asked, method, params)})
            except CallError as error:
                return json_reply(rpc_error(request, error.code, str(error)))
        case _:
            return json_reply(rpc_error(request, -32600, "invalid request"))


def _call(asked: Asked, method: str, params: list[object]) -> object:
    head = asked.world.endpoint_head(asked.address, asked.at)
    match method, params:
        case "eth_chainId", _:
            return hex(head.chain_id)
        case "eth_blockNumber", _:
            return hex(head.height)
        case "eth_getBlockByNumber", ["latest", False]:
            return _block(head)
        case "eth_getLogs", [{"fromBlock": str(first), "toBlock": str(last), **wanted}]:
            return _logs(asked, head.chain_id, int(first, 16), int(last, 16), wanted)
        case _:
            raise CallError(-32601, f"the method {method} does not exist/is not available")


def _block(head: EndpointHead) -> dict[str, object]:
    """A block that replaces another of the same height came at another time, and so has another hash."""
    name = f"{head.chain_id}/{head.height}/{head.block_at}"
    return {
        "number": hex(head.height),
        "hash": "0x" + hashlib.sha256(name.encode()).hexdigest(),
        "parentHash": "0x" + hashlib.sha256(f"parent/{name}".encode()).hexdigest(),
        "timestamp": hex(head.block_at // 1000),
        "gasLimit": "0x1c9c380",
        "gasUsed": "0xe4e1c0",
        "transactions": [],
    }


def _logs(
    asked: Asked, chain_id: int, first: int, last: int, wanted: Mapping[object, object]
) -> list[dict[str, object]]:
    """The logs of the one contract and its one event, if the filter has them."""
    events = asked.world.logs(asked.address, first, last, asked.at)
    if events is None:
        raise CallError(-32005, f"query returned more than {MOST_LOGS} results, or the block range is too wide")
    match wanted:
        case {"address": list(contracts), "topics": [list(topics)]} if CONTRACT in contracts and EVENT in topics:
            return [_log(chain_id, event) for event in events]
        case _:
            return []


def _log(chain_id: int, event: ContractEvent) -> dict[str, object]:
    return {
        "address": CONTRACT,
        "topics": [EVENT],
        "data": "0x",
        "blockNumber": hex(event.block),
        "blockHash": hash_of("block", chain_id, event.block),
        "transactionHash": event.transaction,
        "transactionIndex": "0x0",
        "logIndex": hex(event.log_index),
        "removed": False,
    }


ENDPOINT: Final = Upstream("POST", "/rpc/{chain}/{letter}", "rpc/{chain}/{letter}", _answer_call)


def _answer_squid(asked: Asked) -> UpstreamReply:
    return json_reply({"data": _squid_data(asked)})


def _squid_data(asked: Asked) -> dict[str, object]:
    """The status, the transactions of a range of blocks, the entries from an id on, or the number of entries up to a
    block."""
    world, address = asked.world, asked.address
    match json.loads(asked.body).get("variables"):
        case {"from": first, "to": last}:
            events = world.listed(address, int(first), int(last), asked.at)
            return {"transactions": [_describe_event(event) for event in events[:_LONGEST_LIST]]}
        case {"id": entry_id}:
            entries = world.entries_from(address, entry_id, asked.at)
            return {"transactions": [_describe_entry(entry) for entry in entries[:_LONGEST_LIST]]}
        case {"to": last}:
            return {"transactionsConnection": {"totalCount": world.count_listed(address, int(last), asked.at)}}
        case _:
            return {"squidStatus": {"height": world.indexed(address, asked.at).height}}


def _describe_event(event: ContractEvent) -> dict[str, object]:
    return {"transactionHash": event.transaction, "blockNumber": event.block}


def _describe_entry(entry: HashedEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "blockNumber": str(entry.block),
        "transactionHash": entry.transaction,
        "nullifiers": [entry.value],
        "verificationHash": entry.hash,
    }


def _answer_document(asked: Asked) -> UpstreamReply:
    indexed = asked.world.indexed(asked.address, asked.at)
    last_block = indexed.height if indexed.has_blocks else None
    return json_reply({"status": {"chainId": indexed.chain_id, "lastBlock": last_block}})


SQUID: Final = Upstream("POST", "/{family:squid|hosted}/{chain}/graphql", "{family}/{chain}", _answer_squid)
DOCUMENT: Final = Upstream("GET", "/json/{chain}", "json/{chain}", _answer_document)


def _answer_node(asked: Asked) -> UpstreamReply:
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


NODE: Final = Upstream("POST", "/ppoi", "ppoi", _answer_node)
