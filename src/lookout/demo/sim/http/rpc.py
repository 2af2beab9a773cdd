"""A chain's endpoint: JSON-RPC, single requests and batches, as a node answers them."""

import hashlib
import json
from typing import Final

from lookout.demo.sim.http.reply import Reply, json_reply
from lookout.demo.sim.http.upstream import Upstream
from lookout.demo.sim.world import HeadAnswer

_EMPTY: Final = "0x" + "00" * 32


def rpc_reply(body: bytes, head: HeadAnswer) -> Reply:
    """What an endpoint with this head answers."""
    try:
        request = json.loads(body)
    except ValueError:
        return json_reply(_error(None, -32700, "parse error"))
    if isinstance(request, list) and request:
        return json_reply([_answer(each, head) for each in request])
    return json_reply(_answer(request, head))


def _answer(request: object, head: HeadAnswer) -> dict[str, object]:
    match request:
        case {"jsonrpc": "2.0", "method": str(method), "id": request_id, **further}:
            params = further.get("params", [])
        case _:
            return _error(None, -32600, "invalid request")
    match method, params:
        case "eth_chainId", _:
            return _result(request_id, hex(head.chain_id))
        case "eth_blockNumber", _:
            return _result(request_id, hex(head.height))
        case "eth_getBlockByNumber", ["latest", bool()]:
            return _result(request_id, _block(head))
        case "eth_getBlockByNumber", _:
            return _error(request_id, -32602, "invalid argument 0: only the latest block is simulated")
        case _:
            return _error(request_id, -32601, f"the method {method} does not exist/is not available")


def _block(head: HeadAnswer) -> dict[str, object]:
    return {
        "number": hex(head.height),
        "hash": _hash(head, "hash"),
        "parentHash": _hash(head, "parent"),
        "timestamp": hex(head.block_at // 1000),
        "baseFeePerGas": "0x3b9aca00",
        "difficulty": "0x0",
        "extraData": "0x",
        "gasLimit": "0x1c9c380",
        "gasUsed": "0xe4e1c0",
        "logsBloom": "0x" + "00" * 256,
        "miner": "0x" + "00" * 20,
        "mixHash": _EMPTY,
        "nonce": "0x0000000000000000",
        "receiptsRoot": _hash(head, "receipts"),
        "sha3Uncles": _EMPTY,
        "size": "0x220",
        "stateRoot": _hash(head, "state"),
        "transactions": [],
        "transactionsRoot": _hash(head, "transactions"),
        "uncles": [],
    }


def _hash(head: HeadAnswer, of: str) -> str:
    """A block that replaces another of the same height came at another time, and so has another hash."""
    return "0x" + hashlib.sha256(f"{of}/{head.chain_id}/{head.height}/{head.block_at}".encode()).hexdigest()


def _result(request_id: object, result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _error(request_id: object, code: int, message: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


ENDPOINT: Final = Upstream(
    "POST",
    "/rpc/{chain}/{letter}",
    "rpc/{chain}/{letter}",
    lambda asked: rpc_reply(asked.body, asked.upstreams.head(asked.address, asked.at)),
)
