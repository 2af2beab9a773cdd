"""A source that an operator has asked before its turn."""

import asyncio

import pytest

from lookout.core.model import Peers
from lookout.monitor.assembly import Succession
from lookout.monitor.watcher import Rechecked
from tests.builders import INDEXER, MESSAGING, a_plan
from tests.unit.running_monitor import FAILED, Asked, Happening, lived


@pytest.mark.clause("M2")
def test_after_a_repair_a_source_is_asked_at_once() -> None:
    answers: list[Rechecked] = []
    tasks: set[asyncio.Task[None]] = set()

    def recheck(succession: Succession) -> None:
        async def ask() -> None:
            answers.extend(await succession.monitor.recheck(("messaging",), ()))

        tasks.add(asyncio.create_task(ask()))

    source, other = Asked(MESSAGING, *[FAILED] * 3, Peers(3)), Asked(INDEXER)
    source.name = "messaging"
    happenings: list[tuple[float, Happening]] = [(at_s, recheck) for at_s in (20, 25, 50, 110)]
    lived(150, a_plan(MESSAGING, INDEXER), [source, other], [], *happenings)
    assert source.asked == [1_500, 20_000, 50_000, 110_000, 142_500]
    said = [(each.is_asked, each.rows[0].status, each.rows[0].cause or None) for each in answers]
    failed = "unknown", "timeout"
    assert said == [(True, *failed), (False, *failed), (True, "unavailable", "timeout"), (True, "current", None)]
    assert 20_000 not in other.asked
