"""The logs of contracts' events on an EVM chain, and which of them a transaction has (S17)."""

from typing import Any, Final, NamedTuple

from lookout.core.completeness.asks import Log, Receipt
from lookout.protocols.answers import call, entries, hexadecimal, open_value, quantity, result_of, table
from lookout.protocols.client.failure import not_understood

HASH_BYTES: Final = 32
_ADDRESS_BYTES: Final = 20
_LOGS: Final = 3
_RECEIPT: Final = 4


class EventFilter(NamedTuple):
    """Logs of any of these contracts with any of these first topics, all in small letters."""

    contracts: tuple[str, ...]
    events: tuple[str, ...]


def call_logs(of: EventFilter, first: int, last: int) -> bytes:
    asked = {"address": of.contracts, "topics": [of.events], "fromBlock": hex(first), "toBlock": hex(last)}
    return call("eth_getLogs", [asked], _LOGS)


def call_receipt(transaction: str) -> bytes:
    return call("eth_getTransactionReceipt", [transaction], _RECEIPT)


def parse_logs(body: bytes, of: EventFilter, first: int, last: int) -> frozenset[Log]:
    """All of them have to be what was asked for, each once, and of one chain of blocks."""
    logs = [_parse_log(each, of, first, last) for each in entries(result_of(body, _LOGS), "no logs")]
    if len({(log.block, log.number) for log in logs}) < len(logs):
        raise not_understood("a log is there twice")
    hashes = {(log.block, log.block_hash) for log in logs}
    if len({block for block, _ in hashes}) < len(hashes):
        raise not_understood("a block has two hashes")
    return frozenset(logs)


def parse_receipt(body: bytes, of: EventFilter, transaction: str) -> Receipt | None:
    """None if the node does not have it."""
    result = open_value(result_of(body, _RECEIPT))
    if result is None:
        return None
    receipt = table(result, "no receipt")
    if hexadecimal(receipt.get("transactionHash"), HASH_BYTES, "the transaction's hash") != transaction:
        raise not_understood("a receipt of another transaction")
    block = quantity(receipt.get("blockNumber"), "the block number")
    matching = [_matches(_open_log(each), of) for each in entries(receipt.get("logs"), "no logs")]
    return Receipt(block, any(matching))


def _parse_log(value: Any, of: EventFilter, first: int, last: int) -> Log:
    log = _open_log(value)
    block = quantity(log.get("blockNumber"), "a log's block number")
    if not first <= block <= last:
        raise not_understood("a log of another block")
    if not _matches(log, of):
        raise not_understood("a log of something else")
    return Log(
        block,
        hexadecimal(log.get("blockHash"), HASH_BYTES, "a block's hash"),
        hexadecimal(log.get("transactionHash"), HASH_BYTES, "a transaction's hash"),
        quantity(log.get("logIndex"), "a log's index"),
    )


def _open_log(value: Any) -> dict[str, Any]:
    """Some nodes leave out ``removed``, which is true of a log whose block is no longer on the chain."""
    log = table(value, "no log")
    if open_value(log.get("removed", False)) is not False:
        raise not_understood("a log that was removed")
    return log


def _matches(log: dict[str, Any], of: EventFilter) -> bool:
    contract = hexadecimal(log.get("address"), _ADDRESS_BYTES, "a contract's address")
    topics = entries(log.get("topics"), "no topics")
    return bool(topics) and contract in of.contracts and hexadecimal(topics[0], HASH_BYTES, "a topic") in of.events
