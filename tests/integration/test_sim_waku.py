"""The simulated waku node over real sockets: its REST interface, and announcements that verify."""

import base64
import json
from itertools import pairwise

import pytest

from tests.builders import DAY, NOON
from tests.integration.sim_client import CHAINS, REQUIRED_LIST, Client, content_of, decoded, simulated, verifies

RELAY = "/waku/relay/v1/messages/%2Fwaku%2F2%2Frs%2F5%2F1"
TOPIC_OF_1 = "/railgun/v2/0-1-fees/json"
MEMBERS_OF_1 = 9


@simulated()
async def test_the_waku_node_tells_of_its_peers_and_its_health(client: Client) -> None:
    connected = (await client.get("/waku/admin/v1/peers/connected")).document
    known = (await client.get("/waku/admin/v1/peers")).document
    assert connected
    assert [peer for peer in known if peer["connected"] == "Connected"] == connected
    assert len(known) > len(connected)
    health = (await client.get("/waku/health")).document
    assert (health["nodeHealth"], health["protocolsHealth"][0]) == ("READY", {"Relay": "READY"})
    for path in ("/waku/else", "/waku", "/waku/store/v1/messages"):
        astray = await client.get(path)
        assert (astray.http_code, astray.content_type) == (400, "text/plain")


# Made with the network's own library: what differs between the three, and their signatures.
FOREIGN = [
    pytest.param(
        "0zk1qyfc3d8m97mf09ygppa8vsvrgdlzhm0chgxq8le55x6m9p5kc6udlrv7j6fe3z53luv5n7xpttr5gwps"
        "lug84ej5gsxc893dfxd8qffjxhllr7su3627jpctpag",
        {"feeExpiration": 1794708707797, "feesID": "fee0", "availableWallets": 2},
        "8d49f2910ce801509763084ca64204672ca137ccb82ffc2f87d59afc69c80ab5"
        "5c8943e21b771774fd30627eb2e86be74adf0e0d97deeb90821853f64b45be08",
        id="without an identifier",
    ),
    pytest.param(
        "0zk1qyd6qhysz0d97y3hphxcn6mz7ls3d0hj767asjtrdu90f8r9ehwf3rv7j6fe3z53la74w3z6s57x40f2"
        "5fjt248ys7sjfmjn7qw6nyd9qgx9h90lg2mpzrdf7vv",
        {"feeExpiration": 1794709007797, "feesID": "fee1", "identifier": "b1", "availableWallets": 0},
        "f9dc97e062f6302f49c4e626f24aae6b11cba04f8fc5df651338b77ce35362b6"
        "f556e48d97264fc358a6cd06546097d710425cab3cf92c3ad02eb98cfc05d40a",
        id="without a wallet",
    ),
    pytest.param(
        "0zk1qyxdfhu2xcevdka9wetqlx7awpjlzgrjnulzudk3etfr497fmdlj6unpd9kxwatw38d6v2a30hjxtzuv"
        "5yye523wtek8avhk606jhc9mguw4z7c322k8zsf29u3",
        {"feeExpiration": 1794709307797, "feesID": "fee2", "identifier": "b2", "availableWallets": 2},
        "ab2b0ac83facaf1f6de6b87ab8afee6a7e961ef39434833b9c1adebb632d95b9"
        "d1833302233371cc77ca0519b6f698ab589270e18d56d78224c38ed88d71d703",
        id="of one chain",
    ),
]


@pytest.mark.parametrize(("address", "own", "signature"), FOREIGN)
def test_a_real_announcement_verifies_by_this_tests_rules(address: str, own: dict[str, object], signature: str) -> None:
    content: dict[str, object] = {
        "fees": {"0xdac17f958d2ee523a2206206994597c13d831ec7": "0x1bc16d674ec80000"},
        "feeExpiration": own["feeExpiration"],
        "feesID": own["feesID"],
        "railgunAddress": address,
        **{key: own[key] for key in ("identifier", "availableWallets") if key in own},
        "version": "8.2.3",
        "relayAdapt": "0x4025ee6512dbbda97049bcf5aa5d38c54af6be8a",
        "requiredPOIListKeys": [REQUIRED_LIST],
        "reliability": 0.99,
    }
    spelt = json.dumps(content, separators=(",", ":")).encode()
    assert verifies(json.dumps({"data": spelt.hex(), "signature": signature}).encode())
    altered = spelt.replace(b"8.2.3", b"8.2.4")
    assert not verifies(json.dumps({"data": altered.hex(), "signature": signature}).encode())


@simulated()
async def test_every_broadcaster_announces_about_every_twenty_seconds_and_its_signature_verifies(
    client: Client,
) -> None:
    members = (await client.get("/")).document["broadcasters"]
    assert [len(members[str(chain_id)]) for chain_id in CHAINS] == [9, 6, 7, 5, 2]
    assert len({decoded(address) for addresses in members.values() for address in addresses}) == 29
    answer = await client.store(contentTopics=TOPIC_OF_1, startTime=(NOON - 120_000) * 10**6)
    assert (answer["statusCode"], answer["statusDesc"], "paginationCursor" in answer) == (200, "OK", False)
    sent: dict[str, list[int]] = {}
    for stored in answer["messages"]:
        message = stored["message"]
        assert (stored["pubsubTopic"], message["contentTopic"]) == ("/waku/2/rs/5/1", TOPIC_OF_1)
        assert verifies(base64.b64decode(message["payload"]))
        content, sent_at = content_of(message), message["timestamp"] // 10**6
        assert NOON - 120_000 <= sent_at <= NOON
        assert content["feeExpiration"] == sent_at + 300_000
        assert content["availableWallets"] > 0
        sent.setdefault(content["railgunAddress"], []).append(sent_at)
    assert sorted(sent) == sorted(members["1"])
    for instants in sent.values():
        assert all(15_000 <= after - before <= 30_000 for before, after in pairwise(instants))
        assert NOON - instants[-1] < 30_000


