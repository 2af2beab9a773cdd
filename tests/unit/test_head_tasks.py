"""How the monitor's own tasks follow the heads of a chain, and which judgements wait for the first of them."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lookout.base.instants import parse_instant
from lookout.core.model import Blocks, Check, Found, Indexes, Members, Observation, Peers
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import Session
from lookout.protocols.evm import EvmEndpoint
from lookout.state.log import HeadRead, Started
from tests.builders import BROADCASTERS, HOUR, INDEXER, LAUNCH, MESSAGING, MINUTE, NOON, PPOI, SECOND, a_plan
from tests.unit.running_monitor import FAILED, Asked, FastClock, Read, Record, lived, reloading, setting

REFUSED = ProbeFailed("refused")
TIMEOUT = ProbeFailed("timeout")
TIMEOUT_S = LAUNCH.probe_timeout_ms / 1000
LIE = 1_000_000


def heads_in(record: Record) -> list[HeadRead]:
    return [event for event in record if isinstance(event, HeadRead)]


def heights_in(record: Record) -> list[int]:
    return [head.reading.height for head in heads_in(record)]


def last_run(record: Record) -> Record:
    """From the start on, or from when the clock was set."""
    return Record(record[max(number for number, event in enumerate(record) if isinstance(event, Started)) :])


def judged(record: Record, check: Check) -> list[int]:
    """When, in milliseconds after noon."""
    return [event.at - NOON for event in record if isinstance(event, Observation) and event.check == check]


@pytest.mark.clause("M8")
@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param(lambda: Read(1, 100), id="one that answers"),
        pytest.param(lambda: Read(1, REFUSED), id="one that fails: it is not asked less often"),
        pytest.param(lambda: Read(1, ProbeFailed("wrong_chain", "5 instead of 1")), id="one of another chain"),
        pytest.param(lambda: Read(1, TIMEOUT, takes_s=TIMEOUT_S), id="one that hangs"),
    ],
)
@pytest.mark.parametrize(
    ("recheck_s", "luck", "wait_s"),
    [(30, 0, 15), (30, 0.5, 15.75), (30, 1, 16.5), (50, 0, 25)],
    ids=["without the jitter", "half of the jitter's half", "half of the jitter", "another recheck"],
)
def test_an_endpoint_is_read_again_half_a_recheck_after_its_last_reading_ended(
    endpoint: Callable[[], Read], recheck_s: int, luck: float, wait_s: float
) -> None:
    read = endpoint()
    lived(300, a_plan(limits=replace(LAUNCH, recheck_ms=recheck_s * SECOND)), [], [read], luck=luck)
    waits = [asked - ended for ended, asked in zip(read.ended, read.asked[1:], strict=False)]
    assert len(waits) >= 7
    assert set(waits) == {wait_s * SECOND}


@pytest.mark.clause("M8")
def test_answers_from_before_a_reload_of_the_endpoints_take_no_part_after_it() -> None:
    """The first of the new ones to answer lies. Nothing is agreed before each was heard."""
    plan, record = a_plan(), Record()
    before = [Read(1, 100), Read(1, 100), Read(1, 100, takes_s=5)]
    liar, honest = Read(1, LIE), Read(1, 100, takes_s=6)
    reload = reloading(plan, [], [liar, before[1], honest])
    lived(40, plan, [], before, (22.5, reload), record=record)
    assert before[2].asked[-1] < 22_500 < before[2].asked[-1] + 5_000  # it was being read
    first_after = next(head for head in heads_in(record) if head.at - NOON > 22_500)
    assert first_after.at - NOON == honest.ended[0]
    assert first_after.reading.at - NOON in (before[1].ended[-1], honest.ended[0])
    assert set(heights_in(record)) == {100}


@dataclass(frozen=True, slots=True)
class OneAfterTheOther(Session):
    """To an RPC node: always the same block, and one chain id after the other."""

    chain_ids: Iterator[str] = field(kw_only=True)

    async def fetch(self, request: Request) -> bytes:
        assert request.body is not None
        call = json.loads(request.body)
        block = {"number": hex(101), "timestamp": hex(NOON // 1000)}
        result = next(self.chain_ids) if call["method"] == "eth_chainId" else block
        await asyncio.sleep(0.1)
        return json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}).encode()


@pytest.mark.clause("M8")
def test_an_endpoint_that_is_found_to_be_of_another_chain_takes_its_earlier_answer_with_it() -> None:
    """Its address leads to another chain from the second minute on: two others go on without it."""
    chain_ids = iter(("0x1", "0x38", "0x38", "0x38"))
    session = OneAfterTheOther(cast("Any", None), TIMEOUT_S, chain_ids=chain_ids)
    highest, lowest = Read(1, 102), Read(1, 100)
    record = Record()
    lived(100, a_plan(), [], [EvmEndpoint("moved", 1, "http://node"), highest, lowest], record=record, session=session)
    by_height = {height: [h.at - NOON for h in heads_in(record) if h.reading.height == height] for height in (101, 100)}
    assert max(by_height[101]) < MINUTE < min(by_height[100]) < MINUTE + 5 * SECOND


def rows_of(body: bytes) -> dict[tuple[str, int | None], Mapping[str, Any]]:
    return {(row["service"], row["chainId"]): row for row in json.loads(body)["checks"]}


@pytest.mark.clause("M12", "M6")
def test_after_a_start_only_the_position_of_an_indexer_waits_for_the_first_head() -> None:
    """It is asked at once all the same, and what is observed is observed when it is judged."""
    record, endpoint, indexer = Record(), Read(1, 105, takes_s=6), Asked(INDEXER, Blocks(95))
    others: list[tuple[Check, Found]] = [
        (Check("hosted-indexer", 1), FAILED),
        (MESSAGING, Peers(3)),
        (PPOI, Indexes(7, 7)),
        (BROADCASTERS, Members(1, 1)),
    ]
    sources = [indexer, *(Asked(*other) for other in others)]
    writer = lived(20, a_plan(), sources, [endpoint], record=record)
    assert indexer.asked == [1_500]
    assert {check: judged(record, check) for check, _ in others} == {check: [2_500] for check, _ in others}
    assert judged(record, INDEXER) == endpoint.ended == [6_750]
    row = next(rows_of(written["live"].body)["indexer", 1] for at, written in writer.written if at >= 6_750)
    assert (row["observedAt"], row["status"]) == ("2026-11-05T12:00:06.750Z", "current")
    assert row["metrics"] == {"position": 95, "head": 100}


@pytest.mark.clause("M8", "M12")
@pytest.mark.parametrize("set_by_ms", [0, HOUR, -HOUR], ids=["a start", "a clock set forward", "a clock set back"])
def test_a_silent_endpoint_is_waited_for_as_long_as_a_probe_may_last_and_then_the_others_agree(set_by_ms: int) -> None:
    clock, record = FastClock(), Record()
    silent, began_ms = Read(1, TIMEOUT, takes_s=2 * TIMEOUT_S), 300_000 if set_by_ms else 0
    endpoints = [Read(1, 105), Read(1, 106), silent]
    set_clock = (began_ms / 1000, setting(clock, set_by_ms))
    lived(
        began_ms / 1000 + 14, a_plan(), [Asked(INDEXER, Blocks(95))], endpoints, set_clock, clock=clock, record=record
    )
    first = heads_in(last_run(record))[0]
    waited_ms = first.at - NOON - set_by_ms - began_ms
    assert LAUNCH.probe_timeout_ms <= waited_ms <= LAUNCH.probe_timeout_ms + SECOND  # in which a set clock is noticed
    assert first.reading.height == 105
    assert judged(record, INDEXER)[-1] == first.at - NOON


@pytest.mark.clause("M12", "M8")
@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param(lambda _: Read(1, TIMEOUT, takes_s=TIMEOUT_S), id="all endpoints hang"),
        pytest.param(lambda _: Read(1, REFUSED), id="all of them fail"),
        pytest.param(lambda number: Read(1, 100 + number * LIE), id="they contradict each other"),
    ],
)
@pytest.mark.parametrize("luck", [0, 0.999], ids=["at once", "at the end of the jitter"])
@pytest.mark.parametrize("set_by_ms", [0, HOUR, -HOUR], ids=["a start", "a clock set forward", "a clock set back"])
def test_without_any_agreement_a_position_waits_as_long_as_a_probe_may_last(
    endpoint: Callable[[int], Read], luck: float, set_by_ms: int
) -> None:
    """And no longer: the row is there within jitter, timeout and a second."""
    clock, record, began_ms = FastClock(), Record(), 300_000 if set_by_ms else 0
    at_most_ms = LAUNCH.jitter_ms + LAUNCH.probe_timeout_ms + SECOND
    writer = lived(
        (began_ms + at_most_ms) / 1000,
        a_plan(),
        [Asked(INDEXER, Blocks(95))],
        [endpoint(number) for number in range(3)],
        (began_ms / 1000, setting(clock, set_by_ms)),
        clock=clock,
        record=record,
        luck=luck,
    )
    waited_ms = judged(record, INDEXER)[-1] - began_ms - set_by_ms
    assert LAUNCH.probe_timeout_ms <= waited_ms <= at_most_ms
    row = rows_of(writer.written[-1][1]["live"].body)["indexer", 1]
    assert parse_instant(row["observedAt"]) == NOON + began_ms + set_by_ms + waited_ms
    assert (row["status"], row["reason"]) == ("unknown", "incompatible-reference")


AT_MOST_MS = LAUNCH.jitter_ms + LAUNCH.probe_timeout_ms + SECOND


def silent() -> list[Read]:
    return [Read(1, TIMEOUT, takes_s=TIMEOUT_S) for _ in range(2)]


@pytest.mark.clause("M12")
def test_an_indexer_that_is_being_asked_when_the_clock_is_set_is_asked_again_at_once() -> None:
    """What it answers to the probe of before would be dropped, and the next one be too late."""
    clock, record, indexer = FastClock(), Record(), Asked(INDEXER, Blocks(95), takes_s=9)
    steps = [(at_s, setting(clock, HOUR)) for at_s in (2.0, 5.0)]
    lived(60, a_plan(), [indexer], [Read(1, 105)], *steps, clock=clock, record=record)
    assert judged(last_run(record), INDEXER)[0] - 2 * HOUR <= 5_000 + AT_MOST_MS
