"""Broadcasters through the store of a node that is a real server on loopback."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import pytest

from lookout.core.model import Failed, Found, Members, Observation, Status
from lookout.core.policy import Memory, judge
from lookout.features.alerts.rules import AlertState, EpisodeRules, NewsKind, advance
from lookout.features.alerts.settings import AlertRule
from lookout.protocols.broadcasters.seen import BroadcastersTable, SeenBroadcasters
from lookout.protocols.broadcasters.source import LONGEST_CURSOR, MAX_PAGES, StoreBroadcasters, parse_page
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import Session
from lookout.protocols.source import observe
from tests.builders import DAY, HOUR, LAUNCH, MINUTE, NOON, SECOND
from tests.contract.protocols.announcers import a_message, a_page, broadcaster
from tests.contract.protocols.listener import ONE, POLYGON, probes
from tests.contract.protocols.recorded import recorded
from tests.contract.protocols.upstreams import Asked, Reply
from tests.contract.protocols.waku_store import Store, query_of

EMPTY = a_page()


def members(messages: list[dict[str, Any]], at: int = NOON, **changed: Any) -> Found:
    """What one chain's broadcasters are when a store has these messages."""
    found, _, _ = probes(lambda _: (200, a_page(*messages)), at, **changed)
    return found[0][ONE]


@pytest.mark.clause("S10")
@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([], Members(0, 0), id="nobody was ever seen"),
        pytest.param([a_message(1), a_message(2)], Members(2, 2), id="all answer"),
        pytest.param([a_message(1), a_message(2, wallets=0)], Members(1, 2), id="one has no wallets left"),
        pytest.param([a_message(1), a_message(2, sent_at=NOON - 10 * MINUTE)], Members(1, 2), id="one fell silent"),
        pytest.param([a_message(1), a_message(2, sent_at=NOON - DAY - 1)], Members(1, 1), id="one is long gone"),
        pytest.param([a_message(1), a_message(2, expires_at=NOON + 30_000)], Members(1, 2), id="one expires too soon"),
        pytest.param([a_message(1), a_message(2, sent_at=NOON + 2 * MINUTE)], Members(1, 1), id="one is in the future"),
        pytest.param(
            [a_message(1, sent_at=NOON - 30 * SECOND), a_message(1, sent_at=NOON - SECOND, wallets=0)],
            Members(0, 1),
            id="the newest announcement decides",
        ),
        pytest.param(
            [a_message(1, sent_at=NOON - SECOND, wallets=0), a_message(1, sent_at=NOON - 30 * SECOND)],
            Members(0, 1),
            id="in whatever order they come",
        ),
        pytest.param(
            [a_message(1, identifier="a"), a_message(1, identifier="b", wallets=0), a_message(1)],
            Members(2, 3),
            id="identifiers tell apart",
        ),
        pytest.param([a_message(1), a_message(1, chain_id=137)], Members(1, 1), id="another chain's do not count"),
        pytest.param(
            [a_message(1), {**a_message(2), "payload": a_message(2)["payload"][:-8]}], Members(1, 1), id="cut"
        ),
        pytest.param(
            [a_message(1), {"payload": 7}, {}], Members(1, 1), id="messages without a payload are passed over"
        ),
    ],
)
def test_seen_broadcasters_are_monitored(messages: list[dict[str, Any]], expected: Members) -> None:
    assert members(messages) == expected


@pytest.mark.clause("S10")
def test_configured_members_are_monitored_whatever_is_seen() -> None:
    listed = {"1": (broadcaster(1).address, broadcaster(2).address.upper(), broadcaster(3).address)}
    messages = [
        a_message(1, identifier="a"),
        a_message(1, identifier="b"),
        a_message(2),
        a_message(4),
        a_message(5),
    ]
    assert members(messages, members=listed) == Members(2, 3)
    assert members([], members=listed) == Members(0, 3)
    assert members([a_message(4)], members={"137": listed["1"]}) == Members(1, 1)


@dataclass(frozen=True)
class Near(Session):
    """Without a network, so that a day takes a moment."""

    store: Store = field(default_factory=Store)

    async def fetch(self, request: Request) -> bytes:
        _, body = self.store(Asked(request.method, request.url, {}, b""))
        return body


