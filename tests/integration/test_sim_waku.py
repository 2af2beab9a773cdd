"""The simulated waku node over real sockets: its REST interface, and announcements that verify."""

from itertools import pairwise
from typing import Any

import pytest

from lookout.core.model import Members
from lookout.protocols.broadcasters.announcements import Announcement
from tests.builders import DAY, MINUTE, NOON
from tests.contract.protocols.announcers import read_announcement
from tests.integration.sim_client import CHAINS, Client, simulation

RELAY = "/waku/relay/v1/messages/%2Fwaku%2F2%2Frs%2F5%2F1"
TOPIC_OF_1 = "/railgun/v2/0-1-fees/json"


def believed(messages: list[Any]) -> list[Announcement]:
    """What Lookout believes of these messages."""
    read = [read_announcement(each["payload"], each["timestamp"] // 10**6) for each in messages]
    return [each for each in read if each is not None]


async def test_the_waku_node_reports_its_peers_and_its_health() -> None:
    async with simulation() as client:
        connected = (await client.get("/waku/admin/v1/peers/connected")).document
        known = (await client.get("/waku/admin/v1/peers")).document
        assert [peer for peer in known if peer["connected"] == "Connected"] == connected
        assert len(known) > len(connected) > 0
        assert (await client.get("/waku/health")).document["nodeHealth"] == "READY"
        for path in ("/waku/else", "/waku", "/waku/store/v1/messages"):
            astray = await client.get(path)
            assert (astray.http_code, astray.content_type) == (400, "text/plain")
        await client.order("waku", "zero-peers")
        known = (await client.get("/waku/admin/v1/peers")).document
        assert {peer["connected"] for peer in known} == {"NotConnected"}
        assert (await client.get("/waku/health")).document["nodeHealth"] == "NOT_READY"


async def test_every_broadcaster_announces_about_every_twenty_seconds_and_its_signature_verifies() -> None:
    async with simulation() as client:
        members = (await client.get("/")).document["broadcasters"]
        answer = await client.store(contentTopics=TOPIC_OF_1, startTime=(NOON - 2 * MINUTE) * 10**6)
    assert [len(members[str(chain_id)]) for chain_id in CHAINS] == [9, 6, 7, 5, 2]
    assert (answer["statusCode"], answer["statusDesc"], "paginationCursor" in answer) == (200, "OK", False)
    announcements = believed([stored["message"] for stored in answer["messages"]])
    assert len(announcements) == len(answer["messages"])
    sent: dict[str, list[int]] = {}
    for each in announcements:
        assert NOON - 2 * MINUTE <= each.sent_at <= NOON
        assert (each.expires_at, each.available_wallets) == (each.sent_at + 5 * MINUTE, 2)
        sent.setdefault(each.address, []).append(each.sent_at)
    assert sorted(sent) == sorted(members["1"])
    for instants in sent.values():
        assert all(15_000 <= after - before <= 30_000 for before, after in pairwise(instants))
        assert NOON - instants[-1] < 30_000


@pytest.mark.parametrize("ascending", ["true", "false"])
async def test_the_store_is_read_page_by_page_in_either_direction(ascending: str) -> None:
    query: dict[str, str | int] = {"contentTopics": TOPIC_OF_1, "startTime": (NOON - 100_000) * 10**6}
    async with simulation() as client:
        whole = await client.store(**query)
        pages: list[list[Any]] = []
        query |= {"ascending": ascending, "pageSize": 10}
        while not pages or "cursor" in query:
            page = await client.store(**query)
            pages.append(page["messages"])
            query.pop("cursor", None)
            if "paginationCursor" in page:
                query["cursor"] = page["paginationCursor"]
    in_order = pages if ascending == "true" else pages[::-1]
    assert [each for page in in_order for each in page] == whole["messages"]
    assert len({stored["messageHash"] for stored in whole["messages"]}) == len(whole["messages"]) > 40


async def test_the_store_takes_what_it_is_asked_for_and_names_what_it_cannot_read() -> None:
    async with simulation() as client:
        topics = {stored["message"]["contentTopic"] for stored in (await client.store(ascending="false"))["messages"]}
        assert len(topics) == len(CHAINS)
        assert (await client.store(pubsubTopic="/waku/2/rs/0/1"))["messages"] == []
        assert (await client.store(contentTopics="/else"))["messages"] == []
        assert (await client.store(endTime=(NOON - DAY) * 10**6))["messages"] == []
        assert list((await client.store(includeData="false"))["messages"][0]) == ["messageHash"]
        assert len((await client.get("/waku/store/v3/messages")).document["messages"]) == 20
        for query in ("pageSize=many", "pageSize=-1", "startTime=now", "cursor=0x00"):
            assert (await client.get(f"/waku/store/v3/messages?{query}")).http_code == 400


async def test_the_relay_gives_what_was_heard_since_the_last_reading() -> None:
    async with simulation() as client:
        assert (await client.get(RELAY)).http_code == 404
        assert (await client.post("/waku/relay/v1/subscriptions", {})).http_code == 400
        assert (await client.post_bytes("/waku/relay/v1/subscriptions", b"[")).http_code == 400
        subscribed = await client.post("/waku/relay/v1/subscriptions", ["/waku/2/rs/5/1"])
        assert (subscribed.http_code, subscribed.body) == (200, b"OK")
        assert (await client.get(RELAY)).document == []
        client.clock.pass_s(30)
        messages = (await client.get(RELAY)).document
        assert (await client.get(RELAY)).document == []
        members = (await client.get("/")).document["broadcasters"].values()
    assert {each.address for each in believed(messages)} == {address for of_chain in members for address in of_chain}


async def heard_since(client: Client, after_at: int) -> set[str]:
    """Who was heard on chain 1 since an instant, and is believed."""
    answer = await client.store(contentTopics=TOPIC_OF_1, startTime=(after_at + 1) * 10**6, ascending="false")
    return {each.address for each in believed([stored["message"] for stored in answer["messages"]])}


async def test_silent_broadcasters_are_not_heard_and_what_they_did_not_send_never_comes() -> None:
    async with simulation() as client:
        members = (await client.get("/")).document["broadcasters"]["1"]
        await client.order("broadcasters/1", "silent")
        client.clock.pass_s(60)
        assert await heard_since(client, NOON) == set()
        assert await heard_since(client, NOON - MINUTE) == set(members)
        await client.order("broadcasters/1", "silent", first=4)
        client.clock.pass_s(60)
        assert await heard_since(client, NOON) == set(members[4:])
        await client.order("broadcasters/1", None)
        assert await heard_since(client, NOON) == set(members[4:])
        client.clock.pass_s(60)
        assert await heard_since(client, NOON) == set(members)


async def test_ill_signed_announcements_are_not_believed() -> None:
    async with simulation() as client:
        await client.order("broadcasters", "unsigned")
        client.clock.pass_s(180)
        assert await client.probe("waku/messages") == Members(0, 9)
        await client.order("broadcasters", "unsigned", first=1)
        client.clock.pass_s(60)
        assert await client.probe("waku/messages") == Members(8, 9)