@simulated()
async def test_the_store_is_read_page_by_page_in_either_direction(client: Client) -> None:
    whole = await client.store(contentTopics=TOPIC_OF_1, startTime=(NOON - 100_000) * 10**6)
    hashes = [stored["messageHash"] for stored in whole["messages"]]
    assert len(hashes) == len(set(hashes)) > 40
    for ascending in ("true", "false"):
        pages: list[list[str]] = []
        query: dict[str, str | int] = {"ascending": ascending, "pageSize": 10}
        while True:
            page = await client.store(contentTopics=TOPIC_OF_1, startTime=(NOON - 100_000) * 10**6, **query)
            instants = [stored["message"]["timestamp"] for stored in page["messages"]]
            assert instants == sorted(instants)
            pages.append([stored["messageHash"] for stored in page["messages"]])
            if "paginationCursor" not in page:
                break
            query["cursor"] = page["paginationCursor"]
        in_order = pages if ascending == "true" else pages[::-1]
        assert [each for page_hashes in in_order for each in page_hashes] == hashes


@simulated()
async def test_the_store_takes_what_it_is_asked_for_and_names_what_it_cannot_read(client: Client) -> None:
    topics = {stored["message"]["contentTopic"] for stored in (await client.store(ascending="false"))["messages"]}
    assert len(topics) == len(CHAINS)
    assert (await client.store(pubsubTopic="/waku/2/rs/0/1"))["messages"] == []
    assert (await client.store(contentTopics="/else"))["messages"] == []
    assert (await client.store(endTime=(NOON - DAY) * 10**6))["messages"] == []
    assert list((await client.store(includeData="false"))["messages"][0]) == ["messageHash"]
    assert len((await client.get("/waku/store/v3/messages")).document["messages"]) == 20
    for query in ("pageSize=many", "pageSize=-1", "startTime=now", "cursor=0x00"):
        assert (await client.get(f"/waku/store/v3/messages?{query}")).http_code == 400


@simulated()
async def test_the_relay_gives_what_was_heard_since_the_last_reading(client: Client) -> None:
    assert (await client.get(RELAY)).http_code == 404
    assert (await client.post("/waku/relay/v1/subscriptions", {})).http_code == 400
    assert (await client.post_bytes("/waku/relay/v1/subscriptions", b"[")).http_code == 400
    subscribed = await client.post("/waku/relay/v1/subscriptions", ["/waku/2/rs/5/1"])
    assert (subscribed.http_code, subscribed.body) == (200, b"OK")
    assert (await client.get(RELAY)).document == []
    client.clock.pass_s(30)
    messages = (await client.get(RELAY)).document
    assert {content_of(message)["railgunAddress"] for message in messages} == {
        address for members in (await client.get("/")).document["broadcasters"].values() for address in members
    }
    assert all(verifies(base64.b64decode(message["payload"])) for message in messages)
    assert (await client.get(RELAY)).document == []


@simulated()
async def test_a_waku_node_without_peers_still_answers(client: Client) -> None:
    await client.order("waku", "zero-peers")
    assert (await client.get("/waku/admin/v1/peers/connected")).document == []
    known = (await client.get("/waku/admin/v1/peers")).document
    assert {peer["connected"] for peer in known} == {"NotConnected"}
    health = await client.get("/waku/health")
    assert (health.http_code, health.document["nodeHealth"]) == (200, "NOT_READY")


async def _announced(client: Client, after_at: int) -> tuple[set[str], set[bool]]:
    """Who was heard on chain 1 since an instant, and whether what they signed verifies."""
    answer = await client.store(contentTopics=TOPIC_OF_1, startTime=(after_at + 1) * 10**6, ascending="false")
    messages = [stored["message"] for stored in answer["messages"]]
    verdicts = {verifies(base64.b64decode(message["payload"])) for message in messages}
    return {content_of(message)["railgunAddress"] for message in messages}, verdicts


@simulated()
async def test_silent_broadcasters_are_not_heard_and_what_they_did_not_send_never_comes(client: Client) -> None:
    members = (await client.get("/")).document["broadcasters"]["1"]
    await client.order("broadcasters/1", "silent")
    client.clock.pass_s(60)
    assert await _announced(client, NOON) == (set(), set())
    assert (await _announced(client, NOON - 60_000))[0] == set(members)
    await client.order("broadcasters/1", "silent", first=4)
    client.clock.pass_s(60)
    assert await _announced(client, NOON) == (set(members[4:]), {True})
    await client.order("broadcasters/1", None)
    assert await _announced(client, NOON) == (set(members[4:]), {True})
    client.clock.pass_s(60)
    assert await _announced(client, NOON) == (set(members), {True})


@simulated()
async def test_ill_signed_announcements_do_not_verify(client: Client) -> None:
    await client.order("broadcasters", "unsigned")
    client.clock.pass_s(60)
    heard, verdicts = await _announced(client, NOON)
    assert (len(heard), verdicts) == (MEMBERS_OF_1, {False})
    await client.order("broadcasters", "unsigned", first=1)
    client.clock.pass_s(60)
    heard, verdicts = await _announced(client, NOON + 60_000)
    assert (len(heard), verdicts) == (MEMBERS_OF_1, {True, False})
