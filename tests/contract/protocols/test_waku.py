"""Peers of the messaging connection, from whichever path the node's version has."""

import pytest

from lookout.core.model import Failed, Found, Peers
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import open_session
from lookout.protocols.messaging import MessagingSource, MessagingTable, parse_connected, parse_known
from lookout.protocols.source import observe
from tests.builders import MESSAGING, NOON
from tests.contract.protocols.recorded import recorded
from tests.contract.protocols.upstreams import Answer, answering


@pytest.mark.clause("M9", "S11")
def test_the_length_of_the_connected_peers_is_told() -> None:
    assert parse_connected(recorded("waku-peers-connected.json")) == Peers(2)
    assert parse_connected(b"[]") == Peers(0)


@pytest.mark.clause("M9", "S11")
def test_of_the_known_peers_only_connected_ones_count() -> None:
    assert parse_known(recorded("waku-peers-known-names.json")) == Peers(1)
    assert parse_known(recorded("waku-peers-known-numbers.json")) == Peers(2)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[1]",
        b"null",
        b"The node is initializing",
        b'[{"connected":true}]',
        b'[{"connected":null}]',
        b"[{}]",
        b'[{"connected":3.0}]',
    ],
)
def test_what_is_no_list_of_peers_fails(body: bytes) -> None:
    with pytest.raises(ProbeFailed):
        parse_known(body)


async def observed(answer: Answer) -> tuple[Found, list[str]]:
    async with answering(answer) as (url, asked), open_session(20) as session:
        found = await observe(MessagingSource("messaging", MessagingTable(f"{url}/waku")), session, lambda: NOON)
        return found[MESSAGING], [each.target for each in asked]


@pytest.mark.clause("M9")
async def test_connected_peers_are_asked_for() -> None:
    found, targets = await observed(lambda _: (200, recorded("waku-peers-connected.json")))
    assert found == Peers(2)
    assert targets == ["/waku/admin/v1/peers/connected"]


@pytest.mark.clause("M9")
@pytest.mark.parametrize("http_code", [400, 404])
async def test_a_node_without_that_path_is_asked_for_the_known_ones(http_code: int) -> None:
    found, targets = await observed(
        lambda asked: (
            (http_code, b"no such path")
            if asked.target.endswith("connected")
            else (200, recorded("waku-peers-known-names.json"))
        )
    )
    assert found == Peers(1)
    assert targets == ["/waku/admin/v1/peers/connected", "/waku/admin/v1/peers"]


async def test_a_node_without_its_admin_interface_fails() -> None:
    found, _ = await observed(lambda _: (404, b"Not Found"))
    assert found == Failed("http_status: 404")


async def test_a_node_in_trouble_is_not_asked_twice() -> None:
    found, targets = await observed(lambda _: (503, b"The node is not ready"))
    assert found == Failed("http_status: 503")
    assert len(targets) == 1
