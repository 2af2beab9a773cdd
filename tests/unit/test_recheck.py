"""A source that an operator has asked out of turn: what answers counts, and what fails does not (M2)."""

import asyncio

import pytest

from lookout.core.model import Failed, Found, Members, Nothing, Peers
from lookout.core.policy import is_failure
from lookout.monitor.monitor import Succession
from lookout.monitor.watcher import Rechecked
from tests.builders import INDEXER, MESSAGING, a_plan
from tests.unit.running_monitor import FAILED, Asked, Happening, lived


@pytest.mark.clause("M2")
def test_after_a_repair_a_source_is_asked_at_once_and_a_failure_then_does_not_count() -> None:
    answers: list[Rechecked] = []
    tasks: set[asyncio.Task[None]] = set()

    def recheck(succession: Succession) -> None:
        async def ask() -> None:
            answers.extend(await succession.monitor.recheck(("messaging",), ()))

        tasks.add(asyncio.create_task(ask()))

    source, other = Asked(MESSAGING, *[FAILED] * 5, Peers(3)), Asked(INDEXER)
    source.name = "messaging"
    happenings: list[tuple[float, Happening]] = [(at_s, recheck) for at_s in (20, 25, 50, 110)]
    lived(150, a_plan(MESSAGING, INDEXER), [source, other], [], *happenings)
    assert source.asked == [1_500, 20_000, 34_000, 50_000, 96_500, 110_000, 142_500]
    said = [(each.is_asked, each.rows[0].status, each.rows[0].cause or None) for each in answers]
    failed = "unknown", "timeout"
    assert said == [(True, *failed), (False, *failed), (True, *failed), (True, "current", None)]
    assert 20_000 not in other.asked


@pytest.mark.clause("S1", "S10", "S11")
@pytest.mark.parametrize(
    ("found", "fails"),
    [
        (Failed("refused"), True),
        (Peers(0), True),
        (Peers(1), False),
        (Members(0, 3), True),
        (Members(0, 0), False),
        (Nothing(), False),
    ],
)
def test_what_is_judged_as_a_failure_is_none_out_of_turn(found: Found, fails: bool) -> None:
    assert is_failure(found) == fails
