"""The endpoints of a chain, which speak JSON-RPC as nodes do."""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from lookout.demo.sim.chain import CONTRACT, EVENT, ContractEvent, hash_of
from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, json_reply, rpc_error
from lookout.demo.sim.world import MOST_LOGS, EndpointHead


class CallError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _reply(asked: Asked) -> UpstreamReply:
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


ENDPOINT: Final = Upstream("POST", "/rpc/{chain}/{letter}", "rpc/{chain}/{letter}", _reply)
