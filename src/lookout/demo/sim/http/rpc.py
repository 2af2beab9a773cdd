"""A chain's endpoint, and an RPC provider, which is one more of them."""

import hashlib
from functools import partial
from typing import Final

from lookout.demo.sim.http.jsonrpc import CallError, answer_calls
from lookout.demo.sim.http.reply import Reply
from lookout.demo.sim.http.upstream import Asked, Upstream
from lookout.demo.sim.world import HeadAnswer

_EMPTY: Final = "0x" + "00" * 32


def _call(head: HeadAnswer, method: str, params: object) -> object:
    match method, params:
        case "eth_chainId", _:
            return hex(head.chain_id)
        case "eth_blockNumber", _:
            return hex(head.height)
        case "eth_getBlockByNumber", ["latest", bool()]:
            return _block(head)
        case "eth_getBlockByNumber", _:
            raise CallError(-32602, "invalid argument 0: only the latest block is simulated")
        case _:
            raise CallError(-32601, f"the method {method} does not exist/is not available")


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


def _reply(asked: Asked) -> Reply:
    return answer_calls(asked.body, partial(_call, asked.upstreams.head(asked.address, asked.at)))


ENDPOINT: Final = Upstream("POST", "/rpc/{chain}/{letter}", "rpc/{chain}/{letter}", _reply)
PROVIDER: Final = Upstream("POST", "/provider/{chain}", "provider/{chain}", _reply)
