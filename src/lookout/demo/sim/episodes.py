"""Faults as episodes: one subject goes wrong in one way for a while."""

import random
from bisect import bisect_right
from collections.abc import Iterable
from math import inf
from typing import Final, NamedTuple

from lookout.demo.sim.faults import FAULTS, Odds
from lookout.demo.sim.layout import Layout, SubjectKind, subjects

_MONTH_MS: Final = 30 * 86_400_000


class FaultEpisode(NamedTuple):
    """A subject has a fault from ``begin_at`` until ``end_at``; ``kind`` is a fault's name, which says what ``size``
    means."""

    subject: str
    kind: str
    begin_at: int
    end_at: int
    size: int = 0


class Course:
    """The episodes of one subject as stretches of time, in each of which at most one of them holds.

    Where two overlap, the one that began later holds, and the other again after it.
    """

    __slots__ = ("_begins", "stretches")

    def __init__(self, episodes: Iterable[FaultEpisode]) -> None:
        coming = sorted(episodes, key=lambda episode: episode.begin_at, reverse=True)
        self._begins = sorted({at for episode in coming for at in (episode.begin_at, episode.end_at)})
        self.stretches: list[tuple[int, FaultEpisode | None]] = []
        begun: list[FaultEpisode] = []
        for at in self._begins:
            while coming and coming[-1].begin_at <= at:
                begun.append(coming.pop())
            begun = [episode for episode in begun if episode.end_at > at]
            self.stretches.append((at, begun[-1] if begun else None))

    def at(self, at: int) -> FaultEpisode | None:
        """The episode that holds at this instant."""
        index = bisect_right(self._begins, at)
        return self.stretches[index - 1][1] if index else None

    def calm_until(self, at: int) -> float:
        """When the next episode begins; this very instant while one holds."""
        index = bisect_right(self._begins, at)
        if index and self.stretches[index - 1][1] is not None:
            return at
        return self._begins[index] if index < len(self._begins) else inf


def courses(layout: Layout, origin_at: int, episodes: Iterable[FaultEpisode]) -> dict[str, Course]:
    """Every subject's course; ValueError names an episode that cannot happen in this world."""
    kinds = subjects(layout)
    of_subject: dict[str, list[FaultEpisode]] = {subject: [] for subject in kinds}
    for episode in episodes:
        if episode.subject not in of_subject:
            raise ValueError(f"{episode.subject!r} is not in this world; there are {', '.join(of_subject)}")
        possible = odds_of(kinds[episode.subject])
        if episode.kind not in possible:
            raise ValueError(f"{episode.kind!r} does not apply to {episode.subject}, only {', '.join(possible)}")
        if not origin_at <= episode.begin_at < episode.end_at:
            raise ValueError(
                f"{episode.kind} of {episode.subject} from {episode.begin_at} to {episode.end_at}"
                f" does not begin after the world, at {origin_at}, and end later"
            )
        of_subject[episode.subject].append(episode)
    return {subject: Course(its) for subject, its in of_subject.items()}


def odds_of(kind: SubjectKind) -> dict[str, Odds]:
    """The faults that a subject of this kind may have in a world, by name."""
    return {fault.name: fault.odds[kind] for fault in FAULTS.values() if kind in fault.odds}


def draw_episodes(
    layout: Layout, seed: int, begin_at: int, end_at: int, intensity: float = 1
) -> tuple[FaultEpisode, ...]:
    """The episodes that begin in this period, ``intensity`` times as often as the table says.

    A subject's episodes do not overlap, and depend on no other subject's.
    """
    drawn: list[FaultEpisode] = []
    for subject, kind in subjects(layout).items():
        chance = random.Random(f"{seed}/{subject}")
        possible = list(odds_of(kind).items())
        weights = [odds.per_month for _, odds in possible]
        pause_ms = _MONTH_MS / (sum(weights) * intensity)  # on average
        at = begin_at + 1 + round(chance.expovariate(1 / pause_ms))
        while at < end_at:
            ((name, odds),) = chance.choices(possible, weights)
            lasts_ms = max(1, round(1000 * _between(chance, odds.shortest_s, odds.longest_s)))
            size = round(_between(chance, odds.smallest, odds.largest))
            drawn.append(FaultEpisode(subject, name, at, at + lasts_ms, size))
            at += lasts_ms + 1 + round(chance.expovariate(1 / pause_ms))
    return tuple(drawn)


def _between(chance: random.Random, low: float, high: float) -> float:
    """Draw a size, of any magnitude in this range as likely as of any other; 0 for a fault that has no size."""
    return float(low * (high / low) ** chance.random()) if low else 0.0
