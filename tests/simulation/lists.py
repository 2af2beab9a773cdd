"""Worlds in which an indexer's list is held against a chain: a chain, endpoints, an indexer and its list, all drawn
from a seed, on a clock that only the requests move."""

import random
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from lookout.core.completeness.asks import (
    Ask,
    AskList,
    AskLogs,
    AskPosition,
    AskReceipt,
    Listed,
    Log,
    Position,
    Receipt,
    Refused,
)
from lookout.core.completeness.coverage import Coverage, follow_position, resume
from lookout.core.completeness.looks import run_task
from lookout.core.completeness.tasks import Facts, Rules, Task, choose_task
from tests.builders import HOUR, MINUTE, NOON, SECOND
from tests.oracles.lists import Instant, Oracle, Truth

REQUESTS_PER_MINUTE: Final = 5
SPACING_MS: Final = MINUTE // REQUESTS_PER_MINUTE
POLL_MS: Final = 30 * SECOND
MOST_LOOKS_PER_MINUTE: Final = 120

Fault = Literal[
    "none", "lies", "lags", "pruned", "silently pruned", "drops", "cuts", "forked", "narrow", "down", "wrong chain"
]
FAULTS: Final[tuple[Fault, ...]] = Fault.__args__  # type: ignore[attr-defined]
Indexing = Literal["right", "rolled back", "rebuilt", "stalls"]
Manner = Literal[
    "plain",
    "late",
    "replicas",
    "ignores to",
    "ignores from",
    "ignores both",
    "rounds down",
    "rounds up",
    "shifted",
    "dated by L1",
    "cut short",
    "fails",
    "refuses long",
    "refuses what it does not have",
    "momentarily empty",
    "dates some otherwise",
]
MANNERS: Final[tuple[Manner, ...]] = Manner.__args__  # type: ignore[attr-defined]
DATED_OTHERWISE: Final = 30
"""One in so many entries stands under a block of up to ``FARTHEST`` away, in a list of that manner."""
FARTHEST: Final = 1_500
KEPT_TO_RANGE: Final = ("plain", "late", "replicas", "fails", "refuses long", "refuses what it does not have")
Hole = Literal["none", "one", "batch", "stretch", "old one", "old batch", "some of each"]
HOLES: Final[tuple[Hole, ...]] = Hole.__args__  # type: ignore[attr-defined]
Surplus = Literal["none", "orphans kept", "made up", "without event"]
SURPLUSES: Final[tuple[Surplus, ...]] = Surplus.__args__  # type: ignore[attr-defined]
Order = Literal["up", "down", "any"]


class Script(NamedTuple):
    """All that is drawn of a world but the chances of its single moments."""

    seed: int
    hours: float = 2
    block_ms: int = 2_000
    past_blocks: int = 20_000
    transactions_per_hour: int = 60
    confirmations: int = 12
    reorganisations_per_hour: int = 0
    deepest: int = 6
    faults: tuple[Fault, ...] = ("none", "none", "none")
    needed: int = 2
    narrowest: int = 0
    """Ranges above so many blocks are refused by every endpoint; 0: none are."""
    are_all_pruned: bool = False
    indexing: Indexing = "right"
    manner: Manner = "plain"
    order: Order = "up"
    limit: int = 1_000
    is_per_event: bool = False
    hole: Hole = "none"
    is_healed: bool = False
    surplus: Surplus = "none"
    restarts: int = 0
    clock_steps: int = 0
    repeat_hours: float = 1


