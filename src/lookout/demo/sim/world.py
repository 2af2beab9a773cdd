"""The simulated world: what everything in it answers at an instant."""

import random
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from lookout.demo.sim.chain import Block, Chain
from lookout.demo.sim.episodes import FaultEpisode, courses, draw_episodes
from lookout.demo.sim.faults import ANOTHER_CHAIN
from lookout.demo.sim.layout import Layout
from lookout.demo.sim.progress import SimulatedProgress
from lookout.demo.sim.tree import SHORTEST_GAP_MS, Tree

Silence = Literal["hang", "fail"]

_PPOI_DELAY_MS: Final = 3_000
NOTHING_INDEXED: Final = -1  # the position of an indexer that has not taken in a first block, in a squid's own words


class HeadAnswer(NamedTuple):
    """An endpoint's newest block, and the chain it says it is of."""

    chain_id: int
    height: int
    block_at: int


class Indexes(NamedTuple):
    """What a ppoi node says of one network."""

    validated: int
    current: int


class Members(NamedTuple):
    """How many broadcasters of a chain are heard, of how many that are known."""

    responding: int
    monitored: int


class World:
    """A world without episodes is healthy. ``origin_at`` is when its chains stand at their first heights."""

    def __init__(self, layout: Layout, seed: int, origin_at: int, episodes: Iterable[FaultEpisode] = ()) -> None:
        self.layout = layout
        self.seed = seed
        self.origin_at = origin_at
        self.episodes = tuple(episodes)
        self._courses = courses(layout, origin_at, self.episodes)
        self._of_chain = {chain.chain_id: chain for chain in layout}
        self._chains: dict[int, Chain] = {}
        self._indexers: dict[tuple[str, int], SimulatedProgress] = {}
        self._trees: dict[int, tuple[Tree, SimulatedProgress]] = {}
        for chain in layout:
            chain_id = chain.chain_id
            course = self._courses[f"chain/{chain_id}"]
            self._chains[chain_id] = Chain(chain.first_height, chain.block_ms, origin_at, course)
            for service, present in (("indexer", chain.indexer), ("hosted-indexer", chain.hosted_indexer)):
                if present:
                    self._indexers[service, chain_id] = self._indexer(f"{service}/{chain_id}")
            if chain.ppoi:
                self._trees[chain_id] = self._tree(f"ppoi/{chain_id}")

    def endpoints(self, chain_id: int) -> int:
        """How many RPC endpoints a chain has."""
        return self._of_chain[chain_id].endpoints

    def endpoint(self, chain_id: int, number: int, at: int) -> HeadAnswer | Silence:
        """What one of a chain's endpoints answers when it is asked for its newest block."""
        episode = self.fault(f"rpc/{chain_id}/{number}", at)
        return _silence(episode) or self.endpoint_head(chain_id, episode, at)

    def endpoint_head(self, chain_id: int, episode: FaultEpisode | None, at: int) -> HeadAnswer:
        """The newest block of an endpoint that goes through this episode and answers all the same."""
        chain = self._chains[chain_id]
        height, block_at = chain.head(at)
        match episode:
            case FaultEpisode(kind="freeze", begin_at=begin_at):
                return HeadAnswer(chain_id, *chain.head(begin_at))
            case FaultEpisode(kind="stale", size=age_ms):
                return HeadAnswer(chain_id, *chain.head(at - age_ms))
            case FaultEpisode(kind="lag", size=blocks):
                behind_ms = blocks * self._of_chain[chain_id].block_ms
                return HeadAnswer(chain_id, max(0, height - blocks), max(0, block_at - behind_ms))
            case FaultEpisode(kind="lie", size=blocks):
                return HeadAnswer(chain_id, height + blocks, block_at)
            case FaultEpisode(kind="lie-low", size=blocks):
                return HeadAnswer(chain_id, max(0, height - blocks), block_at)
            case FaultEpisode(kind="future", size=ahead_ms):
                return HeadAnswer(chain_id, height, at + ahead_ms)
            case FaultEpisode(kind="past", size=age_ms):
                return HeadAnswer(chain_id, height, max(0, block_at - age_ms))
            case FaultEpisode(kind="genesis", size=made_at):
                return HeadAnswer(chain_id, 0, made_at)
            case FaultEpisode(kind="wrong-chain", size=other_id):
                return HeadAnswer(other_id or ANOTHER_CHAIN, height, block_at)
            case _:
                return HeadAnswer(chain_id, height, block_at)

    def endpoint_delay_ms(self, chain_id: int, number: int, at: int) -> int:
        """How much longer than usual one of a chain's endpoints takes to answer."""
        match self.fault(f"rpc/{chain_id}/{number}", at):
            case FaultEpisode(kind="late", size=delay_ms):
                return delay_ms
            case _:
                return 0

    def indexer(self, service: str, chain_id: int, at: int) -> int | Silence:
        """The last block that an indexer, the operator's or the hosted one, says it has; -1 if it has none yet."""
        return _silence(self.fault(f"{service}/{chain_id}", at)) or self.position(service, chain_id, at)

    def ppoi(self, at: int) -> Mapping[int, Indexes | Literal["nothing", "missing-list"]] | Silence:
        """What the ppoi node says of its networks, by chain."""
        episode = self.fault("ppoi", at)
        return _silence(episode) or {chain_id: self._network(chain_id, at, episode) for chain_id in self._trees}

    def broadcasters(self, at: int) -> Mapping[int, Members] | Silence:
        """How many broadcasters are heard, by chain."""
        silence = _silence(self.fault("broadcasters", at))
        return silence or {chain.chain_id: self._members(chain.chain_id, at) for chain in self.layout if chain.members}

    def messaging(self, at: int) -> int | Silence:
        """How many peers the messaging node is connected with."""
        episode = self.fault("messaging", at)
        return _silence(episode) or self.peers(episode, at)

    def responder(self, service: str, chain_id: int, at: int) -> Silence | None:
        """How one of a chain's responders fails to answer; None if it does answer."""
        return _silence(self.fault(f"{service}/{chain_id}", at))

    def head(self, chain_id: int, at: int) -> Block:
        """The chain's true head."""
        return self._chains[chain_id].head(at)

    def fault(self, subject: str, at: int) -> FaultEpisode | None:
        """What is wrong with a subject at this instant."""
        return self._courses[subject].at(at)

    def calm_until(self, service: str, chain_id: int | None, at: int) -> float:
        """When something next goes wrong with a service on a chain; this very instant while something does."""
        its = (service, f"{service}/{chain_id}")
        return min(self._courses[subject].calm_until(at) for subject in its if subject in self._courses)

    def _indexer(self, subject: str) -> SimulatedProgress:
        delay_ms = random.Random(f"{self.seed}/{subject}/delay").randrange(1_000, 6_000)
        return SimulatedProgress(delay_ms, self.origin_at, self._courses[subject])

    def _tree(self, subject: str) -> tuple[Tree, SimulatedProgress]:
        chance = random.Random(f"{self.seed}/{subject}/tree")
        gap_ms = chance.randrange(SHORTEST_GAP_MS * 3 // 2, SHORTEST_GAP_MS * 10)
        tree = Tree(chance.randrange(10_000, 200_000), gap_ms, self.origin_at)
        return tree, SimulatedProgress(_PPOI_DELAY_MS, self.origin_at, self._courses[subject])

    def position(self, service: str, chain_id: int, at: int) -> int:
        """The last block that an indexer has, whether or not it answers."""
        episode = self.fault(f"{service}/{chain_id}", at)
        if episode is not None and episode.kind == "wipe":
            return NOTHING_INDEXED
        reached = self.head(chain_id, self._indexers[service, chain_id].reached_at(at))
        return max(0, reached.height - self._of_chain[chain_id].confirmations)

    def indexes(self, chain_id: int, at: int) -> Indexes:
        """How far the ppoi node's tree of one network has got, whether or not it answers."""
        tree, progress = self._trees[chain_id]
        return Indexes(tree.index(progress.reached_at(at)), tree.index(at))

    def members(self, chain_id: int, episode: FaultEpisode | None) -> Members:
        """How many broadcasters of a chain that goes through this episode are heard."""
        known = self._of_chain[chain_id].members
        match episode:
            case FaultEpisode(kind="some-silent", size=percent):
                return Members(known - min(known - 1, max(1, known * percent // 100)), known)
            case FaultEpisode(kind="silent", size=first):
                return Members(known - min(known, first or known), known)
            case FaultEpisode(kind="none-known"):
                return Members(0, 0)
            case _:
                return Members(known, known)

    def peers(self, episode: FaultEpisode | None, at: int) -> int:
        """How many peers a messaging node that goes through this episode has."""
        if episode is not None and episode.kind == "zero-peers":
            return 0
        return 4 + (at // 60_000 + self.seed) * 7_919 % 11

    def _network(
        self, chain_id: int, at: int, node: FaultEpisode | None
    ) -> Indexes | Literal["nothing", "missing-list"]:
        episode = self.fault(f"ppoi/{chain_id}", at)
        if episode is not None and episode.kind == "missing-network":
            return "nothing"
        return "missing-list" if node is not None else self.indexes(chain_id, at)

    def _members(self, chain_id: int, at: int) -> Members:
        return self.members(chain_id, self.fault(f"broadcasters/{chain_id}", at))


def drawn_world(layout: Layout, seed: int, begin_at: int, end_at: int, intensity: float = 1) -> World:
    """A world whose faults, over this period, follow from the seed."""
    return World(layout, seed, begin_at, draw_episodes(layout, seed, begin_at, end_at, intensity))


def _silence(episode: FaultEpisode | None) -> Silence | None:
    """How a service that does not answer fails to."""
    if episode is None:
        return None
    if episode.kind == "hang":
        return "hang"
    return "fail" if episode.kind in ("fail", "outage") else None
