"""A reload is a restart in place: another monitor goes on from what the last one knew."""

import json
from itertools import pairwise
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lookout.base.clock import SystemClock
from lookout.core.model import Blocks, Check, Peers
from lookout.documents.document import DocumentName
from lookout.monitor.assembly import Succession
from lookout.state.errors import StateError
from lookout.state.log import Started, Stopped
from tests.builders import LAUNCH, LAUNCH_SPAN, MESSAGING, MINUTE, PPOI, a_plan
from tests.unit.running_monitor import (
    FAILED,
    Asked,
    KeptInMemory,
    Read,
    Record,
    given,
    given_settings,
    lived,
    reloading,
    running,
)
from tests.wait import until_async

POLYGON = Check("indexer", 137)


@pytest.mark.clause("M5", "M12", "H2", "H15")
def test_who_is_new_is_asked_at_once_and_who_left_never_again_and_both_documents_say_so_at_once() -> None:
    old, new = Asked(PPOI), Asked(POLYGON, Blocks(95))
    wide, narrow = a_plan(MESSAGING, PPOI), a_plan(MESSAGING, POLYGON, chains=(137,))
    sources = [Asked(MESSAGING, Peers(1)), old]
    writer = lived(100, wide, sources, [Read()], (40.0, reloading(narrow, [sources[0], new], [Read(137)])))
    assert max(old.asked) < 40_000 < min(new.asked) < 45_000
    at, documents = next(each for each in writer.written if each[0] >= 40_000 and b"137" in each[1]["live"].body)
    assert at <= 40_500
    for name, rows in (("live", "checks"), ("history", "rows")):
        assert {row["chainId"] for row in json.loads(documents[cast("DocumentName", name)].body)[rows]} == {None, 137}
    heartbeats = [at for at, _ in writer.written]
    assert max(later - earlier for earlier, later in pairwise(heartbeats)) <= 30_000


@pytest.mark.clause("M2", "M7", "M12", "S2")
def test_what_is_known_goes_on_a_row_keeps_its_values_and_everybody_is_asked_again() -> None:
    plan, record = a_plan(), Record()
    failing, well = Asked(MESSAGING, takes_s=0), Asked(PPOI, FAILED, takes_s=0)
    reload = reloading(replace(plan, limits=replace(LAUNCH, row_lifetime_ms=MINUTE)), [failing, well], [])
    writer = lived(110, plan, [failing, well], [], (100.0, reload), record=record)
    assert [at for at in failing.asked if at > 90_000] == [94_500, 102_000]
    statuses = {}
    for at, documents in writer.written:
        row = next(each for each in json.loads(documents["live"].body)["checks"] if each["service"] == "messaging")
        statuses[at] = row["status"], str(row["observedAt"])[14:19]
    assert {status for at, status in statuses.items() if 95_000 < at < 101_900} == {("unavailable", "01:34")}
    assert statuses[max(statuses)] == ("unavailable", "01:42")  # the fourth failure, not the first
    kinds = [type(event) for event in record]
    assert kinds.count(Started) == kinds.count(Stopped) == 2
    assert kinds[-1] is Stopped


def test_a_source_that_is_replaced_while_it_is_asked_is_never_heard() -> None:
    old, new = Asked(MESSAGING, Peers(1)), Asked(MESSAGING, Peers(2))
    plan = a_plan()
    writer = lived(20, plan, [old], [], (1.8, reloading(plan, [new], [])))
    assert (old.asked, new.asked) == ([1_500], [3_800])
    assert not [1 for _, documents in writer.written if b'"peers":1' in documents["live"].body]
    assert b'"peers":2' in writer.written[-1][1]["live"].body


async def test_a_monitor_that_cannot_be_built_changes_nothing_and_says_why() -> None:
    writer = KeptInMemory()
    succession = Succession(given_settings(a_plan()), {}, given(writer, SystemClock()))
    async with running(succession.run()):
        await until_async(lambda: bool(writer.documents), "it runs")
        before = succession.monitor
        with pytest.raises(StateError, match="has buckets of 300 s, the configuration of 60 s"):
            await succession.replace(given_settings(a_plan(span=replace(LAUNCH_SPAN, bucket_ms=MINUTE))))
        with pytest.raises(AssertionError):  # a bug: these settings have no plan
            await succession.replace(given_settings(cast("Any", None)))
        assert succession.monitor is before
        await succession.replace(given_settings(a_plan(chains=(1, 137))))
        await until_async(lambda: b'"chainId":137' in writer.documents[-1]["live"].body, "the next one runs")