def draw(seed: int) -> Script:
    chance = random.Random(seed)
    pick = chance.choice
    faults: list[Fault] = ["none"] * pick((2, 3, 3, 3))
    if chance.random() < 0.7:
        faults[chance.randrange(len(faults))] = pick(FAULTS)
    needed = 2 if chance.random() < 0.85 else 1
    if needed == 1:
        faults = ["none"] * len(faults)
    script = Script(
        seed=seed,
        hours=pick((1, 1, 2, 3)),
        block_ms=pick((250, 1_000, 2_000, 2_000, 12_000)),
        past_blocks=pick((100, 3_000, 20_000, 60_000)),
        transactions_per_hour=pick((4, 30, 60, 200, 600)),
        confirmations=pick((1, 6, 12, 64)),
        reorganisations_per_hour=pick((0, 0, 2, 10)),
        deepest=pick((1, 5, 20, 80)),
        faults=tuple(faults),
        needed=needed,
        narrowest=pick((0, 0, 0, 0, 1_000, 500)),
        are_all_pruned=chance.random() < 0.08,
        indexing=pick(("right", "right", "right", "right", "rolled back", "rebuilt", "stalls")),
        manner=pick(("plain", "plain", "plain", *MANNERS[:-1])),
        order=pick(("up", "down", "any")),
        limit=pick((1_000, 1_000, 100, 25)),
        is_per_event=chance.random() < 0.2,
        hole=pick(("none", "none", "none", *HOLES)),
        is_healed=chance.random() < 0.5,
        surplus=pick(("none", "none", "none", *SURPLUSES)),
        restarts=pick((0, 0, 1, 3)),
        clock_steps=pick((0, 0, 0, 2)),
        repeat_hours=pick((0.5, 1, 20)),
    )
    # Where all endpoints have forgotten old blocks alike, nobody can know what such a list has from before them.
    is_dated_otherwise = not script.are_all_pruned and chance.random() < 0.08
    return script._replace(manner="dates some otherwise") if is_dated_otherwise else script


def _hash(chance: random.Random) -> str:
    return f"0x{chance.getrandbits(256):064x}"


class Chain:
    """Blocks with their logs. Those above the head are known here and nowhere else."""

    def __init__(self, script: Script, truth: Truth, chance: random.Random) -> None:
        self.first_block = 1_000
        self._script, self._truth, self._chance = script, truth, chance
        self._start = self.first_block + script.past_blocks
        end = self._start + int(script.hours * HOUR) // script.block_ms + 1_000
        self.logs: list[Log] = []
        mean = 3_600_000 / script.transactions_per_hour / script.block_ms
        block = float(self.first_block)
        is_busy = False
        while True:
            if chance.random() < 0.05:
                is_busy = not is_busy
            is_past = block < self._start - 500  # which is quieter, so that a world is soon made
            gap = max(mean, script.past_blocks / 400) if is_past else mean
            block += chance.expovariate(1 / gap) * (0.05 if is_busy else 2)
            if block >= end:
                break
            self._append(int(block))
        self.blocks = [log.block for log in self.logs]
        self.seen = self._start - 1
        self._known = 0
        self.without_event: dict[str, int] = {_hash(chance): chance.randrange(self.first_block, end) for _ in range(20)}
        self.head = self._start
        self._reorganisations = sorted(
            chance.uniform(0, script.hours * HOUR) for _ in range(int(script.reorganisations_per_hour * script.hours))
        )

    def _append(self, block: int) -> None:
        transaction, block_hash = _hash(self._chance), f"b{block}"
        for number in range(self._chance.choice((1, 1, 1, 2, 3))):
            self.logs.append(Log(block, block_hash, transaction, number))

    def advance(self, elapsed: int) -> int | None:
        """To this instant; the block from which on it is another chain, if it is."""
        head = self._start + elapsed // self._script.block_ms
        self._reveal(elapsed, head)
        self.head = head
        if self._reorganisations and elapsed >= self._reorganisations[0]:
            self._reorganisations.pop(0)
            return self._reorganise(elapsed)
        return None

    def _reveal(self, at: int, head: int) -> None:
        while self._known < len(self.logs) and self.logs[self._known].block <= head:
            log = self.logs[self._known]
            self._known += 1
            if log.transaction not in self._truth.on_chain:
                self._truth.put_on_chain(at, log.transaction, log.block)

    def _reorganise(self, at: int) -> int:
        """Some transactions go, some move, some come."""
        chance = self._chance
        fork = max(self.first_block, self.head - chance.randint(1, self._script.deepest))
        begin = bisect_left(self.blocks, fork)
        old: dict[str, list[Log]] = {}
        for log in self.logs[begin : self._known]:
            old.setdefault(log.transaction, []).append(log)
        new: list[Log] = []
        for transaction, logs in old.items():
            fate = chance.random()
            if fate < 0.3:
                self._truth.take_off_chain(at, transaction)
                continue
            block = chance.randint(fork, self.head) if fate < 0.6 else logs[0].block
            new += [Log(block, f"b{block}'{at}", transaction, log.number) for log in logs]
            if block != logs[0].block:
                self._truth.put_on_chain(at, transaction, block)
        if chance.random() < 0.5:
            block, transaction = chance.randint(fork, self.head), _hash(chance)
            new.append(Log(block, f"b{block}'{at}", transaction, 0))
            self._truth.put_on_chain(at, transaction, block)
        new.sort(key=lambda log: log.block)
        self.logs[begin : self._known] = new
        self._known = begin + len(new)
        self.blocks = [log.block for log in self.logs]
        return fork

    def between(self, first: int, last: int) -> list[Log]:
        last = min(last, self.head)
        return self.logs[bisect_left(self.blocks, first) : bisect_right(self.blocks, last)]


