"""Worlds in which lists with a running hash lose and regain entries, while chains, indexers and balancers misbehave
(S20), and worlds of ppoi nodes that are behind a list now and then, or keep an old tree (S21).

Each row of a list knows which row it follows, so a world knows without the hash which pairs do not fit. Whatever
happens, nothing else may be reported; and what does not fit is reported in time, and not for long after its repair.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from Crypto.Hash import keccak

from lookout.core.model import ListEntry
from lookout.features.lists.rules.links import (
    Break,
    Links,
    choose_reads,
    confirmed_breaks,
    is_hurried,
    resume,
    take_answer,
)
from lookout.features.lists.rules.node_gap import NodeGap, confirmed_gap, doubt, read_gap
from tests.simulation.lists import Outcome

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_ORIGIN: Final = 1_793_880_000_000
_BLOCK_MS: Final = 2 * _SECOND
_FINAL_BLOCKS: Final = 5 + _MINUTE // _BLOCK_MS
_PAGE: Final = 25
_REPORT_MS: Final = 10 * _MINUTE
_END_MS: Final = 5 * _MINUTE
_DAY_MS: Final = 25 * _HOUR


class _Row(NamedTuple):
    """An entry, the one that its hash follows from, and when it is not in the list."""

    id: str
    block: int
    value: str
    hash: str
    before: str
    lost: tuple[int, int] | None = None

    def is_lost(self, at: int) -> bool:
        return self.lost is not None and self.lost[0] <= at < self.lost[1]


class _World:
    def __init__(self, seed: int, hours: int) -> None:
        self.chance = Random(seed)
        self.now, self.end = _ORIGIN, _ORIGIN + hours * _HOUR
        self.rows: list[_Row] = []
        self.mode = self.chance.choice(("plain", "plain", "replicas", "rebuilt", "short fields", "stutter"))
        self.rebuilt_at: int | None = None
        self.lagging: tuple[int, int] | None = None  # until when, by how many blocks
        self.per_hour = self.chance.choice((2, 12, 60))
        self.number = 0
        for _ in range(self.chance.randrange(3, 60)):
            self.add(self.head() - self.chance.randrange(40, 90))
        self.rows.sort()

    def head(self) -> int:
        return 1_000 + (self.now - _ORIGIN) // _BLOCK_MS

    def add(self, block: int) -> None:
        """The entries of one transaction."""
        block = max(block, self.rows[-1].block + 1 if self.rows else 0)
        for place in range(self.chance.choice((1, 1, 2, 3))):
            self.number += 1
            value, last = f"{self.number:064x}", self.rows[-1] if self.rows else None
            made = keccak.new(digest_bits=256, data=bytes.fromhex(("" if last is None else last.hash) + value))
            row = _Row(f"{block:08}-{place}", block, value, made.hexdigest(), "" if last is None else last.hash)
            self.rows.append(row)

    def happen(self) -> None:
        """What may happen in any minute."""
        chance = self.chance
        for _ in range(chance.choice((0, 0, 1, 3)) if chance.random() < self.per_hour / 60 else 0):
            self.add(self.head())
        if chance.random() < 0.05:  # a reorganisation: what was not final is replaced
            depth = chance.randrange(1, _FINAL_BLOCKS - 1)
            gone = [row for row in self.rows if row.block > self.head() - depth]
            self.rows = self.rows[: len(self.rows) - len(gone)]
            for _ in gone[: chance.randrange(3)]:
                self.add(self.head())
        if self.mode == "rebuilt" and self.rebuilt_at is None and chance.random() < 0.01:
            self.rebuilt_at = self.now
        if self.lagging is None and chance.random() < 0.01:
            self.lagging = self.now + chance.randrange(40) * _MINUTE, chance.randrange(2_000)
        if chance.random() < 0.02 and len(self.rows) > 3:
            self.lose(chance.randrange(len(self.rows) - 2), chance.choice((7, 40, 200)) * _MINUTE)
        if self.mode == "stutter" and chance.random() < 0.3 and len(self.rows) > 3:
            self.lose(chance.randrange(len(self.rows) - 2), 40 * _SECOND)

    def lose(self, place: int, lasts_ms: int) -> None:
        if self.rows[place].lost is None:
            self.rows[place] = self.rows[place]._replace(lost=(self.now, self.now + lasts_ms))

    def position(self, replica: int) -> int:
        at = self.head()
        if self.rebuilt_at is not None:
            at = min(at, (self.now - self.rebuilt_at) // 600)
        if self.lagging is not None and self.now < self.lagging[0]:
            at = max(0, at - self.lagging[1])
        return at - 300 * replica

    def visible(self, replica: int) -> list[_Row]:
        reached = self.position(replica)
        return [row for row in self.rows if row.block <= reached and not row.is_lost(self.now)]

    def answer(self, from_id: str, replica: int) -> list[ListEntry]:
        rows = self.visible(replica)
        begin = bisect_left(rows, from_id, key=lambda row: row.id)
        return [self.show(row) for row in rows[begin : begin + _PAGE]]

    def show(self, row: _Row) -> ListEntry:
        """Some lists lack a field of some of their entries."""
        lacks = self.mode == "short fields" and int(row.value, 16) % 7 == 0
        return ListEntry(row.id, row.block, None if lacks else f"0x{row.value}", f"0x{row.hash}")

    def replica(self) -> int:
        return self.chance.randrange(2) if self.mode == "replicas" else 0

    def wrong_pairs(self) -> Iterator[tuple[str, str]]:
        for one, other in pairwise(self.visible(0)):
            if other.before != one.hash and other.block <= self.head() - _FINAL_BLOCKS:
                yield one.id, other.id


Pair = tuple[str, str]


def live_list(seed: int, *, second_look: bool = True) -> Outcome:
    """Let hours pass in the list of this seed. Without the second look, whatever does not fit once is reported: that
    has to be found out."""
    hours = 27 if seed % 100 == 0 else 2
    world, links, reported = _World(seed, hours), Links(subject=""), set[Pair]()
    shown = set[Pair]()  # a minute ago
    since, first, last, new = dict[Pair, int](), dict[Pair, int](), dict[Pair, int](), set[Pair]()  # of wrong pairs
    whole_since = world.now  # the list is as long as it was
    may_last_ms = {"replicas": 30 * _MINUTE, "short fields": world.end}.get(world.mode, _END_MS)
    while world.now < world.end:
        world.happen()
        pairs = set(world.wrong_pairs())
        since = {pair: since.get(pair, world.now) for pair in pairs}
        first, last = dict.fromkeys(pairs, world.now) | first, last | dict.fromkeys(pairs, world.now)
        new = {pair for pair in pairs if pair in new or (since[pair] == world.now and pair[1] > links.newest_id)}
        visible = world.visible(0)
        if not visible or visible[-1].id < links.newest_id:
            whole_since = world.now
        if world.chance.random() < 0.01:
            links = resume(links, world.now)
        links = _look(world, links)
        before, shown = shown, {(each.first.id, each.second.id) for each in _shown(links, second_look=second_look)}
        for pair in shown:
            ended_ms = world.now - max(last.get(pair, -world.end), whole_since)
            is_there = any(row.id == pair[0] for row in visible)  # if not, it ends when all entries are read again
            if pair not in last or (is_there and ended_ms > may_last_ms):
                return Outcome(f"seed {seed}: {pair} was reported, and fits", len(reported), 0)
            is_known = any(one < pair[1] and pair[0] < other for one, other in before)  # what became of a break
            if not is_known and world.now - first.get(pair, world.now) < _MINUTE:
                return Outcome(f"seed {seed}: {pair} was reported at its first sight", len(reported), 0)
            reported.add(pair)
        if world.mode == "plain":
            for pair in pairs - reported:
                if world.now - max(since[pair], whole_since) > (_REPORT_MS if pair in new else _DAY_MS):
                    return Outcome(f"seed {seed}: {pair} does not fit, and was not reported", len(reported), 0)
        world.now += _MINUTE + world.chance.randrange(5) * _SECOND
    return Outcome("", len(reported), hours)


def _shown(links: Links, *, second_look: bool) -> tuple[Break, ...]:
    return confirmed_breaks(links) if second_look else links.breaks


def _look(world: _World, links: Links) -> Links:
    """What the monitor does in a minute."""
    final = min(world.head() - _FINAL_BLOCKS, world.position(world.replica()))
    for _ in range(4):
        for read in choose_reads(links, world.now):
            links = take_answer(links, read, world.answer(read.from_id, world.replica()), world.now, final)
        if not is_hurried(links):
            break
    return links


def live_node(seed: int, *, second_look: bool = True) -> Outcome:
    """Let hours pass beside a node: it is reported if, and only if, every reading of an hour found it behind."""
    chance, at = Random(seed), _ORIGIN
    known, is_reported, reported = NodeGap(""), False, 0
    readings: list[tuple[int, bool]] = []  # when, and whether it shows a node that is behind
    entries = has = 100
    split = (at + chance.randrange(4) * _HOUR, at + chance.randrange(9) * _HOUR, chance.randrange(1, 5))
    often = chance.choice((0.02, 0.1, 0.5))
    while at < _ORIGIN + 8 * _HOUR:
        entries += chance.choice((0, 0, 0, 0, 0, 0, 1, 3))
        if chance.random() < often:
            has = entries + chance.randrange(-1, 2)
        lacking = split[2] if split[0] <= at < split[1] else 0
        is_current = chance.random() > 0.004
        if chance.random() < 0.004:
            known = doubt(known)
            readings.append((at, False))
        known = read_gap(known, entries, has - lacking - 1, at, are_current=is_current)
        readings.append((at, is_current and entries > has - lacking))
        is_reported = (is_reported and entries > has - lacking) or _was_behind_for_an_hour(readings)
        if is_reported != bool(confirmed_gap(known) if second_look else known.gap):
            return Outcome(f"seed {seed}: a node {'was not' if is_reported else 'was'} reported at {at}", reported, 0)
        reported += is_reported
        at += chance.choice((60, 60, 60, 61, 300, 301)) * _SECOND if chance.random() < 0.02 else _MINUTE
    return Outcome("", reported, 8)


def _was_behind_for_an_hour(readings: list[tuple[int, bool]]) -> bool:
    now = after = readings[-1][0]
    for at, is_behind in reversed(readings):
        if not is_behind or after - at > 5 * _MINUTE:
            return False
        if now - at >= _HOUR:
            return True
        after = at
    return False
