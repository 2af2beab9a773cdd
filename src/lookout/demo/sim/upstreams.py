"""What every upstream answers at an instant: the world as it is, with the faults that were ordered put over it."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from lookout.demo.sim.announcements import Broadcaster, broadcasters, sent_between
from lookout.demo.sim.episodes import FaultEpisode
from lookout.demo.sim.faults import WIRE_FAULTS
from lookout.demo.sim.layout import LAUNCH, addresses
from lookout.demo.sim.orders import Order, OrderLog
from lookout.demo.sim.transactions import EVERY, ContractEvent, events_between, hash_of
from lookout.demo.sim.world import NOTHING_INDEXED, HeadAnswer, World, drawn_world

# Fixed, so that heights go on where they were when the simulation is started again.
_ORIGIN_AT: Final = 1_767_225_600_000  # 2026-01-01
_YEAR_MS: Final = 365 * 86_400_000
_WITHOUT_BLOCKS_MS: Final = 60_000  # an indexer that is built again
MOST_LOGS: Final = 10_000  # that an endpoint gives at once
_REBUILT_MS: Final = 86_400_000  # how much of its chain it has to take in


class WireFault(NamedTuple):
    """A fault that shows in how an answer comes, and its size."""

    name: str
    size: int = 0


# How a service that fails in the seeded world may look on the wire.
_FAILURES: Final = (
    WireFault("refuse"),
    WireFault("status", 500),
    WireFault("status", 503),
    WireFault("status", 403),
    WireFault("rate-limit", 429),
    WireFault("html"),
    WireFault("garbage"),
)


class Indexed(NamedTuple):
    """How far one chain has been indexed; the height is NOTHING_INDEXED if there is no block yet."""

    chain_id: int
    height: int
    block_at: int

    @property
    def has_blocks(self) -> bool:
        return self.height != NOTHING_INDEXED


class Network(NamedTuple):
    """What the ppoi node has of one network; without indexes it leaves their fields out."""

    chain_id: int
    current: int
    validated: int
    indexed: bool
    listed: bool


class Heard(NamedTuple):
    """An announcement that went over the network."""

    sent_at: int
    chain_id: int
    number: int  # of the broadcaster, on its chain
    well_signed: bool


class Upstreams:
    """All upstreams of one world."""

    def __init__(self, world: World) -> None:
        self.layout = world.layout
        self.addresses = addresses(world.layout)
        self.broadcasters: dict[int, tuple[Broadcaster, ...]] = {
            chain.chain_id: broadcasters(world.seed, chain.chain_id, chain.members) for chain in world.layout
        }
        self._drawn = world
        self._world = world
        self._orders = OrderLog(self.addresses)

    def set_at(self, at: int) -> list[FaultEpisode]:
        """The faults that were ordered and hold at this instant."""
        return self._orders.set_at(at)

    def apply(self, order: Order, at: int) -> None:
        """Set or clear a fault, from this instant on."""
        self._orders.apply(order, at)
        self._world = self._world_as_ordered()

    def wire_fault(self, address: str, at: int) -> WireFault | None:
        """What is wrong with the way an address answers."""
        match self._fault(address, at):
            case FaultEpisode(kind="outage"):
                return WireFault("refuse")
            case FaultEpisode(kind="fail", begin_at=begin_at):
                return random.Random(f"{self._world.seed}/{address}/{begin_at}").choice(_FAILURES)
            case FaultEpisode(kind=name, size=size) if name in WIRE_FAULTS:
                return WireFault(name, size)
            case _:
                return None

    def has(self, address: str, name: str, at: int) -> bool:
        """Whether an address has this fault."""
        fault = self._fault(address, at)
        return fault is not None and fault.kind == name

    def head(self, address: str, at: int) -> HeadAnswer:
        """The newest block of an endpoint, and the chain it says it is of."""
        chain_id = address.split("/")[1]
        return self._world.endpoint_head(int(chain_id), self._fault(address, at), at)

    def indexed(self, address: str, at: int) -> Indexed:
        """The last block that an indexer has."""
        chain_id = int(address.partition("/")[2])
        service = "hosted-indexer" if address.startswith("hosted/") else "indexer"
        height = self._follow(address, at, partial(self._world.position, service, chain_id))
        head = self._world.head(chain_id, at)
        (block_ms,) = (chain.block_ms for chain in self.layout if chain.chain_id == chain_id)
        return Indexed(chain_id, height, max(0, head.block_at - (head.height - height) * block_ms))

    def indexed_by(self, node: str, at: int) -> Iterator[Indexed]:
        """What a node that indexes many chains has of each, without those that it leaves out."""
        for address in self.addresses:
            if address.startswith(f"{node}/") and not self.has(address, "missing-network", at):
                yield self.indexed(address, at)

    def listed(self, address: str, first: int, last: int, at: int) -> list[ContractEvent]:
        """What an indexer's list has from the first to the last of these blocks."""
        chain_id, newest, _ = self.indexed(address, at)
        events = list(islice(events_between(chain_id, first, min(last, newest)), MOST_LOGS))
        match self._fault(address, at):
            case FaultEpisode(kind="hole", size=blocks, begin_at=begin_at):
                end = self.indexed(address, begin_at).height
                return [event for event in events if not end - blocks < event.block <= end]
            case FaultEpisode(kind="extra", size=transactions, begin_at=begin_at):
                end = self.indexed(address, begin_at).height
                made_up = (
                    ContractEvent(block, hash_of("made up", chain_id, block), 0)
                    for block in range(end - transactions + 1, end + 1)
                )
                return sorted([*events, *(event for event in made_up if first <= event.block <= last)])
            case _:
                return events

    def logs(self, address: str, first: int, last: int, at: int) -> list[ContractEvent] | None:
        """What an endpoint has from the first to the last of these blocks; None if it refuses so many."""
        chain_id, newest, _ = self.head(address, at)
        fault = self._fault(address, at)
        if fault is not None and fault.kind == "narrow" and last - first + 1 > fault.size:
            return None
        events = list(islice(events_between(chain_id, first, min(last, newest)), MOST_LOGS + 1))
        if fault is not None and fault.kind == "drop-logs":
            events = [event for event in events if event.block // EVERY % fault.size]
        return events if len(events) <= MOST_LOGS else None

    def networks(self, at: int) -> Iterator[Network]:
        """What the ppoi node has, without the networks that it leaves out."""
        listed = self.carries_list(at)
        for chain_id in (chain.chain_id for chain in self.layout if chain.ppoi):
            address = f"ppoi/{chain_id}"
            if not self.has(address, "missing-network", at):
                yield Network(
                    chain_id,
                    self._world.indexes(chain_id, at).current,
                    self._follow(address, at, partial(self._validated, chain_id)),
                    indexed=not self.has(address, "absent-index", at),
                    listed=listed and not self.has(address, "missing-list", at),
                )

    def carries_list(self, at: int) -> bool:
        """Whether the required list is among those of the ppoi node."""
        return not self.has("ppoi", "missing-list", at)

    def peers(self, at: int) -> int:
        """How many the messaging node is connected with."""
        return self._world.peers(self._fault("waku/peers", at), at)

    def heard(self, chain_id: int, after_at: int, until_at: int) -> Iterator[Heard]:
        """What a chain's broadcasters announced later than the first instant and not later than the second."""
        members = self.broadcasters[chain_id]
        for number, broadcaster in enumerate(members):
            for sent_at in sent_between(broadcaster, after_at, until_at):
                fault = self._fault(f"broadcasters/{chain_id}", sent_at)
                if number >= len(members) - self._world.members(chain_id, fault).responding:
                    unsigned = fault is not None and fault.kind == "unsigned" and number < fault.size
                    yield Heard(sent_at, chain_id, number, well_signed=not unsigned)

    def _fault(self, address: str, at: int) -> FaultEpisode | None:
        """What is wrong with an address; a fault that was ordered takes the place of a drawn one."""
        ordered = self._orders.find(address, at)
        subject = self.addresses[address].subject
        if ordered is not None or subject is None:
            return ordered
        return self._world.fault(subject, at)

    def _follow(self, address: str, at: int, reached: Callable[[int], int]) -> int:
        """How far something has got that follows a chain or a tree, given how far it had got at any instant."""
        match self._fault(address, at):
            case FaultEpisode(kind="freeze", begin_at=begin_at):
                return reached(begin_at)
            case FaultEpisode(kind="lag", size=by):
                return max(0, reached(at) - by)
            case FaultEpisode(kind="lie", size=by):
                return reached(at) + by
            case FaultEpisode(kind="rebuild", size=times, begin_at=begin_at):
                climbing_ms = at - begin_at - _WITHOUT_BLOCKS_MS
                if climbing_ms < 0:
                    return NOTHING_INDEXED
                return reached(min(at, begin_at - _REBUILT_MS + climbing_ms * times))
            case _:
                return reached(at)

    def _validated(self, chain_id: int, at: int) -> int:
        return self._world.indexes(chain_id, at).validated

    def _world_as_ordered(self) -> World:
        """The drawn world with the halts and reorganisations that were ordered, which take precedence over drawn ones.

        They become part of the world, since whatever follows the chain has to live through them too.
        """
        ordered = [
            episode._replace(subject=f"chain/{chain.chain_id}")
            for chain in self.layout
            for episode in self._orders.find_all(f"rpc/{chain.chain_id}")
            if episode.begin_at < episode.end_at
        ]
        kept = [
            drawn
            for drawn in self._drawn.episodes
            if not any(
                episode.subject == drawn.subject and episode.begin_at <= drawn.begin_at < episode.end_at
                for episode in ordered
            )
        ]
        return World(self.layout, self._drawn.seed, self._drawn.origin_at, [*kept, *ordered])


def launch_world(seed: int | None, at: int) -> World:
    """The five chains of the launch: with a seed, things go wrong now and then; without, nothing does."""
    if seed is None:
        return World(LAUNCH, 0, _ORIGIN_AT)
    return drawn_world(LAUNCH, seed, _ORIGIN_AT, at + _YEAR_MS)
