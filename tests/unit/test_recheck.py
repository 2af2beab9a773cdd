"""A source that an operator has asked before its turn."""

import asyncio

import pytest

from lookout.core.model import Peers
from lookout.monitor.assembly import Succession
from lookout.monitor.watcher import Rechecked
from lookout.protocols.client.failure import OwnFault
from tests.builders import INDEXER, MESSAGING, a_plan
from tests.unit.running_monitor import FAILED, Asked, Happening, lived


def rechecked(source: Asked, other: Asked, *at_s: float) -> list[Rechecked]:
    """The answers to an operator who asks for messaging at these seconds."""
    answers: list[Rechecked] = []
    tasks: set[asyncio.Task[None]] = set()

    def recheck(succession: Succession) -> None:
        async def ask() -> None:
            answers.extend(await succession.monitor.watcher.recheck(("messaging",), ()))

        tasks.add(asyncio.create_task(ask()))

    source.name = "messaging"
    happenings: list[tuple[float, Happening]] = [(second, recheck) for second in at_s]
    lived(at_s[-1] + 40, a_plan(MESSAGING, INDEXER), [source, other], [], *happenings)
    return answers


@pytest.mark.clause("M2")
def test_after_a_repair_a_source_is_asked_at_once() -> None:
    source, other = Asked(MESSAGING, *[FAILED] * 3, Peers(3)), Asked(INDEXER)
    answers = rechecked(source, other, 20, 25, 50, 110)
    assert source.asked == [1_500, 20_000, 50_000, 110_000, 142_500]
    said = [(each.is_asked, each.rows[0].status, each.rows[0].cause or None) for each in answers]
    failed = "unknown", "timeout"
    assert said == [(True, *failed), (False, *failed), (True, "unavailable", "timeout"), (True, "current", None)]
    assert 20_000 not in other.asked


@pytest.mark.clause("M17")
@pytest.mark.parametrize(
    ("end", "words"),
    [
        pytest.param(
            OwnFault("descriptors"), "a fault of this machine's own: no file descriptor left", id="by its own fault"
        ),
        pytest.param(ValueError(), "a bug; the log has more", id="by a bug"),
    ],
)
def test_a_row_that_could_not_be_looked_at_says_so_and_is_unknown_once_it_has_expired(
    end: Exception, words: str
) -> None:
    answers = rechecked(Asked(MESSAGING, Peers(3), end, takes_s=0), Asked(INDEXER), 20, 21, 660)
    said = [(each.is_asked, each.rows[0].status, each.not_asked) for each in answers]
    assert said == [(True, "current", words), (False, "current", words), (True, "unknown", words)]
