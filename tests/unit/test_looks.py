"""An indexer's list compared with its chain, on both sides of a small world in which time passes by hand."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace

from lookout.core.model import Gaps, Listed, Log
from lookout.features.lists.rules.coverage import (
    Ask,
    AskList,
    AskLogs,
    AskPosition,
    Coverage,
    Facts,
    Finding,
    Refused,
    Stretch,
    checked_blocks,
    choose_look,
    follow_position,
    gaps_of,
    split_confirmed,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
NOON = 1_793_880_000_000
FACTS = Facts(first_block=100, limit=50, endpoints_needed=2, each=False, now=0, end=None, heights={})
EACH = replace(FACTS, each=True)


def tx(number: int) -> str:
    return "0x" + hashlib.sha256(b"%d" % number).hexdigest()


@dataclass
class World:
    """Transactions by block on the chain and in the list, each as often as it counts."""

    facts: Facts = FACTS
    now: int = NOON
    head: int = 1_000
    position: int | None = 1_000
    chain: dict[int, list[str]] = field(default_factory=lambda: {block: [tx(block)] for block in range(100, 1_001, 10)})
    listed: dict[int, list[str]] = field(default_factory=dict)
    drops: dict[str, set[int]] = field(default_factory=dict)  # blocks of which an endpoint leaves out the logs
    fails: set[str] = field(default_factory=set)
    most_blocks: int = 10**9
    list_answers: Callable[[int, int], Listed | Refused] | None = None
    asked: list[Ask] = field(default_factory=list)
    endpoints: str = "abc"
    look_ms: int = 0
    coverage: Coverage = field(default_factory=lambda: Coverage(subject="s", began_at=NOON))

    def __post_init__(self) -> None:
        self.listed = self.listed or {block: list(hashes) for block, hashes in self.chain.items()}

    def answer(self, ask: Ask) -> object:
        self.asked.append(ask)
        match ask:
            case AskPosition():
                return self.position
            case AskList(first, last):
                return self.list_answers(first, last) if self.list_answers else self.list_of(first, last)
            case AskLogs(endpoint, first, last):
                if endpoint in self.fails:
                    return Refused()
                if last - first >= self.most_blocks:
                    return Refused(asks_for_less=True)
                blocks = [block for block in self.chain if first <= block <= last]
                kept = [block for block in blocks if block not in self.drops.get(endpoint, ())]
                return frozenset(
                    Log(block, f"0x{block:064x}", key, number)
                    for block in kept
                    for number, key in enumerate(self.chain[block])
                )

    def list_of(self, first: int, last: int) -> Listed:
        entries = [key for block, keys in self.listed.items() if first <= block <= last for key in keys]
        return Listed(Counter(entries), len(entries))

    def look(self) -> bool:
        """One look, if anything is due."""
        end = None if self.position is None else min(self.head - 5, self.position)
        facts = replace(self.facts, now=self.now, end=end, heights=dict.fromkeys(self.endpoints, self.head))
        look = choose_look(self.coverage, facts)
        if look is None:
            return False
        try:
            ask = next(look)
            while True:
                ask = look.send(self.answer(ask))
        except StopIteration as done:
            self.coverage = done.value
        self.now += self.look_ms
        return True

    def run(self, minutes: int) -> "World":
        for _ in range(2 * minutes):
            looks = 0
            while looks < 200 and self.look():
                looks += 1
            self.now += MINUTE // 2
        return self

    @property
    def gaps(self) -> Gaps:
        return gaps_of(self.coverage)


def confirmed(world: World) -> list[Finding]:
    return [finding for side in split_confirmed(world.coverage) for finding in side]


def without(world: World, block: int) -> World:
    del world.listed[block]
    return world


@pytest.mark.clause("S17", "S19")
def test_a_list_that_is_the_chains_is_compared_whole_and_nothing_is_found() -> None:
    world = World().run(5)
    assert checked_blocks(world.coverage) == 896
    assert (world.gaps, world.coverage.findings, world.coverage.unusable) == (Gaps(), {}, "")


@pytest.mark.clause("S18")
def test_what_the_list_lacks_is_reported_after_a_second_look_a_minute_later() -> None:
    world = without(World(), 500)
    while world.look():
        pass
    assert world.gaps == Gaps()
    world.now += MINUTE - 1
    assert not any(finding.is_confirmed for finding in world.coverage.findings.values())
    world.run(2)
    assert world.gaps == Gaps(missing=1)
    assert [(finding.hash, finding.first) for finding in confirmed(world)] == [(tx(500), 500)]
    world.asked.clear()
    world.run(3 * 60)
    assert not any(isinstance(ask, AskLogs) for ask in world.asked), "the chain's side is known"


@pytest.mark.clause("S17")
def test_a_transaction_with_two_events_counts_once_or_with_each_twice() -> None:
    def a_world(facts: Facts) -> World:
        world = World(facts)
        world.chain[500] = [tx(500), tx(500)]
        return world.run(5)

    assert a_world(FACTS).gaps == Gaps()
    assert a_world(EACH).gaps == Gaps(missing=1)


@pytest.mark.clause("S17")
@pytest.mark.parametrize("right_until", [0, 700])
def test_a_list_that_gives_something_else_for_single_blocks_is_unusable_and_not_accused(right_until: int) -> None:
    world = without(World(), 500)

    def rounded(first: int, last: int) -> Listed:
        if first == last:
            return world.list_of(first, last) if last < right_until else Listed({}, 0)
        return world.list_of(first - first % 100, last)

    world.list_answers = rounded
    world.run(10)
    assert "alone it gives something else" in world.coverage.unusable
    assert (world.gaps, world.coverage.findings) == (Gaps(), {})
    world.list_answers = None  # and is tried again
    world.run(90)
    assert world.coverage.unusable == ""
    assert world.gaps == Gaps(missing=1)
    world.list_answers = rounded  # which is noticed within a day
    world.run(25 * 60)
    assert (world.gaps, world.coverage.findings) == (Gaps(), {})


@pytest.mark.clause("S17")
def test_nothing_is_judged_before_the_list_was_tried() -> None:
    world = World(listed={99: [tx(99)]})
    world.run(30)
    assert (world.gaps, world.coverage.findings, world.coverage.has_passed) == (Gaps(), {}, False)
    assert {blocks.why for blocks in world.coverage.waiting} == {"untried"}


@pytest.mark.clause("S19")
def test_fewer_blocks_are_asked_for_after_a_refusal() -> None:
    world = World(most_blocks=100).run(10)
    assert checked_blocks(world.coverage) == 896
    assert world.coverage.batch <= 100


@pytest.mark.clause("S19")
def test_blocks_that_fail_are_asked_for_again_after_a_minute_and_then_ever_more_rarely() -> None:
    world, asked_at = World(replace(FACTS, limit=1_000), fails={"a", "b"}), set[int]()
    for _ in range(2 * 60):
        world.asked.clear()
        while world.look():
            asked_at |= {(world.now - NOON) // (MINUTE // 2) for ask in world.asked if isinstance(ask, AskLogs)}
        world.now += MINUTE // 2
    waits = [(later - earlier) / 2 for earlier, later in pairwise(sorted(asked_at))]
    assert waits == [1, 2, 4, 8, 10, 10, 10, 10]
    world.fails.clear()
    world.run(11)
    assert (checked_blocks(world.coverage), world.coverage.waiting) == (896, ())


@pytest.mark.clause("S19")
def test_compared_blocks_are_asked_of_the_list_alone_and_at_least_once_a_day() -> None:
    world = World().run(5)
    world.asked.clear()
    world.run(120)
    assert not any(isinstance(ask, AskLogs) for ask in world.asked)
    del world.listed[300]  # long after it was compared
    assert world.run(24 * 60).gaps == Gaps(missing=1)


def test_more_differences_than_can_be_followed_are_put_off() -> None:
    world = World(replace(FACTS, limit=10_000))
    world.listed[500] = [tx(10_000 + number) for number in range(1_001)]
    world.coverage = replace(world.coverage, has_passed=True, trial_at=NOON)
    world.run(5)
    assert world.gaps == Gaps()
    assert {blocks.why for blocks in world.coverage.waiting} == {"too_many"}


def test_a_stretch_without_a_digest_of_its_own_is_never_as_expected() -> None:
    world = World().run(5)
    stretch = world.coverage.stretches[0]
    broken = Stretch(stretch.first, stretch.last, stretch.count, bytes(16), 1)
    world.coverage = replace(world.coverage, stretches=(broken, *world.coverage.stretches[1:]))
    world.run(10)
    assert bytes(16) not in [kept.digest for kept in world.coverage.stretches]
    assert world.gaps == Gaps()


def test_what_is_known_to_differ_stays_confirmed_when_its_blocks_are_compared_again() -> None:
    world = without(World(), 500).run(5)
    world.coverage = replace(world.coverage, stretches=())
    assert world.run(2).gaps == Gaps(missing=1)
    assert checked_blocks(world.coverage) == 896


def test_a_listed_transaction_that_is_gone_before_it_is_located_is_dropped() -> None:
    world = World()
    world.listed[503] = [tx(7)]
    while world.look():
        pass
    assert [finding.hash for finding in world.coverage.findings.values()] == [tx(7)]
    del world.listed[503]
    assert world.run(3).coverage.findings == {}


def test_a_single_block_whose_list_is_cut_waits() -> None:
    world = World(replace(FACTS, limit=3))
    world.listed[500] = [tx(number) for number in range(3)]
    world.run(30)
    assert [(blocks.first, blocks.last, blocks.why) for blocks in world.coverage.waiting] == [(500, 500, "list_cut")]


def test_blocks_in_which_the_two_sides_share_nothing_any_more_are_no_sample() -> None:
    world = World().run(5)
    sample = world.coverage.sample
    assert sample is not None
    world.listed = {}
    world.coverage = replace(world.coverage, has_passed=False, trial_at=0)
    world.look()
    assert world.coverage.sample is None


@pytest.mark.clause("S19")
def test_a_refusal_of_minutes_slows_the_comparison_for_minutes() -> None:
    world = World(most_blocks=1).run(10)
    assert world.coverage.batch < 10
    world.most_blocks = 10**9
    assert checked_blocks(world.run(60).coverage) == 896


@pytest.mark.clause("S19")
def test_refusals_of_compared_blocks_keep_their_digest_for_a_day_and_then_ask_for_fewer() -> None:
    world = World().run(5)
    world.list_answers = lambda first, last: (
        Refused(asks_for_less=True) if last - first > 400 else world.list_of(first, last)
    )
    assert checked_blocks(world.run(23 * 60).coverage) == 896
    world.now += 10 * MINUTE
    world.asked.clear()
    assert checked_blocks(world.run(60).coverage) == 896
    assert {ask.last - ask.first for ask in world.asked if isinstance(ask, AskLogs)} <= {*range(401)}


@pytest.mark.clause("S18")
def test_a_list_that_cannot_be_read_ends_no_finding() -> None:
    world = World()
    world.listed[503] = [tx(7)]
    while world.look():
        pass
    (finding,) = world.coverage.findings.values()
    assert finding.first < finding.last
    world.list_answers = lambda first, last: Refused() if last - first < 3 else world.list_of(first, last)
    world.run(3)
    assert tx(7) in world.coverage.findings
    world.list_answers = lambda _first, _last: Refused()
    assert tx(7) in world.run(3).coverage.findings


@pytest.mark.clause("S17")
def test_an_unusable_list_that_is_empty_for_a_moment_is_tried_again() -> None:
    world = World().run(5)
    world.coverage = replace(world.coverage, unusable="it rounds", has_passed=False)
    world.listed, kept = {}, world.listed
    world.now += 2 * HOUR
    assert world.look()
    world.listed = kept
    assert world.run(90).coverage.unusable == ""


@pytest.mark.clause("S18")
def test_a_second_look_at_too_few_endpoints_confirms_nothing_and_what_the_chain_lacks_then_is_dropped() -> None:
    world = without(World(), 500)
    while not world.coverage.findings:
        world.run(1)
    world.fails = {"a", "b"}
    assert world.run(5).gaps == Gaps()
    assert [*world.coverage.findings] == [tx(500)]
    world.fails = set()
    del world.chain[500]
    assert world.run(3).coverage.findings == {}


@pytest.mark.clause("S18")
def test_what_the_list_has_too_much_is_located_and_reported() -> None:
    world = World()
    world.listed[503] = [tx(7)]
    world.run(5)
    assert world.gaps == Gaps(extra=1)
    assert [(finding.hash, finding.first, finding.last) for finding in confirmed(world)] == [(tx(7), 503, 503)]


@pytest.mark.clause("S19")
def test_a_list_that_is_cut_at_its_limit_is_asked_in_parts() -> None:
    world = World(replace(FACTS, limit=20)).run(10)
    assert (checked_blocks(world.coverage), world.gaps) == (896, Gaps())


@pytest.mark.clause("S18")
def test_nothing_is_held_against_an_indexer_above_its_position() -> None:
    world = without(World(), 500).run(5)
    assert world.gaps == Gaps(missing=1)
    world.coverage, world.position = follow_position(world.coverage, 300), 300
    assert world.run(5).gaps == Gaps()
    world.position = 1_000
    assert world.run(10).gaps == Gaps(missing=1)


@pytest.mark.clause("S18")
def test_a_replica_that_is_behind_accuses_nobody() -> None:
    """Every second question reaches one that has nothing above block 400 and says so."""
    world, asked = World(), [0]

    def answer(ask: Ask, whole: Callable[[Ask], object] = world.answer) -> object:
        asked[0] += 1
        if asked[0] % 2:
            return whole(ask)
        match ask:
            case AskPosition():
                return 400
            case AskList(first, last):
                return world.list_of(first, min(last, 400))
        return whole(ask)

    world.answer = answer  # type: ignore[method-assign]
    world.coverage = replace(world.coverage, has_passed=True, trial_at=NOON)
    for _ in range(60):
        world.run(1)
        assert world.gaps == Gaps()


@pytest.mark.clause("S17", "S18")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_fails_nothing_is_reported_but_what_differs(seed: int) -> None:
    chance, world = Random(seed), without(World(), 500)
    world.listed[603] = [tx(7)]

    def answer(ask: Ask, whole: Callable[[Ask], object] = world.answer) -> object:
        if chance.random() > 0.3:
            return whole(ask)
        match ask:
            case AskPosition():
                return chance.choice((None, 400))
            case AskLogs():
                return Refused(asks_for_less=chance.random() < 0.2)
            case AskList():
                cut = Listed({}, FACTS.limit)
                return chance.choice((Refused(), Refused(asks_for_less=True), cut, whole(ask)))

    world.answer = answer  # type: ignore[method-assign]
    world.coverage = replace(world.coverage, has_passed=True, trial_at=NOON)
    for number in range(120):
        if number == 60:
            world.listed = {block: list(hashes) for block, hashes in world.chain.items()}
        world.run(1)
        if chance.random() < 0.1:
            world.coverage = replace(world.coverage, waiting=(), has_passed=False, trial_at=0)
        assert {finding.hash for finding in confirmed(world)} <= {tx(500), tx(7)}
