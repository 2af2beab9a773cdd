"""What the monitor itself lacks is no observation of anybody, and its operator hears of it (M17)."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lookout.config.tables import PingTable
from lookout.core.model import Blocks, Check, Failed, Found, Observation, Peers
from lookout.monitor.metrics import Instruments
from lookout.monitor.pinger import Pinger
from lookout.protocols.client.failure import LACKING, OwnFault
from lookout.protocols.client.session import open_session
from lookout.state.log import HeadRead
from tests.builders import INDEXER, LAUNCH, MESSAGING, NOON, a_plan
from tests.contract.protocols.upstreams import answering
from tests.logs import capture_logs
from tests.unit.running_monitor import Asked, Read, Record, lived, running
from tests.unit.server.fakes import SetClock
from tests.wait import until_async

NO_DESCRIPTOR = OwnFault("descriptors")
REFUSED = Failed("refused")
PLAN = a_plan(MESSAGING)


def last_row(kept: Any, check: Check) -> Any:
    document = json.loads(kept.written[-1][1]["live"].body)
    (row,) = (each for each in document["checks"] if (each["service"], each["chainId"]) == check)
    return row


def observed(record: Record) -> list[Found]:
    return [event.found for event in record if isinstance(event, Observation)]


@pytest.mark.clause("M17")
@pytest.mark.parametrize("fault", [NO_DESCRIPTOR, MemoryError()], ids=["no descriptor", "no memory, of any place"])
def test_a_row_stays_as_it_was_and_ages_and_no_line_is_recorded(fault: Exception) -> None:
    source, record = Asked(MESSAGING, Peers(3), fault, takes_s=0), Record()
    kept = lived(600, PLAN, [source], [], record=record)
    row = last_row(kept, MESSAGING)
    assert (row["status"], row["observedAt"]) == ("current", "2026-11-05T12:00:01.500Z")
    assert row["expiresAt"] == "2026-11-05T12:02:31.500Z"  # long ago
    assert observed(record) == [Peers(3)]
    gaps = {later - earlier for earlier, later in pairwise(source.asked[1:])}
    assert gaps == {LAUNCH.recheck_ms}  # no back-off


@pytest.mark.clause("M17", "S2", "M2")
def test_failures_before_it_still_count_after_it() -> None:
    source, record = Asked(MESSAGING, REFUSED, REFUSED, NO_DESCRIPTOR, NO_DESCRIPTOR, REFUSED, takes_s=0), Record()
    kept = lived(240, PLAN, [source], [], record=record)
    assert observed(record) == [REFUSED] * 3
    assert last_row(kept, MESSAGING)["status"] == "unavailable"
    waits_s = [(later - earlier) // 1000 for earlier, later in pairwise(source.asked)]
    assert waits_s[:4] == [31, 61, 30, 30]


@pytest.mark.clause("M17", "M8")
def test_an_endpoints_earlier_answer_stays() -> None:
    """Of two endpoints both are needed; a failure would do the same, but a wrong chain would not."""
    record = Record()
    silent, other = Read(1, 100, NO_DESCRIPTOR, 102), Read(1, 100, 101, 102)
    lived(60, a_plan(INDEXER), [Asked(INDEXER, Blocks(95), takes_s=0)], [silent, other], record=record)
    heads = [event.reading.height for event in record if isinstance(event, HeadRead)]
    assert heads[0] == 100
    assert heads[-1] == 102
    assert len(silent.asked) >= 3


@pytest.mark.clause("M17")
def test_it_is_logged_once_when_it_begins_and_once_when_it_is_over_and_counted_each_time() -> None:
    registry = CollectorRegistry()
    sources = [
        Asked(MESSAGING, Peers(3), *[NO_DESCRIPTOR] * 4, Peers(3), takes_s=0),
        Asked(MESSAGING, Peers(1), takes_s=0),
    ]  # one needs no new connection
    endpoint = Read(1, 100, NO_DESCRIPTOR, OwnFault("memory"), 100)
    with capture_logs() as logs:
        lived(400, PLAN, sources, [endpoint], registry=registry)
    told = [(line["log_level"], line["event"]) for line in logs if "the monitor's own" in line["event"]]
    assert told == [
        ("error", "a fault of the monitor's own; rows age until it ends"),
        ("info", "the monitor's own fault is over"),
    ]
    counts = {
        lacking: registry.get_sample_value("lookout_own_faults_total", {"lacking": lacking}) for lacking in LACKING
    }
    assert counts == {
        "descriptors": 5,
        "memory": 1,
        "threads": 0,
        "ports": 0,
        "buffers": 0,
        "clock": 0,
        "time": 0,
    }
    assert registry.get_sample_value("lookout_probe_bugs_total") == 0
    assert registry.get_sample_value("lookout_head_reads_total", {"chain": "1", "outcome": "failed"}) == 0


@pytest.mark.clause("M17")
async def test_a_monitor_that_cannot_ask_does_not_say_that_it_is_well() -> None:
    clock = SetClock()
    instruments = Instruments(CollectorRegistry(), clock)

    def store() -> None:
        instruments.published(NOON, (), {})
        instruments.stored(1)

    store()
    instruments.count_own_fault("descriptors")
    async with (
        answering(lambda _: (200, b"")) as (url, asked),
        open_session(10) as session,
        running(Pinger(PingTable(url=url), LAUNCH, instruments).run(session)),
    ):
        await asyncio.sleep(0.1)
        assert asked == []
        clock.elapsed += 2 * LAUNCH.recheck_ms
        store()
        await until_async(lambda: len(asked) == 1, "a ping, once it can ask again")