async def reported_of_a_visit(chance: Random, seen_s: float) -> list[tuple[NewsKind, Status]]:
    """What is reported when one broadcaster announces itself once, from then until an hour after it is forgotten,
    without reminders."""
    sent_at = NOON + chance.randrange(5 * MINUTE)
    near = Near(cast("Any", None), 10, store=Store([a_message(1, sent_at=sent_at)]))
    source = StoreBroadcasters("broadcasters", BroadcastersTable("http://127.0.0.1:1", (1,), seen_s=seen_s))
    rules = EpisodeRules(tuple(AlertRule(remind_s=0).build((ONE,), ("ops",))), 0, MINUTE)
    memory, state, reported = Memory(), AlertState(), list[tuple[NewsKind, Status]]()
    at = NOON
    while at < sent_at + seen_s * SECOND + HOUR:
        found = await observe(source, near, lambda at=at: at)  # type: ignore[misc]
        memory, row = judge(memory, Observation(ONE, at, found[ONE]), None, LAUNCH, blind=False)
        wait_ms = LAUNCH.wait_ms(memory.failures, chance.random())
        for published_at in range(at, at + wait_ms, MINUTE):
            state, news = advance(state, published_at, [row], rules)
            reported += [(each.kind, each.status) for each in news]
        at += wait_ms
    return reported


