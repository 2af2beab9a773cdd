"""Broadcasters through the relay of a node that is a real server on loopback."""

import json
from typing import Any

import pytest

from lookout.core.model import Failed, Members, Nothing
from tests.builders import MINUTE, NOON, SECOND
from tests.contract.protocols.announcers import a_message, broadcaster
from tests.contract.protocols.listener import ONE, POLYGON, probes
from tests.contract.protocols.upstreams import Asked, Reply


class Relay:
    """A node that knows no topic until subscribed, and whose cache is emptied by reading."""

    def __init__(self, *, subscribed: bool) -> None:
        self.subscribed = subscribed
        self.cache: list[dict[str, Any]] = []

    def __call__(self, asked: Asked) -> Reply:
        if asked.method == "POST":
            assert (asked.target, asked.body) == ("/relay/v1/subscriptions", b'["/waku/2/rs/5/1"]')
            self.subscribed = True
            return 200, b"OK"
        assert asked.target == "/relay/v1/messages/%2Fwaku%2F2%2Frs%2F5%2F1"
        if not self.subscribed:
            return 404, b"not subscribed"
        cache, self.cache = self.cache, []
        return 200, json.dumps(cache).encode()


@pytest.mark.clause("M9")
def test_a_relay_is_subscribed_to_once_and_then_read() -> None:
    relay = Relay(subscribed=False)
    found, asked, _ = probes(relay, NOON, NOON + 30 * SECOND, via="relay")
    assert [each.method for each in asked] == ["GET", "POST", "GET", "GET"]
    assert found == [{ONE: Members(0, 0)}] * 2


@pytest.mark.clause("M9", "M7")
def test_what_a_relay_said_once_is_remembered() -> None:
    relay = Relay(subscribed=True)
    relay.cache = [a_message(1), a_message(2, chain_id=137), {"message": a_message(3)}]
    instants = (NOON, NOON + 30 * SECOND, NOON + 3 * MINUTE)
    found, _, seen = probes(relay, *instants, via="relay", chains=(1, 137))
    assert found == [
        {ONE: Members(2, 2), POLYGON: Members(1, 1)},
        {ONE: Members(2, 2), POLYGON: Members(1, 1)},
        {ONE: Members(0, 2), POLYGON: Members(0, 1)},
    ]
    assert len(seen.sightings) == 3


@pytest.mark.clause("S12")
def test_silence_of_a_relay_that_only_begins_to_listen_is_no_evidence() -> None:
    listed = {"1": (broadcaster(1).address,)}
    found, _, _ = probes(Relay(subscribed=False), NOON, NOON + 30 * SECOND, via="relay", members=listed)
    assert found == [{ONE: Nothing("still_reading")}, {ONE: Members(0, 1)}]


@pytest.mark.clause("S12")
def test_silence_is_no_evidence_either_if_the_probe_that_subscribed_found_nothing() -> None:
    listed, relay = {"1": (broadcaster(1).address,)}, Relay(subscribed=False)
    replies = iter((relay, relay, lambda _: (500, b""), relay, relay))
    instants = (NOON, NOON + 30 * SECOND, NOON + 60 * SECOND)
    found, _, _ = probes(lambda asked: next(replies)(asked), *instants, via="relay", members=listed)
    assert found == [{ONE: Failed("http_status: 500")}, {ONE: Nothing("still_reading")}, {ONE: Members(0, 1)}]


@pytest.mark.parametrize(
    ("reply", "reason"), [((500, b""), "http_status: 500"), ((200, b"{}"), "not_understood: no messages")]
)
def test_a_relay_that_cannot_answer_fails_for_all_chains(reply: Reply, reason: str) -> None:
    found, _, _ = probes(lambda _: reply, NOON, via="relay", chains=(1, 137))
    assert found == [dict.fromkeys((ONE, POLYGON), Failed(reason))]
