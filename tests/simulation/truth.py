"""What is true in the simulated world, and what an onlooker who knows it may expect of a chain's reference head."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from lookout.core.model import Check
from lookout.demo.rehearsal import Life
from lookout.demo.sim.episodes import FaultEpisode
from lookout.demo.sim.world import World
from tests.builders import HOUR, MINUTE, SECOND

HEAD_MAX_AGE = 60 * SECOND
# An endpoint's last answer before its fault ended, or before it began, is used for a little longer.
AFTERGLOW = 75 * SECOND
NO_HEAD = {"fail", "hang", "future", "wrong-chain"}

Interval = tuple[int, int]


class Truth(NamedTuple):
    """What is so about one check, whether or not anybody can see it; what does not apply is None."""

    answering: bool
    position: int | None = None
    head: int | None = None  # of a ppoi node
    responding: int | None = None
    monitored: int | None = None
    peers: int | None = None


def truth_of(world: World, check: Check, at: int) -> Truth:
    service, chain_id = check
    of_service = world.fault(service if "indexer" not in service else f"{service}/{chain_id}", at)
    answering = of_service is None or of_service.kind not in ("hang", "fail", "outage")
    if chain_id is None:
        return Truth(answering, peers=world.peers(of_service, at))
    match service:
        case "broadcasters":
            heard = world.members(chain_id, world.fault(f"broadcasters/{chain_id}", at))
            return Truth(answering, responding=heard.responding, monitored=heard.monitored)
        case "ppoi":
            return Truth(answering, *world.indexes(chain_id, at))
        case _:
            return Truth(answering, world.position(service, chain_id, at))


class Onlooker:
    """Knows the truth about one chain and its endpoints, and how far the monitor may honestly be from it."""

    def __init__(self, world: World, chain_id: int, lives: Sequence[Life]) -> None:
        (self.chain,) = (chain for chain in world.layout if chain.chain_id == chain_id)
        self._world = world
        self._lives = lives
        faults = [
            [episode for episode in world.episodes if episode.subject == f"rpc/{chain_id}/{number}"]
            for number in range(self.chain.endpoints)
        ]
        useless = [[episode for episode in its if episode.kind in NO_HEAD] for its in faults]
        at_fault = [[(episode.begin_at, episode.end_at + AFTERGLOW) for episode in its] for its in faults]
        self._outvoted = [
            (begin_at, end_at + HOUR + 2 * MINUTE)
            for two in combinations(at_fault, 2)
            for begin_at, end_at in overlaps(two)
        ]
        self._headless = overlaps([[(e.begin_at + AFTERGLOW, e.end_at) for e in its] for its in useless])
        # Two of three or more are needed to agree; of two, one that is far from the other may be enough to prevent it.
        needed = 2 if self.chain.endpoints > 2 else 1
        self._uncertain = [interval for some in combinations(at_fault, needed) for interval in overlaps(some)]

    def outvoted(self, at: int) -> bool:
        """Two endpoints were at fault at once within the last hour: the head or its pace may be wrong by right."""
        return _within(self._outvoted, at)

    def has_no_head(self, at: int) -> bool:
        """Every endpoint has been useless for so long that the last head is too old."""
        return _within(self._headless, at)

    def may_lack_a_head(self, at: int) -> bool:
        """So many endpoints were at fault within the last minute that the others may not have agreed on anything."""
        return _within(self._uncertain, at)

    def surely_near(self, position: int, at: int) -> bool:
        """A minute ago the head was within 10 blocks of this position, or below it: quick to see, nearly always so."""
        height = self._world.head(self.chain.chain_id, at - HEAD_MAX_AGE + SECOND).height
        return height - self.chain.confirmations - position <= 10

    def lags(self, position: int, at: int) -> tuple[int, int]:
        """The least and the greatest lag that a monitor may see, whose head is up to a minute old."""
        heights = [self._world.head(self.chain.chain_id, at - age).height for age in range(0, HEAD_MAX_AGE, SECOND)]
        net = [height - self.chain.confirmations - position for height in heights]
        return max(0, min(net)), max(0, max(net) + 2 * SECOND // self.chain.block_ms)

    def block_times(self, at: int) -> tuple[float, float]:
        """The shortest and the longest block time, in ms, that it may have measured over the hour before."""
        newest = [self._world.head(self.chain.chain_id, at - age) for age in range(0, HEAD_MAX_AGE, 5 * SECOND)]
        window_at = self._watched_from(at - HOUR)
        oldest = [
            self._world.head(self.chain.chain_id, window_at + after)
            for after in range(-HEAD_MAX_AGE, HEAD_MAX_AGE, 5 * SECOND)
        ]
        paces = {float(self.chain.block_ms)} if newest[0].block_at - oldest[0].block_at < 12 * MINUTE else set()
        for new in newest:
            for old in oldest:
                span_ms, blocks = new.block_at - old.block_at, new.height - old.height
                enough = span_ms >= 10 * MINUTE and blocks >= 10
                paces.add(span_ms / blocks if enough else float(self.chain.block_ms))
        return 0.98 * min(paces), 1.02 * max(paces)

    def _watched_from(self, at: int) -> int:
        """The first instant from this one on at which the monitor ran."""
        return next(max(at, life.begin_at) for life in self._lives if at < life.end_at)


def running_throughout(lives: Sequence[Life], begin_at: int, end_at: int) -> bool:
    return any(life.begin_at <= begin_at and end_at <= life.end_at for life in lives)


def stopped_throughout(lives: Sequence[Life], begin_at: int, end_at: int) -> bool:
    return any(before.end_at <= begin_at and end_at <= after.begin_at for before, after in pairwise(lives))


def overlaps(of_each: Sequence[Sequence[Interval]]) -> list[Interval]:
    """When all of them are in one of their intervals at once."""
    together: list[Interval] = [(0, 1 << 62)]
    for intervals in of_each:
        together = [
            (max(one[0], other[0]), min(one[1], other[1]))
            for one in together
            for other in intervals
            if max(one[0], other[0]) < min(one[1], other[1])
        ]
    return together


def _within(intervals: Sequence[Interval], at: int) -> bool:
    return any(begin_at <= at < end_at for begin_at, end_at in intervals)


def silencing(episode: FaultEpisode) -> bool:
    """Whether every probe of the subject fails in this episode."""
    return episode.kind in ("fail", "hang", "outage", "silent", "zero-peers")
