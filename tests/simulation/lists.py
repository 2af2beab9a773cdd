"""Worlds in which lists lose and regain transactions while chains, endpoints and indexers misbehave (S17 to S19).

A world knows what its list lacks. Whatever happens, nothing else may be reported; and what is lacking is reported in
time, and not for long after it is repaired. In a calm world only single requests fail: there every block is compared
in time.
"""

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from lookout.core.model import NO_GAPS, Blocks, Check, Listed, Log
from lookout.features.lists.known import COVERAGE, Known
from lookout.features.lists.rules.coverage import (
    Ask,
    AskList,
    AskLogs,
    AskPosition,
    Coverage,
    Facts,
    Finding,
    Look,
    Refused,
    choose_look,
    find_unchecked,
)

_SECOND: Final = 1_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_ORIGIN: Final = 1_793_880_000_000
_BLOCK_MS: Final = 2 * _SECOND
_CONFIRMATIONS: Final = 5
_FINAL_BLOCKS: Final = _MINUTE // _BLOCK_MS
_CHECK: Final = Check("indexer", 1)
_ENDPOINTS: Final = ("a", "b", "c")
_FIRST: Final = 1_000
_REPORT_MS: Final = 10 * _MINUTE
_END_MS: Final = 5 * _MINUTE
_BETWEEN_FAILURES_MS: Final = 12 * _MINUTE
_ASK_MS: Final = {AskLogs: 2 * _SECOND, AskList: 100, AskPosition: 50}
_REPLICA_LAG: Final = 400  # blocks


class Outcome(NamedTuple):
    problem: str
    reported: int
    """How many lasting omissions were reported."""
    hours: float
    metrics: frozenset[str] = frozenset()
    """Of the rows, by which something was reported."""


