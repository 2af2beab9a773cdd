"""How often the monitor's own tasks ask a source that answers for several chains."""

from collections.abc import Mapping
from itertools import pairwise

import pytest

from lookout.core.ledger import Ledger
from lookout.core.model import Check, Found, Indexes, Observation
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from lookout.state.codec import all_pieces
from tests.builders import NOON, PPOI, SECOND, a_plan
from tests.unit.running_monitor import FAILED, Asked, FastClock, lived, setting

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
        stored=all_pieces(ledger.state()).put,
    )
    at_s = [asked / 1000 - (3_600 if asked > 1_000_000 else 0) for asked in source.asked]
    # At once, with the jitter, after the start and after the step; 120 s later otherwise.
    assert at_s == [1.5, 123, 201.5, 323, 444.5]