class Endpoint:
    """Somebody's node."""

    def __init__(self, fault: Fault, chain: Chain, script: Script, chance: random.Random) -> None:
        self._fault, self._chain, self._script, self._chance = fault, chain, script, chance
        self._salt = chance.getrandbits(30)
        self._lag = chance.randint(5, 400)
        self._claims = chance.random() < 0.5
        self._kept = chance.randint(200, 30_000)
        self._fork = chain.head - chance.randint(-200, 3_000)
        self._most_logs = chance.randint(1, 60)
        self._narrow = chance.choice((1, 10, 100, 800))
        self._outages = [
            (start, start + chance.uniform(1, 40) * MINUTE)
            for start in (chance.uniform(0, script.hours * HOUR) for _ in range(3))
        ]

    def height(self) -> int:
        return self._chain.head - (self._lag if self._fault == "lags" and not self._claims else 0)

    def _is_down(self, elapsed: int) -> bool:
        if self._fault == "down":
            return any(start <= elapsed < end for start, end in self._outages)
        return self._fault != "none" and self._chance.random() < 0.02

    def _pruned_below(self) -> int:
        kept = 5_000 if self._script.are_all_pruned else self._kept
        return self._chain.head - kept

    def _is_odd(self, transaction: str, of: int) -> bool:
        return (int(transaction[-8:], 16) ^ self._salt) % of == 0

    def logs(self, elapsed: int, first: int, last: int) -> frozenset[Log] | Refused:
        asked = last - first + 1
        if self._is_down(elapsed):
            return Refused()
        narrowest = self._narrow if self._fault == "narrow" else self._script.narrowest
        if narrowest and asked > narrowest:
            return Refused(asks_for_less=True)
        if self._fault == "lags":
            last = min(last, self._chain.head - self._lag)
        pruned = self._pruned_below()
        if first < pruned and (self._fault == "pruned" or (self._script.are_all_pruned and self._script.seed % 2)):
            return Refused()
        if self._fault == "silently pruned" or self._script.are_all_pruned:
            first = max(first, pruned)
        logs = self._chain.between(first, last)
        match self._fault:
            case "drops":
                logs = [log for log in logs if not self._is_odd(log.transaction, 4)]
            case "lies":
                logs = [log for log in logs if self._chance.random() < 0.8]
                if self._chance.random() < 0.5:
                    logs.append(Log(self._chance.randint(first, max(first, last)), "b", _hash(self._chance), 0))
            case "cuts":
                logs = logs[: self._most_logs]
            case "forked":
                logs = [
                    log if log.block < self._fork else log._replace(block_hash=log.block_hash + "f")
                    for log in logs
                    if log.block < self._fork or not self._is_odd(log.transaction, 3)
                ]
            case "wrong chain":
                logs = [Log(block, f"w{block}", f"0x{block:064x}", 0) for block in range(first, last + 1, 97)]
        return frozenset(logs)

    def receipt(self, elapsed: int, transaction: str, truth: Truth) -> Receipt | Refused | None:
        if self._is_down(elapsed):
            return Refused()
        block = truth.on_chain.get(transaction, self._chain.without_event.get(transaction))
        if block is None or block > self._chain.head:
            return None
        if (self._script.are_all_pruned or "pruned" in self._fault) and block < self._pruned_below():
            return None
        if self._fault == "wrong chain" or (self._fault in ("lies", "drops") and self._is_odd(transaction, 3)):
            return None
        if self._fault == "forked" and block >= self._fork and self._is_odd(transaction, 3):
            return None
        if self._fault == "lags" and block > self._chain.head - self._lag:
            return None
        return Receipt(block, has_event=transaction in truth.on_chain)


