"""Peers of the messaging connection, from whichever path the node's version has."""

import pytest

from lookout.core.model import Failed, Found, Peers
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.session import open_session
from lookout.protocols.messaging import MessagingSource, MessagingTable, parse_connected, parse_known
from lookout.protocols.source import observe
from tests.builders import MESSAGING, NOON
from tests.contract.protocols.recorded import recorded
from tests.contract.protocols.upstreams import Answer, Reply, answering


@pytest.mark.clause("M9", "S11")
def test_the_number_of_connected_peers_is_reported() -> None:
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


CONNECTED = (200, recorded("waku-peers-connected.json"))
KNOWN = (200, recorded("waku-peers-known-names.json"))
NODES: dict[str, tuple[Reply, Found, int]] = {
    "has the newer path": (CONNECTED, Peers(2), 1),
    "says 400 to it": ((400, b"no such path"), Peers(1), 2),
    "says 404 to it": ((404, b"no such path"), Peers(1), 2),
    "is in trouble, and not asked twice": ((503, b"The node is not ready"), Failed("http_status: 503"), 1),
}
PATHS = ["/waku/admin/v1/peers/connected", "/waku/admin/v1/peers"]


async def observed(answer: Answer) -> tuple[Found, list[str]]:
    async with answering(answer) as (url, asked), open_session(20) as session:
        found = await observe(MessagingSource("messaging", MessagingTable(f"{url}/waku")), session, lambda: NOON)
        return found[MESSAGING], [each.target for each in asked]


@pytest.mark.clause("M9")
@pytest.mark.parametrize(("connected", "expected", "requests"), NODES.values(), ids=NODES)
async def test_connected_peers_are_asked_for_or_known_ones_of_a_node_that(
    connected: Reply, expected: Found, requests: int
) -> None:
    found, targets = await observed(lambda asked: connected if asked.target.endswith("connected") else KNOWN)
    assert (found, targets) == (expected, PATHS[:requests])


async def test_a_node_without_its_admin_interface_fails() -> None:
    assert await observed(lambda _: (404, b"Not Found")) == (Failed("http_status: 404"), PATHS)