class _World:
    def __init__(self, seed: int, each: bool, hours: int) -> None:
        self.chance = Random(seed)
        self.each = each
        self.now = _ORIGIN
        self.fork: dict[int, int] = {}  # how often blocks were replaced
        self.chain: dict[int, list[str]] = {}  # the transactions of every block that has some, by their events
        self.filled: list[int] = []
        self.lacking: dict[str, tuple[int, int, int | None]] = {}  # block, since, until
        self.mode = self.chance.choice(("plain", "replicas", "rounds", "plain", "rebuilt"))
        self.rebuilt_at: int | None = None
        self.dropping: tuple[str, int] | None = None  # an endpoint, until when
        self.failing: dict[str, int] = {}
        self.is_calm = self.mode == "plain" and self.chance.random() < 0.5
        self.failed_at = 0
        self.narrow = 10**9 if self.is_calm else self.chance.choice((10**9, 700, 90))
        self.turn = 0
        self.density = self.chance.choice((3, 17, 60))
        self.make_blocks(range(_FIRST, _FIRST + 2_000 + (hours * _HOUR + _HOUR) // _BLOCK_MS))

    def head(self) -> int:
        return _FIRST + 2_000 + (self.now - _ORIGIN) // _BLOCK_MS

    def make_blocks(self, blocks: Iterable[int]) -> None:
        """A transaction in some blocks, with one or two events; another one after a reorganisation."""
        for block in blocks:
            digest = hashlib.sha256(b"%d %d" % (block, self.fork.get(block, 0))).digest()
            self.chain.pop(block, None)
            if digest[0] % self.density == 0:
                self.chain[block] = ["0x" + digest.hex()] * (1 + digest[1] % 2)
        self.filled = sorted(self.chain)

    def logs_in(self, first: int, last: int) -> Iterator[tuple[int, list[str]]]:
        """The blocks of this range with transactions."""
        for block in self.filled[bisect_left(self.filled, first) : bisect_right(self.filled, last)]:
            yield block, self.chain[block]

    def positions(self) -> list[int]:
        """Of the replicas that answer in turn."""
        at = self.head() - _CONFIRMATIONS
        if self.rebuilt_at is not None:
            at = min(at, (self.now - self.rebuilt_at) * 20 // _BLOCK_MS)
        return [at, at - _REPLICA_LAG] if self.mode == "replicas" else [at]

    def list_of(self, first: int, last: int, position: int) -> Listed:
        if self.mode == "rounds" and first == last:
            first, last = first + 1, last + 1  # dates its entries by another block
        entries: list[str] = []
        for _, keys in self.logs_in(first, min(last, position)):
            lost = self.lacking.get(keys[0])
            entries += keys[lost is not None and self.is_lacking(lost) :]
        return Listed(Counter(entries), len(entries))

    def is_lacking(self, lost: tuple[int, int, int | None]) -> bool:
        return lost[1] <= self.now and (lost[2] is None or self.now < lost[2])

    def was_lacking(self, finding: Finding) -> bool:
        """Whether the list lacks it, or lacked it until a moment ago."""
        lost = self.lacking.get(finding.hash)
        if lost is None or finding.listed > finding.logged:
            return False
        return lost[1] <= self.now and (lost[2] is None or self.now < lost[2] + _END_MS + 5 * _MINUTE)

    def answer(self, ask: Ask) -> Any:
        self.now += _ASK_MS[type(ask)]
        self.turn += self.chance.choice((1, 1, 2))
        positions = self.positions()
        position = positions[self.turn % len(positions)]
        fails = self.fails_once()
        match ask:
            case AskPosition():
                return None if fails else position
            case AskList(first, last):
                if fails or (not self.is_calm and self.chance.random() < 0.01):
                    return Refused()
                return self.list_of(first, last, position)
            case AskLogs(endpoint, first, last):
                if fails or self.failing.get(endpoint, 0) > self.now:
                    return Refused()
                if last - first >= self.narrow:
                    return Refused(asks_for_less=True)
                drops = self.dropping is not None and self.dropping[0] == endpoint and self.dropping[1] > self.now
                return frozenset(
                    Log(block, f"0x{block:064x}", key, number)
                    for block, keys in self.logs_in(first, last)
                    if not (drops and block % 2)
                    for number, key in enumerate(keys)
                )

    def fails_once(self) -> bool:
        """Whether this request fails, in a calm world: then none does for a while."""
        may_fail = self.is_calm and self.now - self.failed_at >= _BETWEEN_FAILURES_MS
        fails = may_fail and self.chance.random() < 0.1
        self.failed_at = self.now if fails else self.failed_at
        return fails

    def happen(self) -> None:
        """What may happen in any minute."""
        chance, head = self.chance, self.head()
        if chance.random() < 0.1:  # a reorganisation of blocks that are not final
            replaced = range(head - chance.randrange(1, _FINAL_BLOCKS - _CONFIRMATIONS), head + 1)
            self.fork.update({block: self.fork.get(block, 0) + 1 for block in replaced})
            self.make_blocks(replaced)
        if not self.is_calm and chance.random() < 0.05:
            self.dropping = (chance.choice(_ENDPOINTS), self.now + 20 * _MINUTE)
        if not self.is_calm and chance.random() < 0.05:
            self.failing[chance.choice(_ENDPOINTS)] = self.now + chance.randrange(30) * _MINUTE
        if self.mode == "rebuilt" and self.rebuilt_at is None and chance.random() < 0.02:
            self.rebuilt_at = self.now
        if len(self.lacking) < 3 and chance.random() < 0.03:
            self.lose(head - chance.randrange(-20, 200))

    def lose(self, near: int) -> None:
        if self.mode == "rounds":
            return
        for block, keys in self.logs_in(near, near + 500):
            if self.each or len(keys) == 1:
                lasts_ms = self.chance.choice((3, 40, 90)) * _MINUTE
                self.lacking.setdefault(keys[0], (block, self.now, self.now + lasts_ms))
                return


def live(seed: int, *, hours: int = 2, second_look: bool = True) -> Outcome:
    """Let hours pass in the world of this seed. Without the second look, whatever differs once is reported: that has to
    be found out."""
    facts = Facts(_FIRST, limit=1_000, endpoints_needed=2, each=seed % 2 == 0, now=0, end=None, heights={})
    world, reported, lists = _World(seed, facts.each, hours), dict[str, int](), Known({})
    lists.follow({(COVERAGE, _CHECK): ""}, world.now)
    end, minute_at = _ORIGIN + hours * _HOUR, _ORIGIN
    compared_to = world.head() - _FINAL_BLOCKS  # from when the world begins
    while world.now < end:
        if world.now >= minute_at:
            minute_at += _MINUTE // 2
            if minute_at % _MINUTE == 0:
                world.happen()
            if world.chance.random() < 0.01:
                lists.restart(world.now, was_set=False)
            lists.hear(_CHECK, Blocks(world.chance.choice(world.positions())))  # what a probe finds
        heights = dict.fromkeys(_ENDPOINTS, world.head())
        position = lists.position(_CHECK)
        final = None if position is None else min(world.head() - _FINAL_BLOCKS, position)
        look = choose_look(lists.get(COVERAGE, _CHECK), replace(facts, now=world.now, end=final, heights=heights))
        if look is None:
            world.now += 15 * _SECOND
            continue
        lists.end_look(_CHECK, _drive(look, world))
        coverage = lists.get(COVERAGE, _CHECK)
        compared_to, _ = next(find_unchecked(coverage, compared_to, world.head()))
        if world.is_calm and compared_to < world.head() - _FINAL_BLOCKS - _REPORT_MS // _BLOCK_MS:
            return Outcome(f"seed {seed}: block {compared_to} is final for ten minutes, and not compared", 0, 0)
        for finding in coverage.findings.values():
            if (finding.is_confirmed or not second_look) and not world.was_lacking(finding):
                return Outcome(f"seed {seed}: {finding} was reported, and the list has it", len(reported), 0)
            if finding.is_confirmed:
                reported.setdefault(finding.hash, world.now)
        if coverage.unusable and lists.gaps(_CHECK) != NO_GAPS:
            return Outcome(f"seed {seed}: an unusable list was accused", len(reported), 0)
    late = _find_late(world, reported)
    return Outcome(late and f"seed {seed}: {late}", len(reported), hours)


def _drive(look: Look, world: _World) -> Coverage:
    try:
        ask = next(look)
        while True:
            ask = look.send(world.answer(ask))
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _find_late(world: _World, reported: dict[str, int]) -> str:
    """In a calm world, what is lacking when its block becomes final is reported within ten minutes."""
    for key, (block, since, until) in world.lacking.items() if world.is_calm else ():
        final_at = _ORIGIN + (block + _FINAL_BLOCKS - _FIRST - 2_000) * _BLOCK_MS
        due_at = final_at + _REPORT_MS
        is_still_due = world.chain.get(block, [""])[0] == key and due_at < min(until or world.now, world.now)
        if since < final_at and is_still_due and reported.get(key, world.now) > due_at:
            return f"{key} in block {block}, final at {final_at}, was reported at {reported.get(key)}"
    return ""
