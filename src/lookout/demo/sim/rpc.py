"""What speaks JSON-RPC as nodes do: the endpoints of a chain, an RPC provider, an ERC-4337 bundler; and a relayer."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from lookout.demo.sim.chain import CONTRACT, EVENT, ContractEvent, hash_of
from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, json_reply, rpc_error
from lookout.demo.sim.world import MOST_LOGS, EndpointHead

_ENTRY_POINTS: Final = ("0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789", "0x0000000071727De22E5E9d8BAf0efAc6f37da032")

Call = Callable[[str, object], object]


class CallError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def _answer_calls(body: bytes, call: Call) -> UpstreamReply:
    try:
        request = json.loads(body)
    except ValueError:
        return json_reply(rpc_error(None, -32700, "parse error"))
    if isinstance(request, list) and request:
        return json_reply([_answer_call(one, call) for one in request])
    return json_reply(_answer_call(request, call))


def _answer_call(request: object, call: Call) -> dict[str, object]:
    match request:
        case {"jsonrpc": "2.0", "method": str(method), "id": request_id, **further}:
            try:
                return {"jsonrpc": "2.0", "id": request_id, "result": call(method, further.get("params", []))}
            except CallError as error:
                return rpc_error(request, error.code, str(error))
        case _:
            return rpc_error(None, -32600, "invalid request")


def _call_node(asked: Asked, method: str, params: object) -> object:
    head = asked.world.endpoint_head(asked.address, asked.at)
    match method, params:
        case "eth_chainId", _:
            return hex(head.chain_id)
        case "eth_blockNumber", _:
            return hex(head.height)
        case "eth_getBlockByNumber", ["latest", bool()]:
            return _block(head)
        case "eth_getBlockByNumber", _:
            raise CallError(-32602, "invalid argument 0: only the latest block is simulated")
        case "eth_getLogs", [{"fromBlock": str(first), "toBlock": str(last), **wanted}]:
            return _logs(asked, head.chain_id, _parse_block(first), _parse_block(last), wanted)
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
    match wanted.get("topics"):
        case None | [] | [None, *_]:
            topics: object = EVENT
        case [topics, *_]:
            pass
        case _:
            raise CallError(-32602, "invalid argument 0: topics")
    if CONTRACT not in _one_or_more(wanted.get("address", CONTRACT)) or EVENT not in _one_or_more(topics):
        return []
    return [_log(chain_id, event) for event in events]


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


def _parse_block(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise CallError(-32602, "invalid argument 0: a block that is no number") from None


def _one_or_more(wanted: object) -> list[object]:
    return wanted if isinstance(wanted, list) else [wanted]


def _node_reply(asked: Asked) -> UpstreamReply:
    return _answer_calls(asked.body, partial(_call_node, asked))


def _bundler_reply(asked: Asked) -> UpstreamReply:
    def call(method: str, _params: object) -> object:
        match method:
            case "eth_chainId":
                return hex(asked.world.endpoint_head(asked.address, asked.at).chain_id)
            case "eth_supportedEntryPoints":
                return [] if asked.world.has(asked.address, "no-entry-point", asked.at) else _ENTRY_POINTS
            case _:
                raise CallError(-32601, f"Method {method} not supported")

    return _answer_calls(asked.body, call)


def _relayer_reply(asked: Asked) -> UpstreamReply:
    status = "paused" if asked.world.has(asked.address, "paused", asked.at) else "ok"
    return json_reply({"status": status, "wallets": 3})


ENDPOINT: Final = Upstream("POST", "/rpc/{chain}/{letter}", "rpc/{chain}/{letter}", _node_reply)
PROVIDER: Final = Upstream("POST", "/provider/{chain}", "provider/{chain}", _node_reply)
BUNDLER: Final = Upstream("POST", "/bundler/{chain}", "bundler/{chain}", _bundler_reply)
RELAYER: Final = Upstream("GET", "/relayer", "relayer", _relayer_reply)
