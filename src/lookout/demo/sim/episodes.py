"""Faults as episodes: one subject misbehaves in one way for a while. Which ways there are stands in one table."""

import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from math import inf
from typing import Final, Literal, NamedTuple

from lookout.demo.sim.layout import Layout, subjects

EpisodeKind = Literal[
    "fail",  # answers with an error, or refuses
    "hang",  # never answers
    "outage",  # fails, does no work meanwhile, and has to catch up afterwards
    "freeze",  # goes on answering, for ever with the same
    "behind",  # works, at `size` percent of the chain's speed
    "rebuild",  # has nothing, and afterwards begins with the block of `size` ms before
    "lag",  # tells what was true `size` ms ago
    "lie-high",  # tells a height `size` blocks too high
    "lie-low",  # the same, too low
    "future",  # tells a block that is `size` ms ahead of its time
    "past",  # its block timestamps are `size` ms too old
    "genesis",  # has not begun to follow its chain: block 0, of the instant `size`, which is 1970 for most
    "late",  # answers rightly, after `size` ms
    "wrong-chain",  # answers for another chain
    "halt",  # no new blocks
    "pace",  # a block takes `size` percent of its usual time
    "reorg",  # the head goes back by `size` blocks, once
    "missing-list",
    "no-network",
    "some-silent",  # `size` percent of the members do not answer: at least one, never all
    "all-silent",
    "none-known",
    "no-peers",
]


class Episode(NamedTuple):
    """From ``begin_at`` on and until ``end_at``; what ``size`` means depends on the kind."""

    subject: str
    kind: EpisodeKind
    begin_at: int
    end_at: int
    size: int = 0


class Odds(NamedTuple):
    """How often a subject has a kind of fault, how long it lasts, and how large it is.

    One of 0 times a month is never drawn, and only happens in a world that names it: each kind that is drawn changes
    what all seeds draw.
    """

    kind: EpisodeKind
    per_month: float
    shortest_s: float
    longest_s: float
    smallest: int = 0
    largest: int = 0


_INDEXER_FAULTS: Final = (
    Odds("fail", 4, 20, 7_200),
    Odds("hang", 3, 20, 3_600),
    Odds("outage", 2, 60, 10_800),
    Odds("freeze", 2, 120, 14_400),
    Odds("behind", 3, 600, 14_400, 5, 95),
    Odds("rebuild", 0, 20, 600, 600_000, 43_200_000),
)

_RESPONDER_FAULTS: Final = (Odds("fail", 4, 20, 7_200), Odds("hang", 3, 20, 3_600))

# Every subject but the responders, with a star for each of its numbers, and which faults it may have.
FAULTS: Final[Mapping[str, tuple[Odds, ...]]] = {
    "chain/*": (
        Odds("halt", 0.5, 300, 7_200),
        Odds("pace", 2, 600, 43_200, 40, 300),
        Odds("reorg", 30, 0.001, 0.001, 1, 6),
    ),
    "rpc/*/*": (
        Odds("fail", 8, 10, 7_200),
        Odds("hang", 4, 10, 3_600),
        Odds("freeze", 4, 60, 14_400),
        Odds("lag", 4, 60, 14_400, 20_000, 3_600_000),
        Odds("lie-high", 2, 30, 7_200, 50, 1_000_000),
        Odds("lie-low", 2, 30, 7_200, 50, 1_000_000),
        Odds("future", 2, 30, 7_200, 90_000, 86_400_000),
        Odds("wrong-chain", 2, 30, 7_200),
        Odds("genesis", 0, 30, 7_200),
        Odds("past", 0, 30, 14_400, 60_000, 86_400_000),
        Odds("late", 0, 30, 14_400, 500, 9_000),
    ),
    "indexer/*": _INDEXER_FAULTS,
    "hosted-indexer/*": _INDEXER_FAULTS,
    "ppoi": (
        Odds("fail", 4, 20, 7_200),
        Odds("hang", 2, 20, 3_600),
        Odds("missing-list", 1, 300, 7_200),
    ),
    "ppoi/*": (
        Odds("freeze", 3, 120, 14_400),
        Odds("behind", 3, 600, 14_400, 5, 95),
        Odds("no-network", 0.5, 300, 7_200),
    ),
    "broadcasters": (Odds("fail", 3, 20, 3_600), Odds("hang", 2, 20, 3_600)),
    "broadcasters/*": (
        Odds("some-silent", 8, 60, 21_600, 1, 99),
        Odds("all-silent", 2, 60, 7_200),
        Odds("none-known", 0.5, 300, 3_600),
    ),
    "messaging": (Odds("fail", 3, 20, 3_600), Odds("hang", 2, 20, 3_600), Odds("no-peers", 2, 20, 1_800)),
}
_MONTH_MS: Final = 30 * 86_400_000
_NUMBER: Final = re.compile(r"\d+")


