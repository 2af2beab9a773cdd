"""A chain's endpoint, and an RPC provider, which is one more of them."""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Final

from lookout.demo.sim.http.jsonrpc import CallError, answer_calls
from lookout.demo.sim.http.reply import UpstreamReply
from lookout.demo.sim.http.upstream import Asked, Upstream
from lookout.demo.sim.transactions import CONTRACT, EVENT, ContractEvent, block_of, events_between, hash_of
from lookout.demo.sim.upstreams import MOST_LOGS
from lookout.demo.sim.world import HeadAnswer

_EMPTY: Final = "0x" + "00" * 32


def _call(asked: Asked, method: str, params: object) -> object:
    head = asked.upstreams.head(asked.address, asked.at)
    match method, params:
        case "eth_chainId", _:
            return hex(head.chain_id)
        case "eth_blockNumber", _:
            return hex(head.height)
        case "eth_getBlockByNumber", ["latest", bool()]:
            return _block(head)
        case "eth_getBlockByNumber", _:
            raise CallError(-32602, "invalid argument 0: only the latest block is simulated")
        case "eth_getLogs", [{"fromBlock": str(first), "toBlock": str(last), **of}]:
            return _logs(asked, head.chain_id, _parse_block(first), _parse_block(last), of)
        case "eth_getTransactionReceipt", [str(transaction)]:
            return _receipt(head, transaction)
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


def _logs(asked: Asked, chain_id: int, first: int, last: int, of: Mapping[object, object]) -> list[dict[str, object]]:
    """The logs of the one contract and its one event, if the filter has them."""
    events = asked.upstreams.logs(asked.address, first, last, asked.at)
    if events is None:
        raise CallError(-32005, f"query returned more than {MOST_LOGS} results, or the block range is too wide")
    match of.get("topics"):
        case None | [] | [None, *_]:
            topics: object = EVENT
        case [topics, *_]:
            pass
        case _:
            raise CallError(-32602, "invalid argument 0: topics")
    if CONTRACT not in _one_or_more(of.get("address", CONTRACT)) or EVENT not in _one_or_more(topics):
        return []
    return [_log(chain_id, event) for event in events]


def _receipt(head: HeadAnswer, transaction: str) -> dict[str, object] | None:
    block = block_of(head.chain_id, transaction)
    if block is None or block > head.height:
        return None
    return {
        "transactionHash": transaction,
        "transactionIndex": "0x0",
        "blockNumber": hex(block),
        "blockHash": hash_of("block", head.chain_id, block),
        "status": "0x1",
        "logs": [_log(head.chain_id, event) for event in events_between(head.chain_id, block, block)],
    }


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


def _hash(head: HeadAnswer, of: str) -> str:
    """A block that replaces another of the same height came at another time, and so has another hash."""
    return "0x" + hashlib.sha256(f"{of}/{head.chain_id}/{head.height}/{head.block_at}".encode()).hexdigest()


def _reply(asked: Asked) -> UpstreamReply:
    return answer_calls(asked.body, partial(_call, asked))


ENDPOINT: Final = Upstream("POST", "/rpc/{chain}/{letter}", "rpc/{chain}/{letter}", _reply)
PROVIDER: Final = Upstream("POST", "/provider/{chain}", "provider/{chain}", _reply)
