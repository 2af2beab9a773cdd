"""The simulated world itself: repeatable, and at fault exactly as its episodes say."""

from itertools import pairwise
from random import Random

import pytest

from lookout.demo.sim.episodes import FaultEpisode, draw_episodes
from lookout.demo.sim.faults import FAULTS
from lookout.demo.sim.layout import LAUNCH
from lookout.demo.sim.world import HeadAnswer, Members, World, drawn_world
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.simulation.rehearsed import TWO_CHAINS, a_world, an_episode

LATER = NOON + 30 * MINUTE


def test_a_world_is_a_function_of_its_seed_and_the_instant_alone() -> None:
    one, other = (drawn_world(LAUNCH, 7, NOON, NOON + 2 * DAY, intensity=10) for _ in range(2))
    instants = [NOON + n * 977_003 for n in range(150)]
    said = {at: (one.endpoint(56, 0, at), one.ppoi(at), one.indexer("indexer", 1, at)) for at in instants}
    Random(1).shuffle(instants)
    assert {at: (other.endpoint(56, 0, at), other.ppoi(at), other.indexer("indexer", 1, at)) for at in instants} == said
    assert drawn_world(LAUNCH, 8, NOON, NOON + 2 * DAY, intensity=10).episodes != one.episodes


def test_a_healthy_world_answers_truly_everywhere() -> None:
    world = a_world(layout=LAUNCH)
    for at in range(NOON, NOON + DAY, 613_007):
        for chain in LAUNCH:
            answer = HeadAnswer(chain.chain_id, *world.head(chain.chain_id, at))
            assert [world.endpoint(chain.chain_id, number, at) for number in range(3)] == [answer] * 3
            oldest, newest = (world.head(chain.chain_id, at - age * SECOND).height for age in (6, 1))
            position = world.indexer("indexer", chain.chain_id, at)
            assert isinstance(position, int)
            assert oldest <= position + 5 <= newest
        assert world.broadcasters(at) == {chain.chain_id: (chain.members, chain.members) for chain in LAUNCH}
        peers = world.messaging(at)
        assert isinstance(peers, int)
        assert peers >= 1


def test_blocks_come_at_the_chains_pace_with_timestamps_in_whole_seconds_of_the_past() -> None:
    world = a_world(layout=LAUNCH)
    for chain in LAUNCH:
        heads = [(at, world.head(chain.chain_id, at)) for at in range(NOON, NOON + HOUR, 911)]
        assert all(head.block_at % SECOND == 0 and head.block_at <= at for at, head in heads)
        assert all(at - head.block_at <= 2 * chain.block_ms + SECOND for at, head in heads)
        assert all(earlier.height <= later.height for (_, earlier), (_, later) in pairwise(heads))
        grown = heads[-1][1].height - heads[0][1].height
        assert abs(grown - HOUR / chain.block_ms) <= 3 + 2 * SECOND / chain.block_ms


def test_a_chain_halts_changes_its_pace_and_goes_back() -> None:
    world = a_world(
        an_episode("chain/1", "halt", 10, 20),
        an_episode("chain/1", "pace", 60, 60, 50),
        an_episode("chain/1", "reorg", 150, 0.001, 4),
    )

    def head(minute: float) -> int:
        return world.head(1, NOON + round(minute * MINUTE)).height

    assert head(11) == head(29.9)
    assert head(60) - head(30) in (149, 150)
    assert head(120) - head(60) in (599, 600)
    before, after = world.head(1, NOON + 150 * MINUTE - 1), world.head(1, NOON + 150 * MINUTE)
    assert before.height - after.height == 4
    assert before.block_at - after.block_at == 4 * 12 * SECOND
    assert head(160) > before.height


@pytest.mark.parametrize(("kind", "blocks"), [("stale", 50), ("lie-low", 70)])
def test_an_endpoint_at_fault_says_something_else_and_only_for_as_long(kind: str, blocks: int) -> None:
    size = 600_000 if kind == "stale" else blocks
    world = a_world(an_episode("rpc/1/1", kind, 20, 20, size))
    answer = world.endpoint(1, 1, LATER)
    assert isinstance(answer, HeadAnswer)
    assert world.head(1, LATER).height - answer.height == blocks
    assert (answer.block_at == world.head(1, LATER).block_at) == (kind == "lie-low")
    for number, at in ((1, NOON + 20 * MINUTE - 1), (1, NOON + 40 * MINUTE), (0, LATER)):
        assert world.endpoint(1, number, at) == (1, *world.head(1, at))