@pytest.mark.clause("S10")
@pytest.mark.parametrize("seen_s", [DAY // SECOND, HOUR // SECOND], ids=["a day", "an hour"])
@pytest.mark.parametrize("seed", range(30))
def test_of_a_broadcaster_that_visited_once_only_its_absence_is_reported(seed: int, seen_s: float) -> None:
    assert asyncio.run(reported_of_a_visit(Random(seed), seen_s)) == [("began", "unavailable")]


@pytest.mark.clause("M7")
def test_a_flood_of_strangers_takes_no_memory() -> None:
    flood = [a_message(number, sent_at=NOON - number) for number in range(1, 301)]
    _, _, seen = probes(lambda _: (200, a_page(*flood)), NOON, limit=5)
    assert [each.announcement.address for each in seen.sightings] == [
        broadcaster(number).address for number in range(1, 6)
    ]
    _, _, seen = probes(lambda _: (200, a_page(*flood)), NOON, members={"1": (broadcaster(9).address,)})
    assert len(seen.sightings) == 1


@pytest.mark.clause("M7")
def test_what_was_seen_survives_as_plain_json() -> None:
    everybody = a_page(a_message(1), a_message(2, identifier="b"))
    _, _, before = probes(lambda _: (200, everybody), NOON)
    kept = msgspec.json.decode(msgspec.json.encode(before), type=SeenBroadcasters)
    assert kept == before
    only_one = a_page(a_message(1, sent_at=NOON + 10 * MINUTE))
    found, _, _ = probes(lambda _: (200, only_one), NOON + 10 * MINUTE, seen=kept)
    assert found == [{ONE: Members(1, 2)}]
    forgotten, _, _ = probes(lambda _: (200, only_one), NOON + 10 * MINUTE)
    assert forgotten == [{ONE: Members(1, 1)}]


def test_what_was_seen_is_fitted_to_other_settings() -> None:
    _, _, before = probes(lambda _: (200, a_page(a_message(1, identifier="a"), a_message(2))), NOON)
    listed = {"1": (broadcaster(1).address,)}
    assert members([], members=listed) == Members(0, 1)
    found, _, after = probes(lambda _: (200, EMPTY), NOON, seen=before, members=listed)
    assert found == [{ONE: Members(1, 1)}]
    assert len(after.sightings) == 1
    found, _, after = probes(lambda _: (200, EMPTY), NOON, seen=before, chains=(137,))
    assert found == [{POLYGON: Members(0, 0)}]
    assert after == SeenBroadcasters((), {137: NOON})


@pytest.mark.clause("M9")
def test_a_store_is_asked_for_a_day_and_then_for_what_is_new() -> None:
    _, asked, _ = probes(lambda _: (200, EMPTY), NOON, NOON + 30 * SECOND, pubsub_topic="/waku/2/rs/0/1")
    assert {urlsplit(each.target).path for each in asked} == {"/store/v3/messages"}
    first, second = map(query_of, asked)
    assert first == {
        "includeData": "true",
        "pubsubTopic": "/waku/2/rs/0/1",
        "contentTopics": "/railgun/v2/0-1-fees/json",
        "startTime": str((NOON - DAY) * 1_000_000),
        "pageSize": "100",
        "ascending": "false",
    }
    assert second["startTime"] == str((NOON - 120 * SECOND) * 1_000_000)


@pytest.mark.clause("M9")
def test_pages_are_followed_by_their_cursor() -> None:
    longest = "x" * LONGEST_CURSOR
    pages = {
        None: a_page(a_message(1), cursor="0xa/+="),
        "0xa/+=": a_page(a_message(2), cursor=longest),
        longest: a_page(a_message(3)),
    }
    found, asked, _ = probes(lambda each: (200, pages[query_of(each).get("cursor")]), NOON)
    assert found == [{ONE: Members(3, 3)}]
    assert len(asked) == 3


@pytest.mark.clause("M3")
def test_pages_without_end_are_left_after_some() -> None:
    count = 0

    def answer(_: Asked) -> Reply:
        nonlocal count
        count += 1
        return 200, a_page(a_message(1), cursor=f"0x{count}")

    found, asked, _ = probes(answer, NOON)
    assert found == [{ONE: Members(1, 1)}]
    assert len(asked) == MAX_PAGES


@pytest.mark.parametrize(
    "page", [a_page(a_message(1), cursor="0xa"), a_page(cursor="0xa"), a_page(a_message(1), cursor="")]
)
def test_a_cursor_that_leads_nowhere_ends_the_pages(page: bytes) -> None:
    _, asked, _ = probes(lambda _: (200, page), NOON)
    assert len(asked) <= 2


@pytest.mark.clause("M9")
def test_each_chain_is_asked_for_on_its_own_and_one_that_fails_fails_alone() -> None:
    def answer(asked: Asked) -> Reply:
        polygon = "0-137-" in query_of(asked)["contentTopics"]
        return (429, b"slow down") if polygon else (200, a_page(a_message(1)))

    found, _, seen = probes(answer, NOON, chains=(1, 137))
    assert found == [{ONE: Members(1, 1), POLYGON: Failed("rate_limited: 429")}]
    assert seen.asked_at == {1: NOON}


@pytest.mark.clause("M9")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param((412, b"no suitable peer"), "http_status: 412", id="no store peer"),
        pytest.param((200, a_page(status_code=503)), "store_status: 503", id="a status inside the 200"),
        pytest.param((200, a_page(status_code=10**12)), "store_status", id="an absurd status"),
        pytest.param((200, b'{"messages":[]}'), "not_understood: no statusCode", id="no status"),
        pytest.param(
            (200, b'{"statusCode":true,"messages":[]}'), "not_understood: no statusCode", id="a status of true"
        ),
        pytest.param((200, b'{"statusCode":200}'), "not_understood: no messages", id="no messages"),
        pytest.param(
            (200, b'{"statusCode":200,"messages":[7]}'), "not_understood: a message", id="a number for a message"
        ),
        pytest.param(
            (200, b'{"statusCode":200,"messages":[],"paginationCursor":7}'),
            "not_understood: paginationCursor",
            id="a number for a cursor",
        ),
        pytest.param(
            (200, a_page(a_message(1), cursor="x" * (LONGEST_CURSOR + 1))),
            "not_understood: paginationCursor",
            id="a cursor that would make an address too long",
        ),
        pytest.param((200, b"<html>"), "not_json: HTML or XML", id="a page for people"),
    ],
)
def test_a_store_that_cannot_answer_fails(reply: Reply, reason: str) -> None:
    found, _, _ = probes(lambda _: reply, NOON)
    assert found == [{ONE: Failed(reason)}]


@pytest.mark.clause("M9")
def test_a_recorded_page_is_read() -> None:
    page = parse_page(recorded("waku-store-page.json"))
    assert [message.sent_at for message in page.messages] == [1_794_708_500_000, 1_794_708_520_000]
    assert page.cursor == f"0x{1:064x}"
    with pytest.raises(ProbeFailed):
        parse_page(recorded("waku-relay-messages.json"))