class Course:
    """The episodes of one subject as stretches of time, in each of which at most one of them holds.

    Where two overlap, the one that began later holds, and the other again after it.
    """

    __slots__ = ("_begins", "stretches")

    def __init__(self, episodes: Iterable[Episode]) -> None:
        coming = sorted(episodes, key=lambda episode: episode.begin_at, reverse=True)
        self._begins = sorted({at for episode in coming for at in (episode.begin_at, episode.end_at)})
        self.stretches: list[tuple[int, Episode | None]] = []
        begun: list[Episode] = []
        for at in self._begins:
            while coming and coming[-1].begin_at <= at:
                begun.append(coming.pop())
            begun = [episode for episode in begun if episode.end_at > at]
            self.stretches.append((at, begun[-1] if begun else None))

    def at(self, at: int) -> Episode | None:
        """The episode that holds at this instant."""
        index = bisect_right(self._begins, at)
        return self.stretches[index - 1][1] if index else None

    def calm_until(self, at: int) -> float:
        """When the next episode begins; this very instant while one holds."""
        index = bisect_right(self._begins, at)
        if index and self.stretches[index - 1][1] is not None:
            return at
        return self._begins[index] if index < len(self._begins) else inf


def courses(layout: Layout, origin_at: int, episodes: Iterable[Episode]) -> dict[str, Course]:
    """Every subject's course; ValueError names an episode that cannot happen in this world."""
    of_subject: dict[str, list[Episode]] = {subject: [] for subject in subjects(layout)}
    for episode in episodes:
        if episode.subject not in of_subject:
            raise ValueError(f"{episode.subject!r} is not in this world; there are {', '.join(of_subject)}")
        kinds = [fault.kind for fault in faults_of(episode.subject)]
        if episode.kind not in kinds:
            raise ValueError(f"{episode.kind!r} does not apply to {episode.subject}, only {', '.join(kinds)}")
        if not origin_at <= episode.begin_at < episode.end_at:
            raise ValueError(
                f"{episode.kind} of {episode.subject} from {episode.begin_at} to {episode.end_at}"
                f" does not begin after the world, at {origin_at}, and end later"
            )
        of_subject[episode.subject].append(episode)
    return {subject: Course(its) for subject, its in of_subject.items()}


def faults_of(subject: str) -> tuple[Odds, ...]:
    """The faults that a subject may have."""
    return FAULTS.get(_NUMBER.sub("*", subject), _RESPONDER_FAULTS)


def draw_episodes(layout: Layout, seed: int, begin_at: int, end_at: int, intensity: float = 1) -> tuple[Episode, ...]:
    """The episodes that begin in this period, ``intensity`` times as often as the table says.

    A subject's episodes do not overlap, and depend on no other subject's.
    """
    drawn: list[Episode] = []
    for subject in subjects(layout):
        chance = random.Random(f"{seed}/{subject}")
        faults = faults_of(subject)
        weights = [fault.per_month for fault in faults]
        pause_ms = _MONTH_MS / (sum(weights) * intensity)  # on average
        at = begin_at + 1 + round(chance.expovariate(1 / pause_ms))
        while at < end_at:
            (fault,) = chance.choices(faults, weights)
            lasts_ms = max(1, round(1000 * _between(chance, fault.shortest_s, fault.longest_s)))
            size = round(_between(chance, fault.smallest, fault.largest))
            drawn.append(Episode(subject, fault.kind, at, at + lasts_ms, size))
            at += lasts_ms + 1 + round(chance.expovariate(1 / pause_ms))
    return tuple(drawn)


def _between(chance: random.Random, low: float, high: float) -> float:
    """Of any magnitude in this range as likely as of any other; 0 for a fault that has no size."""
    return float(low * (high / low) ** chance.random()) if low else 0.0
