"""When the monitor probes and publishes, on the virtual clock."""

from collections import defaultdict
from itertools import pairwise
from random import Random

import pytest

from lookout.config.tables import PolicyTable
from lookout.core.model import Check, Failed, Observation
from lookout.demo.rehearsal import Life, Listeners, rehearse
from lookout.demo.sim.world import HeadAnswer, Silence, World
from lookout.state.log import Event, HeadRead
from tests.builders import INDEXER, MESSAGING, MINUTE, NOON, SECOND
from tests.builders import LAUNCH as LAUNCH_LIMITS
from tests.simulation.rehearsed import ONE_CHAIN, TWO_CHAINS, a_life, a_world, an_episode, plan_of

SLOWEST_ANSWER = 2_040


def observations(world: World, *lives: Life, policy: PolicyTable | None = None) -> dict[Check, list[Observation]]:
    """Every check's observations, in order."""
    seen: dict[Check, list[Observation]] = defaultdict(list)

    def note(event: Event) -> None:
        if isinstance(event, Observation):
            seen[event.check].append(event)

    plan = plan_of(world.layout, policy)
    rehearse(plan, world, lives, Random(5), Listeners(event=note))
    return seen


def gaps(seen: list[Observation]) -> list[int]:
    return [later.at - earlier.at for earlier, later in pairwise(seen)]


@pytest.mark.clause("M1")
def test_a_source_that_answers_is_asked_again_30_to_33_seconds_after_it_did() -> None:
    for seen in observations(a_world(layout=TWO_CHAINS), a_life(0, 240)).values():
        assert min(gaps(seen)) >= 30 * SECOND
        assert max(gaps(seen)) <= 33 * SECOND + SLOWEST_ANSWER
        assert max(gaps(seen)) - min(gaps(seen)) > 2 * SECOND


@pytest.mark.clause("M2", "M3")
@pytest.mark.parametrize(("kind", "took"), [("fail", (0, SLOWEST_ANSWER)), ("hang", (10_000, 10_000))])
def test_a_source_that_keeps_failing_is_asked_less_often_until_it_answers(kind: str, took: tuple[int, int]) -> None:
    world = a_world(an_episode("messaging", kind, 10, 20))
    seen = observations(world, a_life(0, 40))[MESSAGING]
    failed = [isinstance(one.found, Failed) for one in seen]
    first, last = failed.index(True), len(failed) - 1 - failed[::-1].index(True)
    assert all(failed[first : last + 1])
    waits = [30, 60] + [120] * (last - first - 2)
    for gap, wait_s in zip(gaps(seen[first : last + 1]), waits, strict=True):
        assert wait_s * SECOND + took[0] <= gap <= (wait_s + 3) * SECOND + took[1]
    assert max(gaps(seen[last + 1 :])) <= 33 * SECOND + SLOWEST_ANSWER


@pytest.mark.clause("M6")
def test_a_hanging_source_moves_no_other_sources_instants() -> None:
    calm = observations(a_world(layout=TWO_CHAINS), a_life(0, 120))
    hangs = an_episode("indexer/1", "hang", 10, 100), an_episode("rpc/56/1", "hang", 10, 100)
    disturbed = observations(a_world(*hangs, layout=TWO_CHAINS), a_life(0, 120))
    assert disturbed.pop(INDEXER) != calm.pop(INDEXER)
    assert disturbed == calm


@pytest.mark.clause("M8")
def test_each_endpoint_is_read_every_15_seconds_and_a_little() -> None:
    read_at: dict[int, list[int]] = defaultdict(list)

    class Listening(World):
        def endpoint(self, chain_id: int, number: int, at: int) -> HeadAnswer | Silence:
            read_at[number].append(at)
            return super().endpoint(chain_id, number, at)

    heads: list[HeadRead] = []

    def note(event: Event) -> None:
        if isinstance(event, HeadRead):
            heads.append(event)

    world = Listening(ONE_CHAIN, 1, NOON, [an_episode("rpc/1/2", "hang", 10, 20)])  # which makes nobody back off
    rehearse(plan_of(world.layout), world, (a_life(0, 60),), Random(5), listeners=Listeners(event=note))
    assert heads[0].at - NOON <= LAUNCH_LIMITS.jitter_ms / 2 + SLOWEST_ANSWER
    # An answer takes up to two seconds; half the jitter, which is spread evenly, lies between two readings.
    for number in (0, 1):
        waits = [later - earlier for earlier, later in pairwise(read_at[number])]
        assert min(waits) + SLOWEST_ANSWER >= 15 * SECOND
        assert max(waits) <= 15 * SECOND + LAUNCH_LIMITS.jitter_ms / 2 + SLOWEST_ANSWER
        assert 15_900 <= sum(waits) / len(waits) <= 16_500
    hanging = [at for at in read_at[2] if NOON + 11 * MINUTE < at < NOON + 29 * MINUTE]
    assert max(later - earlier for earlier, later in pairwise(hanging)) <= 29 * SECOND
    # A head is dated by the answer that it was taken from.
    answered_at = {at for instants in read_at.values() for at in instants}
    assert {head.reading.at for head in heads} <= answered_at
    assert max(head.at - head.reading.at for head in heads) <= 20 * SECOND
    assert all(earlier.reading.at <= later.reading.at for earlier, later in pairwise(heads))


@pytest.mark.clause("M2")
def test_a_source_of_several_chains_fails_only_when_all_of_them_do() -> None:
    """A node that hears the broadcasters of one chain and not those of another answers: it is asked as often."""
    world = a_world(an_episode("broadcasters/1", "silent", 10, 100), layout=TWO_CHAINS)
    seen = observations(world, a_life(0, 110))
    for check in (Check("broadcasters", 1), Check("broadcasters", 56)):
        assert max(gaps(seen[check])) <= 33 * SECOND + SLOWEST_ANSWER
    all_silent = an_episode("broadcasters/56", "silent", 10, 100)
    seen = observations(a_world(*world.episodes, all_silent, layout=TWO_CHAINS), a_life(0, 110))
    assert min(gaps(seen[Check("broadcasters", 1)])[-20:]) >= 120 * SECOND


def test_what_is_well_may_be_asked_seldom_but_is_asked_when_something_begins_and_until_it_has_ended() -> None:
    world = a_world(an_episode("messaging", "fail", 130, 20))
    policy = PolicyTable(row_lifetime_s=3_600, head_max_age_s=3_600)
    life = Life(NOON, NOON + 300 * MINUTE, calm_ms=50 * MINUTE)
    seen = observations(world, life, policy=policy)[MESSAGING]
    minutes = [(one.at - NOON) // MINUTE for one in seen]
    failed = [isinstance(one.found, Failed) for one in seen]
    first, last = failed.index(True), len(failed) - 1 - failed[::-1].index(True)
    assert minutes[: first + 3] == [0, 50, 100, 130, 130, 131]
    assert max(gaps(seen[first : last + 2])) <= 123 * SECOND + SLOWEST_ANSWER
    assert min(gaps(seen[last + 1 :])) >= 50 * MINUTE
