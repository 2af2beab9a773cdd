"""What the monitor takes for a new head, and how far apart its publications are."""

import json
from itertools import pairwise

import pytest
from msgspec.structs import replace

from lookout.base.instants import parse_instant
from lookout.core.heads import Reading
from lookout.documents.document import with_compressed
from lookout.monitor.assembly import build_monitor
from lookout.state.log import HeadRead
from tests.builders import HOUR, LAUNCH, NOON, SECOND, a_plan
from tests.unit.running_monitor import InLine, KeptInMemory, Record, given, given_settings, lived
from tests.unit.server.fakes import SetClock


class Starting:
    """A journal that has just started."""

    def __init__(self) -> None:
        self.clock, self.record = SetClock(), Record()
        machine = given(KeptInMemory(), self.clock, store=InLine(), recorder=self.record)
        self.journal = build_monitor(given_settings(a_plan()), {}, machine).journal
        self.journal.start()

    def heads_after(self, *answers: Reading) -> list[Reading]:
        """Those in the record, after the endpoints agreed on these."""
        for answer in answers:
            self.journal.read_head(1, answer)
        return [event.reading for event in self.record if isinstance(event, HeadRead)]


@pytest.mark.clause("M8", "M12")
@pytest.mark.parametrize("by_ms", [HOUR, -HOUR], ids=["set forward", "set back"])
@pytest.mark.parametrize("read_ms", [0, -SECOND], ids=["read just now", "read a second ago"])
def test_an_agreement_by_which_a_clock_is_found_to_be_set_is_no_head(by_ms: int, read_ms: int) -> None:
    started = Starting()
    started.clock.wall += by_ms
    now = NOON + by_ms
    assert started.heads_after(Reading(now + read_ms, 100, now)) == []
    started.journal.timeline.stepped.clear()  # everything is asked again
    answer = Reading(now, 101, now)
    assert started.heads_after(answer) == [answer]


@pytest.mark.clause("M5")
@pytest.mark.parametrize(
    ("heartbeat_s", "late_s"), [(30, 0.0), (30, 0.9), (5, 0.4)], ids=["in time", "late", "late with a short heartbeat"]
)
def test_a_loop_that_wakes_a_little_late_shows_in_no_generated_at(heartbeat_s: int, late_s: float) -> None:
    """Nothing is observed, so that every publication is a heartbeat."""
    plan = a_plan(limits=replace(LAUNCH, heartbeat_ms=heartbeat_s * SECOND))
    writer = lived(600, plan, [], [], late_s=late_s)
    generated_at = [parse_instant(json.loads(written["live"].body)["generatedAt"]) for _, written in writer.written]
    gaps = [later - earlier for earlier, later in pairwise(generated_at)]
    assert len(gaps) >= 600 // heartbeat_s - 1
    assert max(gaps) <= heartbeat_s * SECOND


@pytest.mark.clause("A15")
def test_every_document_is_stored_with_its_gzip_form() -> None:
    stored = [documents for _, documents in lived(180, a_plan(), [], []).written]
    assert {frozenset(documents) for documents in stored} == {
        frozenset({"live", "live.gzip"}),
        frozenset({"live", "live.gzip", "history", "history.gzip", "about"}),
    }
    for documents in stored:
        plain = {name: document for name, document in documents.items() if not name.endswith(".gzip")}
        assert documents == with_compressed(plain)
