"""What every upstream answers at an instant: the world as it is, with the faults that were set put over it."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain as chained
from typing import Final, Literal, NamedTuple

from lookout.demo.sim.announcements import Broadcaster, broadcasters, sent_between
from lookout.demo.sim.episodes import Episode
from lookout.demo.sim.faults import ActiveFault, Fault, FaultLog, Order
from lookout.demo.sim.layout import LAUNCH
from lookout.demo.sim.subjects import in_world, subjects_of
from lookout.demo.sim.world import NOTHING_INDEXED, HeadAnswer, World, drawn_world

# Fixed, so that heights go on where they were when the simulation is started again.
_ORIGIN_AT: Final = 1_767_225_600_000  # 2026-01-01
_YEAR_MS: Final = 365 * 86_400_000
_FOR_EVER_MS: Final = 100 * _YEAR_MS

# How a service that fails in the seeded world may look on the wire.
_FAILURES: Final = (
    Fault("refuse"),
    Fault("status", 500),
    Fault("status", 503),
    Fault("status", 403),
    Fault("rate-limit", 429),
    Fault("html"),
    Fault("garbage"),
)
# The other faults show in answers that are well formed.
_WIRE_FAULTS: Final = frozenset(
    {
        *("refuse", "hang", "drip", "late", "slow-pages", "endless", "interim", "numbers"),
        *("garbage", "html", "status", "rate-limit"),
    }
)
_WITHOUT_BLOCKS_MS: Final = 60_000  # an indexer that is built again
_REBUILT_MS: Final = 86_400_000  # how much of its chain it has to take in


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
        self._drawn = world
        self._world = world
        self._faults = FaultLog(subjects_of(world.layout))
        self.broadcasters: dict[int, tuple[Broadcaster, ...]] = {
            chain.chain_id: broadcasters(world.seed, chain.chain_id, chain.members) for chain in world.layout
        }
        self.subjects = self._faults.subjects

    def set_at(self, at: int) -> list[ActiveFault]:
        """The faults that were set and hold at this instant."""
        return self._faults.set_at(at)

    def apply(self, order: Order, at: int) -> None:
        """Set or clear a fault, from this instant on."""
        self._faults.apply(order, at)
        self._world = self._world_as_ordered()

    def trouble(self, subject: str, at: int) -> Fault | None:
        """What is wrong with the way a subject answers; a fault that was set takes the place of a drawn one."""
        active = self._faults.find(subject, at)
        if active is not None:
            return active.fault if active.fault.name in _WIRE_FAULTS else None
        if self.subjects[subject] == "node":  # not in the world: it stands for many indexers, and never fails with one
            return None
        match self._world.fault(in_world(subject), at):
            case Episode(kind="hang"):
                return Fault("hang")
            case Episode(kind="outage"):
                return Fault("refuse")
            case Episode(kind="late", size=delay_ms):
                return Fault("late", delay_ms)
            case Episode(kind="fail", begin_at=begin_at):
                return random.Random(f"{self._world.seed}/{subject}/{begin_at}").choice(_FAILURES)
            case _:
                return None

    def has(self, subject: str, name: str, at: int) -> bool:
        """Whether this fault was set and holds over the subject."""
        active = self._faults.find(subject, at)
        return active is not None and active.fault.name == name

    def head(self, subject: str, at: int) -> HeadAnswer:
        """The newest block of an endpoint."""
        _, chain_id, number = in_world(subject).split("/")
        block = self._world.head(int(chain_id), at)
        true = HeadAnswer(int(chain_id), block.height, block.block_at)
        active = self._faults.find(subject, at)
        if active is None:
            drawn = self._world.endpoint(int(chain_id), int(number), at)
            return drawn if isinstance(drawn, HeadAnswer) else true
        match active.fault:
            case Fault("wrong-chain", other):
                return true._replace(chain_id=other)
            case Fault("lag", blocks):
                behind_ms = blocks * self._block_ms(int(chain_id))
                return true._replace(height=max(0, true.height - blocks), block_at=max(0, true.block_at - behind_ms))
            case Fault("freeze"):
                return HeadAnswer(int(chain_id), *self._world.head(int(chain_id), active.begin_at))
            case Fault("lie", blocks):
                return true._replace(height=true.height + blocks)
            case Fault("future", seconds):
                return true._replace(block_at=at + seconds * 1000)
            case Fault("past", seconds):
                return true._replace(block_at=max(0, true.block_at - seconds * 1000))
            case Fault("genesis", second):
                return true._replace(height=0, block_at=second * 1000)
            case _:
                return true

    def indexed(self, subject: str, at: int) -> Indexed:
        """The last block that an indexer has."""
        service, _, number = in_world(subject).partition("/")
        chain_id = int(number)
        height = self._followed(subject, at, partial(self._indexed, service, chain_id))
        head = self._world.head(chain_id, at)
        return Indexed(chain_id, height, max(0, head.block_at - (head.height - height) * self._block_ms(chain_id)))

    def indexed_by(self, node: str, at: int) -> Iterator[Indexed]:
        """What a node that indexes many chains has of each, without those that it leaves out."""
        for subject in self.subjects:
            if subject.startswith(f"{node}/") and not self.has(subject, "missing-network", at):
                yield self.indexed(subject, at)

    def networks(self, at: int) -> Iterator[Network]:
        """What the ppoi node has, without the networks that it leaves out."""
        listed = self.carries_list(at)
        for chain_id in (chain.chain_id for chain in self.layout if chain.ppoi):
            subject = f"ppoi/{chain_id}"
            if self._has_network(subject, at):
                yield Network(
                    chain_id,
                    _known(self._world.truth("ppoi", chain_id, at).head),
                    self._followed(subject, at, partial(self._validated, chain_id)),
                    indexed=not self.has(subject, "absent-index", at),
                    listed=listed and not self.has(subject, "missing-list", at),
                )

    def carries_list(self, at: int) -> bool:
        """Whether the required list is among those of the ppoi node."""
        active = self._faults.find("ppoi", at)
        if active is not None:
            return active.fault.name != "missing-list"
        episode = self._world.fault("ppoi", at)
        return episode is None or episode.kind != "missing-list"

    def peers(self, at: int) -> int:
        """How many the messaging node is connected with."""
        if self.has("waku/peers", "zero-peers", at):
            return 0
        return _known(self._world.truth("messaging", None, at).peers)

    def heard(self, chain_id: int, after_at: int, until_at: int) -> Iterator[Heard]:
        """What a chain's broadcasters announced later than the first instant and not later than the second."""
        subject, members = f"broadcasters/{chain_id}", self.broadcasters[chain_id]
        for number, broadcaster in enumerate(members):
            for sent_at in sent_between(broadcaster, after_at, until_at):
                active = self._faults.find(subject, sent_at)
                if active is None:
                    truth = self._world.truth("broadcasters", chain_id, sent_at)
                    if number >= len(members) - _known(truth.responding):
                        yield Heard(sent_at, chain_id, number, well_signed=True)
                elif number >= active.fault.size:
                    yield Heard(sent_at, chain_id, number, well_signed=True)
                elif active.fault.name == "unsigned":
                    yield Heard(sent_at, chain_id, number, well_signed=False)

    def _followed(self, subject: str, at: int, reached: Callable[[int], int]) -> int:
        """How far something has got that follows a chain or a tree, given how far it had got at any instant."""
        active = self._faults.find(subject, at)
        match active:
            case ActiveFault(fault=Fault("freeze"), begin_at=begin_at):
                return reached(begin_at)
            case ActiveFault(fault=Fault("lag", by)):
                return max(0, reached(at) - by)
            case ActiveFault(fault=Fault("lie", by)):
                return reached(at) + by
            case ActiveFault(fault=Fault("rebuild", times), begin_at=begin_at):
                climbing_ms = at - begin_at - _WITHOUT_BLOCKS_MS
                if climbing_ms < 0:
                    return NOTHING_INDEXED
                return reached(min(at, begin_at - _REBUILT_MS + climbing_ms * times))
            case _:
                return reached(at)

    def _indexed(self, service: str, chain_id: int, at: int) -> int:
        return _known(self._world.truth(service, chain_id, at).position)

    def _validated(self, chain_id: int, at: int) -> int:
        return _known(self._world.truth("ppoi", chain_id, at).position)

    def _has_network(self, subject: str, at: int) -> bool:
        """Whether the ppoi node has anything of this network."""
        active = self._faults.find(subject, at)
        if active is not None:
            return active.fault.name != "missing-network"
        episode = self._world.fault(subject, at)
        return episode is None or episode.kind != "no-network"

    def _block_ms(self, chain_id: int) -> int:
        (block_ms,) = (chain.block_ms for chain in self.layout if chain.chain_id == chain_id)
        return block_ms

    def _world_as_ordered(self) -> World:
        """The drawn world with the halts and reorganisations that were ordered, which take precedence over drawn ones.

        They become part of the world, since whatever follows the chain has to live through them too.
        """
        ordered: dict[str, list[Episode]] = {}
        for chain in self.layout:
            subject = f"chain/{chain.chain_id}"
            for active in self._faults.find_all(f"rpc/{chain.chain_id}"):
                begin_at, end_at = active.begin_at, active.end_at
                end_at = begin_at + _FOR_EVER_MS if end_at is None else end_at
                if begin_at < end_at:
                    kind: Literal["halt", "reorg"] = "halt" if active.fault.name == "halt" else "reorg"
                    episode = Episode(subject, kind, begin_at, end_at, active.fault.size)
                    ordered.setdefault(subject, []).append(episode)
        kept = [
            drawn
            for drawn in self._drawn.episodes
            if not any(
                episode.begin_at <= drawn.begin_at < episode.end_at for episode in ordered.get(drawn.subject, ())
            )
        ]
        episodes = [*kept, *chained.from_iterable(ordered.values())]
        return World(self.layout, self._drawn.seed, self._drawn.origin_at, episodes)


def launch_world(seed: int | None, at: int) -> World:
    """The five chains of the launch: with a seed, things go wrong now and then; without, nothing does."""
    if seed is None:
        return World(LAUNCH, 0, _ORIGIN_AT)
    return drawn_world(LAUNCH, seed, _ORIGIN_AT, at + _YEAR_MS)


def _known(number: int | None) -> int:
    """A number that the world's truth about this service always has."""
    if number is None:
        raise LookupError("the world knows nothing of this service")
    return number