def test_a_late_endpoint_tells_the_truth_after_a_while() -> None:
    world = a_world(an_episode("rpc/1/1", "late", 20, 20, 3_000), an_episode("rpc/1/0", "stale", 20, 20, 600_000))
    assert [world.endpoint(1, number, LATER) for number in (1, 2)] == [(1, *world.head(1, LATER))] * 2
    assert [world.endpoint_delay_ms(1, number, LATER) for number in range(3)] == [0, 3_000, 0]
    for minute in (19.9, 40):
        assert world.endpoint_delay_ms(1, 1, NOON + round(minute * MINUTE)) == 0


@pytest.mark.parametrize("subject", ["rpc/1/0", "indexer/1", "hosted-indexer/1", "ppoi", "broadcasters", "messaging"])
@pytest.mark.parametrize("kind", ["fail", "hang"])
def test_whatever_can_be_asked_can_fail_and_hang(subject: str, kind: str) -> None:
    world = a_world(an_episode(subject, kind, 20, 20))
    answers = {
        "rpc/1/0": world.endpoint(1, 0, LATER),
        "indexer/1": world.indexer("indexer", 1, LATER),
        "hosted-indexer/1": world.indexer("hosted-indexer", 1, LATER),
        "ppoi": world.ppoi(LATER),
        "broadcasters": world.broadcasters(LATER),
        "messaging": world.messaging(LATER),
    }
    assert {name for name, answer in answers.items() if answer == kind} == {subject}


@pytest.mark.parametrize(
    ("kind", "speed"), [pytest.param("freeze", 0.0, id="frozen"), pytest.param("behind", 0.4, id="at 40 percent")]
)
def test_an_indexer_falls_behind_and_catches_up(kind: str, speed: float) -> None:
    world = a_world(an_episode("indexer/1", kind, 20, 60, 40))

    def behind(minute: float) -> int:
        at = NOON + round(minute * MINUTE)
        return world.head(1, at).height - world.position("indexer", 1, at)

    usual = behind(10)
    assert behind(80) - usual == pytest.approx((1 - speed) * 300, abs=1)  # of an hour's 300 blocks
    assert behind(82) < behind(80)
    assert behind(80 + 60 * (1 - speed) / 5 + 0.5) == pytest.approx(usual, abs=1)
    assert behind(180) == pytest.approx(usual, abs=1)


def test_an_indexer_rebuilt_from_scratch_has_nothing_then_climbs_from_its_start() -> None:
    """A minute without a block; then from an hour back, at six times the chain's speed."""
    world = a_world(an_episode("indexer/1", "wipe", 20, 1, HOUR))

    def position_at(minute: float) -> int:
        position = world.indexer("indexer", 1, NOON + round(minute * MINUTE))
        assert isinstance(position, int)
        return position

    assert [position_at(minute) for minute in (20, 20.5, 20.99)] == [-1] * 3
    start = world.head(1, NOON + 20 * MINUTE - HOUR).height - 5
    assert abs(position_at(21) - start) <= 1
    assert position_at(26) - position_at(21) == pytest.approx(6 * 5 * MINUTE / 12_000, abs=2)
    late = NOON + 40 * MINUTE
    caught_up = a_world().indexer("indexer", 1, late)
    assert world.indexer("indexer", 1, late) == caught_up
    assert world.indexer("hosted-indexer", 1, NOON + 20 * MINUTE) != -1


def test_an_indexer_that_fails_while_it_is_rebuilt_has_nothing_afterwards_too() -> None:
    world = a_world(an_episode("indexer/1", "wipe", 20, 20, HOUR), an_episode("indexer/1", "fail", 25, 5))
    assert [world.indexer("indexer", 1, NOON + minute * MINUTE) for minute in (21, 26, 31)] == [-1, "fail", -1]
    back = world.indexer("indexer", 1, NOON + 40 * MINUTE)
    assert isinstance(back, int)
    assert abs(back - (world.head(1, NOON + 20 * MINUTE - HOUR).height - 5)) <= 1


def test_an_outage_is_silent_and_leaves_the_indexer_behind() -> None:
    world = a_world(an_episode("indexer/1", "outage", 20, 60))
    assert world.indexer("indexer", 1, NOON + 79 * MINUTE) == "fail"
    back = world.indexer("indexer", 1, NOON + 80 * MINUTE)
    assert isinstance(back, int)
    assert world.head(1, NOON + 80 * MINUTE).height - 5 - back >= 299