class Indexer:
    """What it holds is in the truth; here is what it does, and how it gives its list."""

    def __init__(self, script: Script, chain: Chain, truth: Truth, chance: random.Random) -> None:
        self._script, self._chain, self._truth, self._chance = script, chain, truth, chance
        self.position = chain.first_block - 1
        self._behind = chance.randint(0, 3)
        self._sorted: list[tuple[int, str]] | None = None
        self._skipped: set[str] = set()
        self._lost: dict[str, int] = {}
        self._shift = chance.choice((-300, -40, -3, -1, 1, 5, 60, 500))
        self._unit = chance.choice((2, 10, 100, 1_000))
        self._late_ms = chance.randint(10, 120) * SECOND
        self._server_cut = chance.choice((50, 60, 80))
        self._longest = max(chance.choice((20, 150, 1_500)), 4 * MINUTE // script.block_ms)
        end = script.hours * HOUR
        self._trouble_at = chance.uniform(0.2, 0.6) * end
        self._stalled_until = 0.0
        self._speed = chance.choice((2, 20, 200))
        self._holes = self._draw_holes(end)
        self._surplus_at = chance.uniform(0.05, 0.6) * end
        self._empty = [
            (start, start + chance.uniform(1, 40) * SECOND) for start in (chance.uniform(0, end) for _ in range(40))
        ]
        self._climb(-HOUR, chain.head - self._behind)

    def _draw_holes(self, end: float) -> list[tuple[float, Hole]]:
        kinds: tuple[Hole, ...] = (self._script.hole,)
        if self._script.hole == "some of each":
            kinds = "one", "batch", "old one", "stretch", "old batch"
        return sorted((self._chance.uniform(0.05, 0.7) * end, kind) for kind in kinds if kind != "none")

    def advance(self, elapsed: int, forked_at: int | None) -> bool:
        """To this instant; whether something happened that hinders a comparison."""
        was_disturbed = False
        if forked_at is not None and self.position >= forked_at:
            self._follow_fork(elapsed, forked_at)
        if self._script.indexing != "right" and elapsed >= self._trouble_at:
            self._trouble_at = float("inf")
            was_disturbed = True
            match self._script.indexing:
                case "rolled back":
                    self._go_back(elapsed, self.position - self._chance.choice((3, 100, 5_000)))
                case "rebuilt":
                    self._go_back(elapsed, self._chain.first_block - 1)
                case "stalls":
                    self._stalled_until = elapsed + self._chance.uniform(1, 30) * MINUTE
        self._make_holes(elapsed)
        if self._surplus_at <= elapsed:
            self._surplus_at = float("inf")
            self._add_surplus(elapsed)
        goal = self._chain.head - self._behind
        if elapsed < self._stalled_until:
            goal, was_disturbed = self.position, True
        elif goal - self.position > 100:
            goal = min(goal, self.position + 50 * self._speed)
            was_disturbed = True
        self._climb(elapsed, goal)
        return was_disturbed

    def _climb(self, elapsed: int, goal: int) -> None:
        if goal <= self.position:
            return
        for log in self._chain.between(self.position + 1, goal):
            self._take(elapsed, log)
        self.position = goal

    def _take(self, elapsed: int, log: Log) -> None:
        kinds = [kind for at, kind in self._holes if at <= elapsed and not kind.startswith("old")]
        if kinds and log.transaction not in self._skipped:
            kind = kinds[0]
            if len(self._skipped) < {"one": 1, "batch": 6}.get(kind, 40):
                self._skipped.add(log.transaction)
                if log.transaction not in self._truth.held_changed_at:
                    self._truth.is_tail.add(log.transaction)
                self._lost[log.transaction] = elapsed
        if log.transaction not in self._skipped:
            self._truth.hold(elapsed, log.transaction, log.block)
            self._sorted = None

    def _make_holes(self, elapsed: int) -> None:
        for hole in self._holes:
            at, kind = hole
            if at <= elapsed and kind.startswith("old"):
                self._holes.remove(hole)
                old = [one for one, block in self._truth.held.items() if block < self._chain.head - 500]
                if old:
                    start = self._chance.randrange(len(old))
                    for one in old[start : start + (1 if kind == "old one" else 5)]:
                        self._truth.is_tail.discard(one)
                        self._lose(elapsed, one)
                return
        if self._script.is_healed:
            healed = [one for one, at in self._lost.items() if elapsed - at > 40 * MINUTE]
            for one in healed:
                del self._lost[one]
                self._skipped.discard(one)
                self._holes = [(at, kind) for at, kind in self._holes if at > elapsed]
                block = self._truth.on_chain.get(one)
                if block is not None and block <= self.position:
                    self._truth.hold(elapsed, one, block)
                    self._sorted = None

    def _lose(self, elapsed: int, transaction: str) -> None:
        self._truth.let_go(elapsed, transaction)
        self._skipped.add(transaction)
        self._lost[transaction] = elapsed
        self._sorted = None

    def _add_surplus(self, elapsed: int) -> None:
        block = self._chance.randint(self._chain.first_block, max(self._chain.first_block, self.position))
        match self._script.surplus:
            case "made up":
                self._truth.hold(elapsed, _hash(self._chance), block)
            case "without event":
                transaction, block = self._chance.choice(list(self._chain.without_event.items()))
                if block <= self.position:
                    self._truth.hold(elapsed, transaction, block)
        self._sorted = None

    def _follow_fork(self, elapsed: int, forked_at: int) -> None:
        for transaction, block in list(self._truth.held.items()):
            if block < forked_at or transaction in self._chain.without_event:
                continue
            if transaction not in self._truth.on_chain and self._script.surplus == "orphans kept":
                continue
            if transaction not in self._truth.on_chain or self._truth.on_chain[transaction] > self.position:
                self._truth.let_go(elapsed, transaction)
        for log in self._chain.between(forked_at, self.position):
            self._take(elapsed, log)
        self._sorted = None

    def _go_back(self, elapsed: int, position: int) -> None:
        self.position = max(self._chain.first_block - 1, position)
        for transaction, block in list(self._truth.held.items()):
            if block > self.position:
                self._truth.let_go(elapsed, transaction)
        self._sorted = None

    def _date(self, transaction: str, block: int) -> int:
        match self._script.manner:
            case "shifted":
                return block + self._shift
            case "dated by L1":
                return block // 6 + 500_000
            case "dates some otherwise" if int(transaction[-8:], 16) % DATED_OTHERWISE == 0:
                other = block + int(transaction[2:10], 16) % (2 * FARTHEST + 1) - FARTHEST
                return max(self._chain.first_block, other)
            case _:
                return block

    def list(self, elapsed: int, first: int, last: int) -> Listed | Refused:
        chance, manner = self._chance, self._script.manner
        if manner == "fails" and chance.random() < 0.1:
            return Refused()
        if manner == "refuses long" and last - first + 1 > self._longest:
            return Refused(asks_for_less=True)
        if manner == "refuses what it does not have" and last > self.position:
            return Refused()
        if manner == "momentarily empty" and any(start <= elapsed < end for start, end in self._empty):
            return Listed(frozenset(), 0)
        if manner in ("ignores from", "ignores both"):
            first = 0
        if manner in ("ignores to", "ignores both"):
            last = 10**9
        if manner == "rounds down":
            last -= last % self._unit
        if manner == "rounds up":
            last += -last % self._unit
        if self._sorted is None:
            self._sorted = sorted((self._date(one, block), one) for one, block in self._truth.held.items())
        begin = bisect_left(self._sorted, (first, ""))
        listed = [one for _, one in self._sorted[begin : bisect_right(self._sorted, (last, "z"))]]
        if manner == "late" or (manner == "replicas" and chance.random() < 0.4):
            since, after = self._truth.held_changed_at, elapsed - self._late_ms
            listed = [one for one in listed if since[one] <= after]
        if self._script.order == "down":
            listed.reverse()
        elif self._script.order == "any":
            chance.shuffle(listed)
        listed = listed[: self._script.limit]
        if manner == "cut short":
            listed = listed[: self._server_cut]
        entries = min(self._script.limit, 2 * len(listed)) if self._script.is_per_event else len(listed)
        return Listed(frozenset(listed), entries)


Look = Generator[Ask, Any, Coverage]


class Plan(NamedTuple):
    """How the list is compared; a planted mistake is another one."""

    rules: Callable[[Rules], Rules] = lambda rules: rules
    begin: Callable[[Task, Coverage, Rules, Facts], Look] = run_task
    resume: Callable[[Coverage, int], Coverage] = resume
    follow: Callable[[Coverage, int], Coverage] = follow_position


RIGHT: Final = Plan()


class Outcome(NamedTuple):
    complaints: list[str]
    false_accusations: list[str]
    """Those of the complaints that are worse than late."""
    found: set[str]
    coverage: Coverage
    looks: int
    requests: int
    lists: int


class World:
    """One life of a comparison, from its first look on."""

    def __init__(self, script: Script, plan: Plan = RIGHT) -> None:
        self.script, self._plan = script, plan
        self._chance = random.Random(script.seed * 7919 + 1)
        self.truth = Truth()
        self.chain = Chain(script, self.truth, self._chance)
        self.elapsed = -1
        self.chain.advance(0)
        self.indexer = Indexer(script, self.chain, self.truth, self._chance)
        self._endpoints = {
            name: Endpoint(fault, self.chain, script, self._chance)
            for name, fault in zip("abc", script.faults, strict=False)
        }
        self.rules = plan.rules(
            Rules(
                first_block=self.chain.first_block,
                lowest_block=self.chain.first_block,
                limit=script.limit,
                endpoints=script.needed,
                repeat_ms=int(script.repeat_hours * HOUR),
            )
        )
        self.coverage = Coverage(subject="", began_at=NOON)
        honest = sum(fault == "none" for fault in script.faults)
        is_promised = honest >= 2 and script.manner in KEPT_TO_RANGE and script.limit >= 100
        is_promised = is_promised and not script.are_all_pruned
        is_promised = is_promised and (
            script.indexing != "rebuilt" or script.hole == "none"
        )  # then it may have nothing
        if script.manner == "refuses long":  # what lies farther than that from all that the list has is not confirmed
            is_promised = (
                is_promised and script.transactions_per_hour >= 200 and script.hole in ("none", "one", "batch")
            )
        self.oracle = Oracle(
            self.truth, self.rules.repeat_ms, is_tail_promised=is_promised, is_past_promised=is_promised
        )
        end = script.hours * HOUR
        self._restarts = sorted(self._chance.uniform(0, end) for _ in range(script.restarts))
        self._steps = sorted(self._chance.uniform(0, end) for _ in range(script.clock_steps))
        self._offset = 0
        self._position: int | None = None
        self._polled_at = -POLL_MS
        self._requested: deque[int] = deque(maxlen=REQUESTS_PER_MINUTE)
        self._began: deque[int] = deque(maxlen=MOST_LOOKS_PER_MINUTE)
        self._calm_since = 0
        self._swept_at: int | None = None
        self._expected_at = 0
        self.looks = self.requests = self.lists = 0

    def now(self) -> int:
        return NOON + self.elapsed + self._offset

    def live(self) -> Outcome:
        self._move_to(0)
        while self.elapsed < self.script.hours * HOUR and not self.oracle.complaints:
            self._poll()
            self._disturb()
            facts = self._facts()
            task = choose_task(self.coverage, self.rules, facts)
            if task is None:
                self._hear(self.elapsed)
                self._move_to(self.elapsed + 10 * SECOND)
                continue
            self._run(task, facts)
        found = self.oracle.found
        return Outcome(
            self.oracle.complaints,
            self.oracle.false_accusations,
            found,
            self.coverage,
            self.looks,
            self.requests,
            self.lists,
        )

    def _final(self) -> int:
        deep = max(self.script.confirmations, -(-MINUTE // self.script.block_ms))
        return self.chain.head - deep

    def _facts(self) -> Facts:
        heights = {name: each.height() for name, each in self._endpoints.items()}
        return Facts(self.now(), self._final(), self._position, heights)

    def _move_to(self, elapsed: int) -> None:
        """In steps in which something can happen."""
        while self.elapsed < elapsed:
            self.elapsed = min(elapsed, self.elapsed + 5 * SECOND)
            forked_at = self.chain.advance(self.elapsed)
            is_deep = forked_at is not None and forked_at <= self._final()
            if self.indexer.advance(self.elapsed, forked_at) or is_deep:
                self._calm_since = max(self._calm_since, self.elapsed)
            if forked_at is not None and is_deep:
                self.truth.was_final |= {
                    one for one, block in self.truth.on_chain.items() if forked_at <= block <= self._final()
                }

    def _poll(self) -> None:
        if self.elapsed - self._polled_at >= POLL_MS:
            self._polled_at = self.elapsed
            self._read_position()

    def _read_position(self) -> int | None:
        """It does not always answer."""
        if self._chance.random() < 0.02:
            return None
        self._position = self.indexer.position
        return self._position

    def _disturb(self) -> None:
        if self._restarts and self.elapsed >= self._restarts[0]:
            self._restarts.pop(0)
            absent_ms = int(self._chance.choice((0.05, 1, 20)) * MINUTE)
            self._move_to(self.elapsed + absent_ms)
            stored = msgspec.json.encode(self.coverage)
            if len(stored) > 300 * (len(self.coverage.missing) + len(self.coverage.extra)) + 40_000:
                self.oracle.complaints.append(f"{self.elapsed // 1000} s: {len(stored)} bytes are kept")
            self.coverage = self._plan.resume(msgspec.json.decode(stored, type=Coverage), self.now())
            self._position = None
            self._calm_since = self.elapsed + absent_ms  # what became final meanwhile is older than the newest
        if self._steps and self.elapsed >= self._steps[0]:
            self._steps.pop(0)
            self._offset += self._chance.choice((-86_400, -600, 600, 86_400)) * SECOND
            self.coverage = self._plan.resume(self.coverage, self.now())
            self._calm_since = self.elapsed

    def _run(self, task: Task, facts: Facts) -> None:
        began = self.elapsed
        self.looks += 1
        if len(self._began) == MOST_LOOKS_PER_MINUTE and began - self._began[0] < MINUTE:
            self.oracle.complaints.append(f"{began // 1000} s: {task} again and again")
        self._began.append(began)
        look = self._plan.begin(task, self.coverage, self.rules, facts)
        try:
            ask = next(look)
            for _ in range(5_000):
                ask = look.send(self._answer(ask))
            self.oracle.complaints.append(f"{began // 1000} s: {task} does not end")
        except StopIteration as end:
            self.coverage = end.value
        self._hear(began)

    def _hear(self, began: int) -> None:
        if self._position is not None:
            self.coverage = self._plan.follow(self.coverage, self._position)
        said = (
            [each.hash for each in some.values() if each.stage == "confirmed"]
            for some in (self.coverage.missing, self.coverage.extra)
        )
        self._note_sweep()
        position = self.indexer.position
        now = Instant(self.elapsed, self._final(), position, self._position, self._calm_since, self._swept_at)
        self.oracle.hear(now, began, *said)
        if self.elapsed - self._expected_at >= MINUTE:
            self._expected_at = self.elapsed
            chain, held = self.truth.on_chain, self.truth.held
            if not held.keys() & chain.keys():
                self._calm_since = self.elapsed  # it may be a list of anything
            absent = {one: chain[one] for one in chain.keys() - held.keys() if chain[one] <= self.indexer.position}
            surplus = {one: held[one] for one in held.keys() - chain.keys()}
            self.oracle.expect(now, absent, surplus)

    def _note_sweep(self) -> None:
        if self._swept_at is None and self.coverage.stretches:
            covered = sum(each.last - each.first + 1 for each in self.coverage.stretches)
            top, late = self.coverage.stretches[-1].last, 10 * MINUTE // self.script.block_ms
            if covered >= top - self.chain.first_block + 1 and top >= self._final() - late:
                self._swept_at = self.elapsed

    def _answer(self, ask: Ask) -> object:
        match ask:
            case AskPosition():
                return Position(self.now(), self._read_position())
            case AskList(first, last):
                self.lists += 1
                self._move_to(self.elapsed + self._chance.randint(500, 1_500))
                assert first <= last
                return self.indexer.list(self.elapsed, first, last)
            case AskLogs(endpoint, first, last):
                self._wait()
                assert first <= last
                return self._endpoints[endpoint].logs(self.elapsed, first, last)
            case AskReceipt(endpoint, transaction):
                self._wait()
                return self._endpoints[endpoint].receipt(self.elapsed, transaction, self.truth)

    def _wait(self) -> None:
        """Requests to the endpoints are spaced."""
        self.requests += 1
        if self._requested:
            self._move_to(self._requested[-1] + SPACING_MS)
        self._move_to(self.elapsed + self._chance.randint(20, 1_500))
        self._requested.append(self.elapsed)


def live(script: Script, plan: Plan = RIGHT) -> Outcome:
    return World(script, plan).live()
