"""What the monitor itself lacks is no observation of anybody, and its operator hears of it (M17)."""

import asyncio
import json
from email.utils import formatdate
from itertools import pairwise
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from lookout.config.tables import PingTable
from lookout.core.heads import Reading
from lookout.core.model import Check, Failed, Found, Members, Observation, Peers
from lookout.core.own_clock import OwnClock
from lookout.monitor.assembly import Succession
from lookout.monitor.metrics import Instruments
from lookout.monitor.pinger import Pinger
from lookout.protocols.client.failure import LACKING, OwnFault
from lookout.protocols.client.session import Session, open_session
from lookout.protocols.source import Now
from tests.alerting import sending_into
from tests.builders import BROADCASTERS, LAUNCH, MESSAGING, MINUTE, NOON, SECOND, a_plan
from tests.contract.protocols.upstreams import answering
from tests.logs import capture_logs
from tests.unit.running_monitor import Asked, FastClock, FastLoop, Read, Record, lived, running, setting
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
        instruments.stored(instruments.published(NOON, (), {}), 1)

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


TEN = 10 * MINUTE


@pytest.mark.clause("M17")
@pytest.mark.parametrize(
    ("ahead", "error"),
    [
        pytest.param({"a": TEN, "b": TEN, "c": 0}, TEN, id="most say that it is ahead"),
        pytest.param({"a": -TEN, "b": -TEN - 2, "c": 0}, -TEN - 1, id="most say that it is behind"),
        pytest.param({"a": TEN, "b": 0}, 0, id="half of them are not most"),
        pytest.param({"a": TEN, "b": -TEN, "c": 0}, 0, id="one each way"),
        pytest.param({"a": TEN, "b": TEN, "c": -TEN, "d": -TEN, "e": 0}, 0, id="two each way"),
        pytest.param({"a": MINUTE, "b": MINUTE}, 0, id="a minute is not too much"),
        pytest.param({"a": MINUTE + 1, "b": MINUTE + 1}, MINUTE + 1, id="a millisecond more is"),
        pytest.param({"a": TEN}, None, id="one witness proves nothing"),
    ],
)
def test_the_clock_is_wrong_once_most_witnesses_have_said_so_for_two_minutes(
    ahead: dict[str, int], error: int | None
) -> None:
    clock = OwnClock()
    for now_s in range(0, 121, 30):
        for witness, by_ms in ahead.items():
            clock.hear(witness, by_ms, now_s * SECOND)
        if now_s < 120:
            assert clock.verdict_ms(now_s * SECOND) is None
    assert clock.is_suspected == bool(error)
    assert clock.verdict_ms(120 * SECOND) == error


def hear(clock: OwnClock, now_ms: int, **ahead: int) -> None:
    for witness, by_ms in ahead.items():
        clock.hear(witness, by_ms, now_ms)


@pytest.mark.clause("M17")
def test_every_other_verdict_takes_two_minutes_again_and_a_witness_counts_for_five() -> None:
    clock = OwnClock()
    hear(clock, 0, a=TEN, b=TEN)
    hear(clock, 2 * MINUTE, a=-TEN, b=-TEN)  # set too far back: it never was right
    assert clock.verdict_ms(2 * MINUTE) is None
    assert clock.verdict_ms(4 * MINUTE) == -TEN
    clock.forget()  # set right
    hear(clock, 4 * MINUTE, a=0)
    assert not clock.is_suspected  # also by one witness alone
    hear(clock, 4 * MINUTE, b=0)
    assert (clock.verdict_ms(6 * MINUTE - 1), clock.verdict_ms(6 * MINUTE)) == (None, 0)
    hear(clock, 9 * MINUTE + 1, c=TEN)  # the others were heard too long ago
    assert clock.verdict_ms(12 * MINUTE) is None


class Truthful(Read):
    """An endpoint whose answers and blocks have the true time."""

    async def read(self, session: Session, now: Now, /) -> Reading:
        answer = await super().read(session, now)
        true_at = answer.at - clock_of(now).ahead_ms
        session.hear_date(self.name, formatdate(true_at / 1000, usegmt=True))
        return Reading(answer.at, answer.height, true_at)


def clock_of(now: Now) -> FastClock:
    return cast("FastClock", now.__self__)  # type: ignore[attr-defined]


@pytest.mark.clause("M17", "S2", "S10")
def test_by_a_clock_that_is_ahead_no_broadcaster_is_called_silent_and_the_operator_is_told() -> None:
    """Announcements of the last two minutes are none by such a clock; so is silence that is real, meanwhile."""
    clock, record, sent = FastClock(), Record(), list[str]()
    clock.ahead_ms = TEN
    sources = [Asked(BROADCASTERS, Members(0, 5)), Asked(MESSAGING, Peers(3))]
    endpoints = [Truthful(name="one"), Truthful(name="two", takes_s=2)]
    with capture_logs() as logs:
        kept = lived(
            600, a_plan(BROADCASTERS, MESSAGING), sources, endpoints, clock=clock, record=record, **sending_into(sent)
        )
    assert [found for found in observed(record) if isinstance(found, Members)] in ([], [Members(0, 5)])
    assert last_row(kept, BROADCASTERS)["status"] == "unknown"
    assert last_row(kept, MESSAGING)["status"] == "current"
    assert sent == ["Lookout: this machine's clock is 10 minutes ahead"]
    assert [line["error"] for line in logs if line["event"] == "a fault of the monitor's own"] == [
        "this machine's clock is 10 minutes ahead"
    ]
    sent.clear()
    corrected = (300.0, setting(clock, -TEN))
    clock.ahead_ms = TEN
    kept = lived(600, a_plan(BROADCASTERS, MESSAGING), sources, endpoints, corrected, clock=clock, **sending_into(sent))
    assert sent == [f"Lookout: this machine's clock is {what}" for what in ("10 minutes ahead", "right again")]
    assert last_row(kept, BROADCASTERS)["status"] == "unavailable"


@pytest.mark.clause("M17", "S1", "S2")
@pytest.mark.parametrize(
    ("still_s", "failures"),
    [pytest.param(12, 0, id="longer than a probe may last"), pytest.param(1, 3, id="for a moment")],
)
def test_what_a_probe_found_while_the_monitor_itself_stood_still_is_no_observation(still_s: int, failures: int) -> None:
    def stand_still(_succession: Succession) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, FastLoop)
        loop._jumped_s += still_s  # as after SIGSTOP: the time has passed, and all timers are due

    record, source = Record(), Asked(MESSAGING, Failed("timeout"), takes_s=8)
    until = 40 if failures == 0 else 150
    lived(until, a_plan(MESSAGING), [source], [], (5, stand_still), record=record)
    assert len(observed(record)) == failures
    assert len(source.asked) >= 1


@pytest.mark.clause("M17")
def test_a_clock_at_the_limit_is_not_called_wrong_and_right_by_turns() -> None:
    clock, verdicts = OwnClock(), list[bool]()
    for now_ms, ahead_ms in enumerate((61_000, 59_000, 61_000, 31_000, 29_000)):
        for host in ("one.example", "other.example"):
            clock.hear(host, ahead_ms, now_ms)
        verdicts.append(clock.is_suspected)
    assert verdicts == [True, True, True, True, False]
