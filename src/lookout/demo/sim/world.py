"""The simulated world: what each upstream knows and answers at an instant."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from lookout.demo.sim.chain import (
    LAUNCH,
    Block,
    ContractEvent,
    HashedEntry,
    Layout,
    add_entry,
    events_between,
    hash_of,
    head_at,
)
from lookout.demo.sim.faults import WIRE_FAULTS, Fault, FaultLog, addresses, draw_faults

NOTHING_INDEXED: Final = -1  # the height of an indexer without a first block, as squids say it
MOST_LOGS: Final = 10_000  # in one answer of an endpoint
# Fixed, so that heights continue when the simulation restarts.
_ORIGIN_AT: Final = 1_767_225_600_000  # 2026-01-01
_YEAR_MS: Final = 365 * 86_400_000
_LISTED_MS: Final = 86_400_000  # the age of the oldest listed entry when a world begins
_FIRST_INDEX: Final = 10_000
_WITHOUT_BLOCKS_MS: Final = 60_000  # how long a rebuilt indexer has no block
_REBUILT_MS: Final = 86_400_000  # the part of the chain that a rebuilt indexer indexes again


class EndpointHead(NamedTuple):
    """An endpoint's newest block, with the chain id that the endpoint gives."""

    chain_id: int
    height: int
    block_at: int


class Indexed(NamedTuple):
    """How far one chain has been indexed."""

    chain_id: int
    height: int

    @property
    def has_blocks(self) -> bool:
        return self.height != NOTHING_INDEXED


class Network(NamedTuple):
    """What the ppoi node has of one network."""

    chain_id: int
    current: int
    validated: int
    listed: bool


class Heard(NamedTuple):
    sent_at: int
    chain_id: int
    number: int  # of the broadcaster, on its chain
    well_signed: bool


