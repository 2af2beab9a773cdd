"""When a source is asked again."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from msgspec.structs import replace

from lookout.core.ledger import Ledger
from lookout.core.model import Check, Found, Indexes, Observation
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from lookout.state.codec import encode_state
from tests.builders import LAUNCH, NOON, PPOI, SECOND, a_plan
from tests.unit.running_monitor import FAILED, Asked, FastClock, lived, setting


@pytest.mark.clause("M1", "M2")
@pytest.mark.parametrize(
    ("failures", "wait_s"),
    [
        pytest.param(0, 30, id="a source that answers"),
        pytest.param(1, 30, id="after the first failure"),
        pytest.param(2, 60, id="after the second"),
        pytest.param(3, 120, id="after the third"),
        pytest.param(4, 120, id="capped"),
        pytest.param(10**9, 120, id="capped for ever"),
    ],
)
def test_the_wait_doubles_with_each_failure_up_to_two_minutes(failures: int, wait_s: int) -> None:
    assert LAUNCH.wait_ms(failures, 0) == wait_s * 1000


@pytest.mark.clause("M1", "M2")
@pytest.mark.parametrize("failures", [0, 3])
def test_chance_adds_up_to_three_seconds(failures: int) -> None:
    least = LAUNCH.wait_ms(failures, 0)
    assert LAUNCH.wait_ms(failures, 0.5) == least + 1500
    assert least + 2990 < LAUNCH.wait_ms(failures, 0.999) < least + 3000


@pytest.mark.clause("M2")
def test_a_cap_below_the_recheck_never_makes_a_failing_source_asked_more_often() -> None:
    assert replace(LAUNCH, backoff_cap_ms=10_000).wait_ms(5, 0) == 30_000


def test_the_greatest_ages_are_the_contracts() -> None:
    published_within_ms = 1000
    answering = LAUNCH.wait_ms(0, 1) + LAUNCH.probe_timeout_ms + published_within_ms
    failing = LAUNCH.wait_ms(3, 1) + LAUNCH.probe_timeout_ms
    assert (answering, failing) == (44_000, 133_000)


POLYGON = Check("ppoi", 137)


class OfTwoChains(Asked):
    """A source of two chains that takes a second to answer."""

    def __init__(self, *found: Found) -> None:
        super().__init__(PPOI)
        self.checks = (PPOI, POLYGON)
        self._of_both = found

    async def probe(self, session: Session, now: Now, /) -> Mapping[Check, Found]:
        await super().probe(session, now)
        return dict(zip(self.checks, self._of_both, strict=True))


@pytest.mark.clause("M1", "M2")
@pytest.mark.parametrize(
    ("found", "waits_s"),
    [
        pytest.param((Indexes(7, 7), Indexes(7, 7)), [30, 30, 30, 30], id="both chains answer"),
        pytest.param((Indexes(7, 7), FAILED), [30, 30, 30, 30], id="one chain fails: the source answers"),
        pytest.param((FAILED, FAILED), [30, 60, 120, 120], id="both fail: the source is asked less often"),
    ],
)
def test_a_source_of_several_chains_is_asked_less_often_only_when_all_of_them_fail(
    found: tuple[Found, Found], waits_s: list[int]
) -> None:
    source = OfTwoChains(*found)
    lived(400, a_plan(chains=(1, 137)), [source], [])
    gaps = [later - earlier for earlier, later in pairwise(source.asked)]
    assert gaps[:4] == [wait_s * SECOND + 1_500 + SECOND for wait_s in waits_s]  # the jitter, and the second it takes


@pytest.mark.clause("M2", "M7", "M12")
def test_the_wait_after_three_failures_is_as_long_after_a_restart_and_after_a_clock_was_set() -> None:
    ledger = Ledger(a_plan(PPOI))
    for seconds in (90, 60, 30):
        ledger.judge(Observation(PPOI, NOON - seconds * SECOND, FAILED))
    ledger.publish(NOON - 30 * SECOND)
    source, clock = Asked(PPOI, FAILED, takes_s=0), FastClock()
    lived(
        500,
        a_plan(PPOI),
        [source],
        [],
        (200, setting(clock, 3_600_000)),
        clock=clock,
        stored=encode_state(ledger.state()).documents,
    )
    at_s = [asked / 1000 - (3_600 if asked > 1_000_000 else 0) for asked in source.asked]
    # At once, with the jitter, after the start and after the step; 120 s later otherwise.
    assert at_s == [1.5, 123, 201.5, 323, 444.5]
