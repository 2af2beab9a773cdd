"""A chain: its heads over time, and the transactions that indexers list."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from Crypto.Hash import keccak

CONTRACT: Final = "0x" + "c0" * 20
EVENT: Final = "0x" + "e0" * 32
_EVERY: Final = 10  # one block in so many has a transaction with the event
_TWICE_EVERY: Final = 30  # one block in so many has a transaction with two events


class ChainLayout(NamedTuple):
    chain_id: int
    block_ms: int
    first_height: int
    endpoints: int = 3
    confirmations: int = 5  # how far behind the head the indexers stay
    hosted_indexer: bool = True
    members: int = 5  # broadcasters


Layout = tuple[ChainLayout, ...]

# The five chains of the launch, with today's block times; the test network has no hosted indexer.
LAUNCH: Final[Layout] = (
    ChainLayout(1, 12_000, 25_700_000, members=9),
    ChainLayout(42161, 250, 480_000_000, members=6),
    ChainLayout(137, 1_750, 88_000_000, members=7),
    ChainLayout(56, 450, 92_000_000, members=5),
    ChainLayout(11155111, 12_000, 11_300_000, hosted_indexer=False, members=2),
)


class Block(NamedTuple):
    """A head: its height, and its timestamp in whole seconds, as chains write it."""

    height: int
    block_at: int


class ContractEvent(NamedTuple):
    block: int
    transaction: str
    log_index: int


class HashedEntry(NamedTuple):
    """One of the two entries of a transaction in an indexer's list, which have a running hash."""

    id: str
    block: int
    transaction: str
    value: str
    hash: str


def head_at(chain: ChainLayout, halts: Iterable[tuple[int, int]], lost: int, origin_at: int, at: int) -> Block:
    """The head of a chain that began at ``origin_at``, stood still during ``halts``, and lost ``lost`` blocks to
    reorganisations."""
    ran_ms, moved_at, halted_until_at = at - origin_at, at, origin_at
    for begin_at, end_at in sorted(halts):
        begin_at, end_at = max(begin_at, halted_until_at), min(end_at, at)
        if begin_at < end_at:
            ran_ms -= end_at - begin_at
            moved_at = begin_at if end_at == at else at
            halted_until_at = end_at
    blocks, into_ms = divmod(ran_ms, chain.block_ms)
    return Block(chain.first_height + blocks - lost, (moved_at - into_ms) // 1000 * 1000)


def events_between(chain_id: int, first: int, last: int) -> Iterator[ContractEvent]:
    for block in range(first + -first % _EVERY, last + 1, _EVERY):
        for log_index in range(1 if block % _TWICE_EVERY else 2):
            yield ContractEvent(block, hash_of("transaction", chain_id, block), log_index)


def add_entry(before: HashedEntry | None, chain_id: int, number: int, block: int) -> HashedEntry:
    """The entry of this number, behind another one."""
    value = hash_of("nullifier", chain_id, number)
    running = keccak.new(digest_bits=256, data=bytes.fromhex(("" if before is None else before.hash[2:]) + value[2:]))
    transaction = hash_of("private transaction", chain_id, number // 2)
    return HashedEntry(
        f"0x{block:064x}{0:064x}{number % 2:064x}", block, transaction, value, f"0x{running.hexdigest()}"
    )


def hash_of(what: str, chain_id: int, block: int) -> str:
    return "0x" + hashlib.sha256(f"{what}/{chain_id}/{block}".encode()).hexdigest()[:48] + f"{block:016x}"