class World:
    """The chains stand at their first heights at ``origin_at``; indexers list the entries since ``listed_at``."""

    def __init__(
        self, layout: Layout, seed: int, origin_at: int, planned: Iterable[Fault] = (), listed_at: int = 0
    ) -> None:
        self.layout = layout
        self.seed = seed
        self.planned = tuple(planned)
        self.addresses = addresses(layout)
        self.faults = FaultLog(self.addresses, self.planned)
        self._origin_at = origin_at
        self._listed_at = max(origin_at, listed_at)
        self._entries: dict[int, list[HashedEntry]] = {}  # of each chain, made when a request needs them
        self._chains = {chain.chain_id: chain for chain in layout}

    def has(self, address: str, kind: str, at: int) -> bool:
        fault = self.faults.find(address, at)
        return fault is not None and fault.kind == kind

    def wire_fault(self, address: str, at: int) -> Fault | None:
        fault = self.faults.find(address, at)
        return fault if fault is not None and fault.kind in WIRE_FAULTS else None

    def head(self, chain_id: int, at: int) -> Block:
        faults = [fault for fault in self.faults.find_all(f"rpc/{chain_id}") if fault.begin_at <= at]
        halts = [(fault.begin_at, fault.end_at) for fault in faults if fault.kind == "halt"]
        lost = sum(fault.size for fault in faults if fault.kind == "reorg")
        return head_at(self._chains[chain_id], halts, lost, self._origin_at, at)

    def endpoint_head(self, address: str, at: int) -> EndpointHead:
        chain_id = int(address.split("/")[1])
        height, block_at = self.head(chain_id, at)
        match self.faults.find(address, at):
            case Fault(kind="freeze", begin_at=begin_at):
                return EndpointHead(chain_id, *self.head(chain_id, begin_at))
            case Fault(kind="lag", size=blocks):
                behind_ms = blocks * self._chains[chain_id].block_ms
                return EndpointHead(chain_id, max(0, height - blocks), max(0, block_at - behind_ms))
            case Fault(kind="lie", size=blocks):
                return EndpointHead(chain_id, max(0, height + blocks), block_at)
            case Fault(kind="future", size=ahead_ms):
                return EndpointHead(chain_id, height, at + ahead_ms)
            case Fault(kind="past", size=age_ms):
                return EndpointHead(chain_id, height, max(0, block_at - age_ms))
            case Fault(kind="genesis", size=made_at):
                return EndpointHead(chain_id, 0, made_at)
            case Fault(kind="wrong-chain", size=other_id):
                return EndpointHead(other_id, height, block_at)
            case _:
                return EndpointHead(chain_id, height, block_at)

    def indexed(self, address: str, at: int) -> Indexed:
        chain_id = int(address.split("/")[1])
        confirmations = self._chains[chain_id].confirmations
        return Indexed(
            chain_id, self._follow(address, at, lambda then: self.head(chain_id, then).height - confirmations)
        )

    def listed(self, address: str, first: int, last: int, at: int) -> list[ContractEvent]:
        chain_id, newest = self.indexed(address, at)
        events = list(islice(events_between(chain_id, first, min(last, newest)), MOST_LOGS))
        match self.faults.find(address, at):
            case Fault(kind="hole", size=blocks, begin_at=begin_at):
                end = self.indexed(address, begin_at).height
                return [event for event in events if not end - blocks < event.block <= end]
            case Fault(kind="extra", size=transactions, begin_at=begin_at):
                end = self.indexed(address, begin_at).height
                made_up = range(max(first, end - transactions + 1), min(last, end) + 1)
                extra = (ContractEvent(block, hash_of("made up", chain_id, block), 0) for block in made_up)
                return sorted([*events, *extra])
            case _:
                return events

    def entries(self, address: str, at: int) -> list[HashedEntry]:
        """All entries of an indexer's list, in the order of their ids."""
        chain_id, newest = self.indexed(address, at)
        entries, first = self._entries.setdefault(chain_id, []), self._first_entry(chain_id)
        count = max(0, self._count_entries(chain_id, newest) - first)
        for number in range(first + len(entries), first + count):
            before = entries[-1] if entries else None
            entries.append(add_entry(before, chain_id, number, self._block_of(chain_id, number)))
        match self.faults.find(address, at):
            case Fault(kind="lose", size=lost, begin_at=begin_at):
                begin = self._count_entries(chain_id, self.indexed(address, begin_at).height) - first
                first_of_two = range(begin, begin + 2 * lost, 2)
                return [entry for number, entry in enumerate(entries[:count]) if number not in first_of_two]
            case _:
                return entries[:count]

    def entries_from(self, address: str, entry_id: str, at: int) -> list[HashedEntry]:
        entries = self.entries(address, at)
        return entries[bisect_left(entries, entry_id, key=lambda entry: entry.id) :]

    def count_listed(self, address: str, last_block: int, at: int) -> int:
        """How many entries the list has up to this block, the entries before ``listed_at`` included."""
        entries = self.entries(address, at)
        before = self._first_entry(int(address.split("/")[1]))
        return before + bisect_right(entries, last_block, key=lambda entry: entry.block)

    def _count_entries(self, chain_id: int, last_block: int) -> int:
        """How many entries the chain has up to this block. Both entries of a transaction are in one block."""
        chain = self._chains[chain_id]
        last_ms = (last_block - chain.first_height + 1) * chain.block_ms - 1
        return (_FIRST_INDEX + last_ms // _entry_ms(chain_id) + 1) // 2 * 2

    def _first_entry(self, chain_id: int) -> int:
        return self.tree_index(chain_id, self._listed_at) // 2 * 2

    def _block_of(self, chain_id: int, number: int) -> int:
        chain = self._chains[chain_id]
        return chain.first_height + (number // 2 * 2 + 1 - _FIRST_INDEX) * _entry_ms(chain_id) // chain.block_ms

    def logs(self, address: str, first: int, last: int, at: int) -> list[ContractEvent] | None:
        chain_id, newest, _ = self.endpoint_head(address, at)
        fault = self.faults.find(address, at)
        if fault is not None and fault.kind == "narrow" and last - first + 1 > fault.size:
            return None
        events = list(islice(events_between(chain_id, first, min(last, newest)), MOST_LOGS + 1))
        return events if len(events) <= MOST_LOGS else None

    def tree_index(self, chain_id: int, at: int) -> int:
        return _FIRST_INDEX + (at - self._origin_at) // _entry_ms(chain_id)

    def network(self, chain_id: int, at: int) -> Network | None:
        """What the ppoi node has of a network; None if it leaves it out."""
        address = f"ppoi/{chain_id}"
        if self.has(address, "missing-network", at):
            return None
        fault = self.faults.find(address, at)
        lacking = fault.size if fault is not None and fault.kind == "old-tree" else 0
        return Network(
            chain_id,
            self.tree_index(chain_id, at) - lacking,
            self._follow(address, at, lambda then: self.tree_index(chain_id, then)) - lacking,
            listed=self.carries_list(at) and not self.has(address, "missing-list", at),
        )

    def carries_list(self, at: int) -> bool:
        return not self.has("ppoi", "missing-list", at)

    def peers(self, at: int) -> int:
        return 0 if self.has("waku/peers", "zero-peers", at) else 4 + (at // 60_000 + self.seed) * 7_919 % 11

    def heard(self, chain_id: int, number: int, sent_at: int) -> Heard | None:
        """A broadcaster's announcement as the waku network heard it; None if a fault silenced the broadcaster."""
        fault = self.faults.find(f"broadcasters/{chain_id}", sent_at)
        is_at_fault = fault is not None and number < fault.size
        if fault is not None and fault.kind == "silent" and is_at_fault:
            return None
        return Heard(sent_at, chain_id, number, well_signed=not is_at_fault)

    def _follow(self, address: str, at: int, reached: Callable[[int], int]) -> int:
        """The position at this address; ``reached`` gives the right position at an instant."""
        match self.faults.find(address, at):
            case Fault(kind="freeze", begin_at=begin_at):
                return reached(begin_at)
            case Fault(kind="lag", size=by):
                return max(0, reached(at) - by)
            case Fault(kind="lie", size=by):
                return max(0, reached(at) + by)
            case Fault(kind="rebuild", size=times, begin_at=begin_at):
                climbing_ms = at - begin_at - _WITHOUT_BLOCKS_MS
                if climbing_ms < 0:
                    return NOTHING_INDEXED
                return reached(min(at, begin_at - _REBUILT_MS + climbing_ms * times))
            case _:
                return reached(at)


def launch_world(seed: int | None, at: int) -> World:
    """The five chains of the launch. With a seed, upstreams fail from this instant on."""
    faults = () if seed is None else draw_faults(LAUNCH, seed, at, at + _YEAR_MS)
    return World(LAUNCH, seed or 0, _ORIGIN_AT, faults, at - _LISTED_MS)


def _entry_ms(chain_id: int) -> int:
    """The time between two entries."""
    return 60_000 + chain_id % 97 * 5_000