def test_a_frozen_ppoi_node_validates_nothing_more_and_then_catches_up() -> None:
    world = a_world(an_episode("ppoi/1", "freeze", 20, 60), layout=TWO_CHAINS)
    frozen, late, after = (world.indexes(1, NOON + minute * MINUTE) for minute in (20, 79, 180))
    assert frozen.validated == late.validated < late.current - 3
    assert after.current - 1 <= after.validated <= after.current


def test_what_a_ppoi_node_lacks_it_says() -> None:
    world = a_world(
        an_episode("ppoi", "missing-list", 0, 60), an_episode("ppoi/56", "missing-network", 0, 60), layout=TWO_CHAINS
    )
    assert world.ppoi(LATER) == {1: "missing-list", 56: "nothing"}


@pytest.mark.parametrize(
    ("kind", "size", "heard"),
    [
        ("some-silent", 1, Members(4, 5)),
        ("some-silent", 60, Members(2, 5)),
        ("some-silent", 99, Members(1, 5)),
        ("silent", 0, Members(0, 5)),
        ("none-known", 0, Members(0, 0)),
    ],
)
def test_silent_broadcasters_are_not_heard(kind: str, size: int, heard: Members) -> None:
    world = a_world(an_episode("broadcasters/1", kind, 20, 20, size), layout=TWO_CHAINS)
    assert world.broadcasters(LATER) == {1: heard, 56: Members(5, 5)}


def test_of_two_episodes_that_overlap_the_later_holds_and_then_the_earlier_again() -> None:
    outer, inner = an_episode("messaging", "fail", 0, 60), an_episode("messaging", "zero-peers", 20, 20)
    world = a_world(inner, outer)
    assert [world.messaging(NOON + minute * MINUTE) for minute in (10, 30, 50)] == ["fail", 0, "fail"]
    assert world.fault("messaging", NOON + 30 * MINUTE) == inner


def test_a_later_episode_does_not_change_what_was_before_it() -> None:
    """So that a fault can be added to a world that is being lived in."""
    world = drawn_world(TWO_CHAINS, 3, NOON, NOON + DAY, intensity=30)
    turn_at = NOON + 12 * HOUR
    added = [
        FaultEpisode(subject, "freeze", turn_at, turn_at + HOUR) for subject in ("indexer/1", "ppoi/56", "rpc/1/0")
    ]
    halted = FaultEpisode("chain/56", "halt", turn_at, turn_at + HOUR)
    changed = World(world.layout, world.seed, world.origin_at, (*world.episodes, *added, halted))
    for at in range(NOON, turn_at, 47 * SECOND):
        assert changed.ppoi(at) == world.ppoi(at)
        for chain_id in (1, 56):
            assert changed.endpoint(chain_id, 0, at) == world.endpoint(chain_id, 0, at)
            assert changed.indexer("indexer", chain_id, at) == world.indexer("indexer", chain_id, at)
    assert changed.head(56, turn_at + HOUR) != world.head(56, turn_at + HOUR)


def test_drawn_episodes_use_every_kind_of_fault_and_a_subjects_do_not_overlap() -> None:
    drawn = draw_episodes(LAUNCH, 1, NOON, NOON + 365 * DAY)
    assert {episode.kind for episode in drawn} == {
        fault.name for fault in FAULTS.values() if any(odds.per_month for odds in fault.odds.values())
    }
    assert all(NOON < episode.begin_at < NOON + 365 * DAY for episode in drawn)
    for subject in {episode.subject for episode in drawn}:
        its = [episode for episode in drawn if episode.subject == subject]
        assert all(earlier.end_at < later.begin_at for earlier, later in pairwise(its))
    assert len(drawn) < 20_000


@pytest.mark.parametrize(
    ("episode", "message"),
    [
        pytest.param(an_episode("rpc/1/3", "fail", 0, 1), "'rpc/1/3' is not in this world", id="no such endpoint"),
        pytest.param(an_episode("messaging", "halt", 0, 1), "'halt' does not apply to messaging", id="no such fault"),
        pytest.param(an_episode("messaging", "fail", 0, 0), "and end later", id="over before it begins"),
        pytest.param(an_episode("messaging", "fail", -1, 9), "does not begin after the world", id="before the world"),
    ],
)
def test_an_episode_that_cannot_be_is_refused_by_name(episode: FaultEpisode, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        a_world(episode)
