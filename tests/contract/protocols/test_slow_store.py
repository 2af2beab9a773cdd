"""A store that needs many pages, or much time for each: the newest answers, older ones are read while there is time."""

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
from lookout.monitor.assembly import build_monitor
from lookout.protocols.broadcasters.seen import BroadcastersTable, SeenBroadcasters
from lookout.protocols.broadcasters.source import StoreBroadcasters
from lookout.protocols.client.session import open_session
from lookout.protocols.source import observe
from tests.builders import DAY, HOUR, LAUNCH, MINUTE, NOON, SECOND, a_plan
from tests.contract.protocols.announcers import a_message, a_page
from tests.contract.protocols.listener import ONE, probes
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
async def test_a_store_that_takes_long_for_each_page_answers_in_time_with_what_was_read() -> None:
    """As with 0.6 s a page of the 10 s that a probe has, and a day in more pages than that gives time for."""
    step_s, timeout_s, count = 0.06, 0.5, 15
    async with answering(Store(everybody(count)), after_s=step_s) as (url, _), open_session(timeout_s) as session:
        source = StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,), limit=LIMIT))
        began = time.monotonic()
        found = await observe(source, session, lambda: NOON)
        assert time.monotonic() - began < timeout_s + 10
    assert 1 <= monitored(found) < count


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
        machine = given(KeptInMemory(), clock, make_ledger=lambda _plan, _state: ledger)
        monitor = build_monitor(settings, {}, machine)
        task = asyncio.create_task(monitor.run())
        wanted = dict(zip(checks, ("current", "unknown"), strict=True))
        await until_async(lambda: len(asked) == 2 and statuses() == wanted, "the row of chain 1", 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.clause("M7")
def test_what_earlier_releases_stored_is_read() -> None:
    stored = (
        b'{"sightings":[{"chain_id":1,"announcement":{"address":"0zk1","identifier":null,"sent_at":%d,"expires_at":%d,'
        b'"available_wallets":2}}],"asked_at":{"1":%d},"unread":{"1":[{"since_at":1}]}}'
        % (NOON - HOUR, NOON, NOON - MINUTE)
    )
    found, asked, _ = probes(Store(everybody(1)), NOON, seen=msgspec.json.decode(stored, type=SeenBroadcasters))
    assert found == [{ONE: Members(1, 2)}]
    assert [query_of(each)["startTime"] for each in asked] == [str((NOON - 3 * MINUTE) * 1_000_000)]


@pytest.mark.clause("S10")
def test_who_was_heard_only_while_nobody_asked_is_found() -> None:
    store = Store(everybody(5))
    _, _, seen = probes(store, NOON, limit=LIMIT)
    later = NOON + 8 * HOUR
    store.messages += everybody(5, 101, newest_at=later)
    found, _, _ = probes(store, later, seen=seen, limit=LIMIT)
    assert monitored(found[0]) == 10


class Failing(Store):
    """Answers as many requests as it is told to, and then with an error."""

    answers_left = 0

    def __call__(self, asked: Asked) -> Reply:
        self.answers_left -= 1
        return (429, b"slow down") if self.answers_left < 0 else super().__call__(asked)


@pytest.mark.clause("M3", "S10")
def test_a_failure_at_an_older_page_is_not_the_probes_and_loses_nothing() -> None:
    store = Failing(everybody(10))
    store.answers_left = 4
    found, _, seen = probes(store, NOON, limit=LIMIT)
    assert monitored(found[0]) == 4
    store.answers_left = 0  # the newest page itself
    found, _, later = probes(store, NOON + SECOND, seen=seen, limit=LIMIT)
    assert found == [{ONE: Failed("rate_limited: 429")}]
    assert (later.asked_at, set(later.sightings)) == (seen.asked_at, set(seen.sightings))


@pytest.mark.clause("S10")
def test_a_clock_that_was_wrong_for_a_moment_forgets_nobody() -> None:
    instants = NOON, NOON + 10 * DAY, NOON + MINUTE
    found, _, _ = probes(Store(everybody(5)), *instants, limit=LIMIT)
    assert [monitored(each) for each in found] == [5, 0, 5]


@pytest.mark.clause("S10")
async def test_a_clock_that_is_wrong_while_older_pages_are_read_forgets_nobody() -> None:
    store = Store(everybody(5))
    async with answering(store) as (url, asked), open_session(5) as session:
        source = StoreBroadcasters("broadcasters", BroadcastersTable(url, (1,)))
        during = await observe(source, session, lambda: NOON + 10 * DAY * (len(asked) > 1))
        assert [during, await observe(source, session, lambda: NOON + SECOND)] == [{ONE: Members(1, 5)}] * 2


def test_messages_that_are_incomplete_hide_nobody() -> None:
    pages = {None: a_page({}, {}, cursor="0xa"), "0xa": a_page(a_message(1))}
    found, _, _ = probes(lambda asked: (200, pages[query_of(asked).get("cursor")]), NOON)
    assert found == [{ONE: Members(1, 1)}]


@pytest.mark.clause("M11")
@pytest.mark.parametrize(
    "sent_ns", [(NOON + DAY) * 1_000_000, 10**25, int("9" * 4_300)], ids=["tomorrow", "10^25", "huge"]
)
def test_a_message_of_the_future_counts_for_nobody_and_harms_nobody(sent_ns: int) -> None:
    lie = {**a_message(1), "timestamp": sent_ns}
    pages = iter([a_page(lie, cursor="0xa"), a_page(a_message(2)), a_page(a_message(2))])
    found, _, _ = probes(lambda _: (200, next(pages)), NOON, NOON + 30 * SECOND)
    assert found == [{ONE: Members(1, 1)}] * 2
