"""A store that needs many pages, or much time for each: the newest answers, and older pages are read by and by."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lookout.base.clock import SystemClock
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Failed, Found, Members
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.broadcasters.source import LIMIT_BYTES, MAX_PAGES, MOST_BYTES_A_CHAIN, StoreBroadcasters
from lookout.protocols.broadcasters.table import BroadcastersTable
from lookout.protocols.client.session import open_session
from lookout.protocols.source import observe
from tests.builders import DAY, HOUR, LAUNCH, MINUTE, NOON, SECOND, a_plan
from tests.contract.protocols.announcers import a_message, a_page
from tests.contract.protocols.listener import ONE, POLYGON, probes
from tests.contract.protocols.upstreams import Asked, Reply, answering
from tests.contract.protocols.waku_store import Store, query_of
from tests.unit.running_monitor import KeptInMemory, given, given_settings
from tests.wait import until_async

LIMIT = 200  # more than there are


def everybody(
    count: int, first: int = 1, *, newest_at: int = NOON, every_ms: int = 10 * MINUTE
) -> list[dict[str, Any]]:
    """So many broadcasters, each of which announced once."""
    return [a_message(first + number, sent_at=newest_at - number * every_ms) for number in range(count)]


def monitored(found: Mapping[Check, Found], check: Check = ONE) -> int:
    members = found[check]
    assert isinstance(members, Members), members
    return members.monitored


@pytest.mark.clause("M3", "S10")
async def test_a_store_that_takes_long_for_each_page_answers_at_once_and_all_are_found_by_and_by() -> None:
    """As with 0.6 s a page of the 10 s that a probe has, and a day in more pages than that gives time for."""
    step_s, timeout_s, count = 0.03, 0.5, 40
    store = Store(everybody(count))
    store.messages += [a_message(number + 1, chain_id=137, sent_at=NOON - number * MINUTE) for number in range(count)]
    async with answering(store, after_s=step_s) as (url, _), open_session(timeout_s) as session:
        sources = [StoreBroadcasters("broadcasters", BroadcastersTable(url, (each,), limit=LIMIT)) for each in (1, 137)]
        found: list[Mapping[Check, Found]] = []
        while not found or (min(monitored(found[-1]), monitored(found[-1], POLYGON)) < count and len(found) < 40):
            began = time.monotonic()
            answers = await asyncio.gather(*(observe(source, session, lambda: NOON) for source in sources))
            assert time.monotonic() - began < timeout_s + 10
            found.append({check: what for each in answers for check, what in each.items()})
    first, *_, last = found
    for check in (ONE, POLYGON):
        assert 1 <= monitored(first, check) < count
    assert last == {ONE: Members(1, count), POLYGON: Members(3, count)}


@pytest.mark.clause("S10")
async def test_who_answers_is_judged_when_the_newest_page_is_there_and_not_after_the_older_ones() -> None:
    store = Store(everybody(5, newest_at=NOON - 115 * SECOND))
    async with answering(store) as (url, asked), open_session(5) as session:
        source = StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,)))
        assert await observe(source, session, lambda: NOON + 2 * SECOND * len(asked)) == {ONE: Members(1, 5)}


@pytest.mark.clause("M6")
async def test_the_row_of_one_chain_does_not_wait_for_the_pages_of_another() -> None:
    clock = SystemClock()
    checks = Check("broadcasters", 1), Check("broadcasters", 137)
    plan = a_plan(*checks, chains=(1, 137), limits=replace(LAUNCH, jitter_ms=1, probe_timeout_ms=HOUR))
    ledger = Ledger(plan)
    store = Store([a_message(1, chain_id=chain_id, sent_at=clock.now()) for chain_id in (1, 137)])

    def hang(asked: Asked) -> float:
        return 3_600 if "0-137-" in asked.target else 0

    def statuses() -> dict[Check, str]:
        return {row.check: row.status for row in ledger.published_rows if row.check in checks}

    async with answering(store, after_s=hang) as (url, asked):
        sources = [StoreBroadcasters("broadcasters", BroadcastersTable(url, (each,))) for each in (1, 137)]
        settings = given_settings(plan, sources)
        monitor = given(KeptInMemory(), clock, ledger=lambda _plan, _state: ledger).build(settings, {})
        task = asyncio.create_task(monitor.run())
        wanted = dict(zip(checks, ("current", "unknown"), strict=True))
        await until_async(lambda: len(asked) == 2 and statuses() == wanted, "the row of chain 1", 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.clause("S10")
def test_what_one_probe_does_not_reach_the_next_ones_read_each_page_once() -> None:
    count = 2 * MAX_PAGES + 5
    instants = [NOON + number * 30 * SECOND for number in range(4)]
    found, asked, seen = probes(Store(everybody(count)), *instants, limit=LIMIT)
    # The newest page is asked for again: a store may learn of messages late.
    assert [monitored(each) for each in found] == [MAX_PAGES, 2 * MAX_PAGES - 1, count, count]
    cursors = [cursor for each in asked if (cursor := query_of(each).get("cursor"))]
    assert len(cursors) == len(set(cursors)) == count - 1
    assert seen.unread == {}


@pytest.mark.clause("M7", "S10")
def test_a_restart_goes_on_where_the_last_probe_was() -> None:
    count = MAX_PAGES + 5
    store = Store(everybody(count))
    _, before, seen = probes(store, NOON, limit=LIMIT)
    kept = msgspec.json.decode(msgspec.json.encode(seen), type=SeenBroadcasters)
    assert kept == seen
    assert kept.unread[1]
    found, asked, _ = probes(store, NOON + MINUTE, seen=kept, limit=LIMIT)
    assert found == [{ONE: Members(1, count)}]
    assert len(before) + len(asked) == count + 1


@pytest.mark.clause("M7")
def test_what_the_first_release_stored_is_read() -> None:
    stored = (
        b'{"sightings":[{"chain_id":1,"announcement":{"address":"0zk1","identifier":null,"sent_at":%d,"expires_at":%d,'
        b'"available_wallets":2}}],"asked_at":{"1":%d}}' % (NOON - HOUR, NOON, NOON - MINUTE)
    )
    found, asked, _ = probes(Store(everybody(1)), NOON, seen=msgspec.json.decode(stored, type=SeenBroadcasters))
    assert found == [{ONE: Members(1, 2)}]
    assert [query_of(each)["startTime"] for each in asked] == [str((NOON - 3 * MINUTE) * 1_000_000)]


@pytest.mark.clause("S10")
def test_who_was_heard_only_while_nobody_asked_is_found() -> None:
    """A gap of more pages than a probe reads, while a gap before it is still being read."""
    store = Store(everybody(MAX_PAGES + 5))
    _, _, seen = probes(store, NOON, limit=LIMIT)
    later = NOON + 8 * HOUR
    store.messages += everybody(MAX_PAGES + 5, 101, newest_at=later)
    instants = [later + number * 30 * SECOND for number in range(3)]
    found, _, seen = probes(store, *instants, seen=seen, limit=LIMIT)
    assert [monitored(each) for each in found] == [2 * MAX_PAGES, 2 * MAX_PAGES + 10, 2 * MAX_PAGES + 10]
    assert seen.unread == {}


@pytest.mark.clause("S10")
def test_the_set_is_what_was_seen_in_its_time_however_long_reading_takes() -> None:
    """What grows too old for anybody while it waits to be read is not read."""
    _, _, seen = probes(Store(everybody(MAX_PAGES + 5)), NOON, limit=LIMIT)
    assert seen.unread[1]
    found, asked, seen = probes(Store(), NOON + DAY, seen=seen, limit=LIMIT)
    assert found == [{ONE: Members(0, 1)}]
    assert len(asked) == 1
    assert seen.unread == {}


class Failing(Store):
    """Answers as many requests as it is told to, and then with an error."""

    answers_left = 0

    def __call__(self, asked: Asked) -> Reply:
        self.answers_left -= 1
        return (429, b"slow down") if self.answers_left < 0 else super().__call__(asked)


@pytest.mark.clause("M3", "S10")
def test_a_failure_at_an_older_page_is_not_the_probes_and_loses_nothing() -> None:
    store = Failing(everybody(10))
    seen = SeenBroadcasters()
    for number, (answers, expected) in enumerate(((4, 4), (1, 4), (3, 5), (0, None), (100, 10))):
        store.answers_left, before = answers, seen
        found, _, seen = probes(store, NOON + number * SECOND, seen=seen, limit=LIMIT)
        if expected is None:  # the newest page itself
            assert found == [{ONE: Failed("rate_limited: 429")}]
            assert (seen.asked_at, seen.unread) == (before.asked_at, before.unread)
            assert set(seen.sightings) == set(before.sightings)
        else:
            assert monitored(found[0]) == expected


@pytest.mark.clause("S10")
def test_a_store_that_forgot_its_cursors_is_asked_by_instants() -> None:
    count = MAX_PAGES + 10
    store = Store(everybody(count))
    _, _, seen = probes(store, NOON, limit=LIMIT)
    store.restart()
    found, asked, _ = probes(store, NOON + SECOND, NOON + 2 * SECOND, seen=seen, limit=LIMIT)
    assert [monitored(each) for each in found] == [MAX_PAGES, count]
    assert len(asked) == 2 + 1 + 11  # of which one is read again: messages of one instant may be on two pages


@pytest.mark.clause("S10")
def test_a_clock_that_was_wrong_for_a_moment_forgets_nobody() -> None:
    count = MAX_PAGES + 5
    instants = NOON, NOON + 10 * DAY, NOON + MINUTE, NOON + 2 * MINUTE
    found, _, _ = probes(Store(everybody(count)), *instants, limit=LIMIT)
    assert [monitored(each) for each in found] == [MAX_PAGES, 0, MAX_PAGES, count]


@pytest.mark.clause("S10")
async def test_a_clock_that_is_wrong_while_older_pages_are_read_forgets_nobody() -> None:
    store = Store(everybody(5))
    async with answering(store) as (url, asked), open_session(5) as session:
        source = StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,)))
        during = await observe(source, session, lambda: NOON + 10 * DAY * (len(asked) > 1))
        assert [during, await observe(source, session, lambda: NOON + SECOND)] == [{ONE: Members(1, 5)}] * 2


@pytest.mark.clause("M6")
def test_a_chain_is_read_up_to_so_many_bytes_in_one_probe_and_the_next_goes_on() -> None:
    size = LIMIT_BYTES - 100_000
    stuffed = {**a_message(1), "payload": "x" * size}
    pages = iter(range(1_000))
    _, asked, seen = probes(lambda _: (200, a_page(stuffed, cursor=f"0x{next(pages)}")), NOON)
    assert len(asked) == MOST_BYTES_A_CHAIN // size + 1 == 3
    assert seen.unread[1][0].cursor == "0x2"


def test_messages_that_are_incomplete_hide_nobody() -> None:
    pages = {None: a_page({}, {}, cursor="0xa"), "0xa": a_page(a_message(1))}
    found, _, _ = probes(lambda asked: (200, pages[query_of(asked).get("cursor")]), NOON)
    assert found == [{ONE: Members(1, 1)}]


@pytest.mark.clause("M7", "M11")
@pytest.mark.parametrize(
    "sent_ns", [(NOON + DAY) * 1_000_000, 10**25, int("9" * 4_300)], ids=["tomorrow", "10^25", "huge"]
)
def test_messages_of_the_future_leave_nothing_behind_that_no_store_answers(sent_ns: int) -> None:
    """A store that lied once, and refuses what it cannot be asked for: instants of the future, forgotten cursors."""
    lie = {**a_message(1), "timestamp": sent_ns}

    def answer(asked: Asked) -> Reply:
        query = query_of(asked)
        if len(asked_before) < 1:
            asked_before.append(asked)
            return 200, a_page(lie, cursor="0xa")
        if "cursor" in query or int(query.get("endTime", "0")) > (NOON + MINUTE) * 1_000_000:
            return 400, b"no"
        return 200, a_page(a_message(2))

    asked_before: list[Asked] = []
    found, _, seen = probes(answer, NOON, NOON + 30 * SECOND, NOON + MINUTE)
    assert found[-1] == {ONE: Members(1, 1)}
    assert not seen.unread
