"""The messaging connection: how many peers a waku node is connected to."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from lookout.base.setting_types import Url
from lookout.core.model import Check, Found, Peers
from lookout.protocols.answers import count, decode, entries, open_value, table
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request, SourceTable, at_most, below
from lookout.protocols.source import Now, OwnTableProtocol

if TYPE_CHECKING:  # loads ssl and urllib, which reading a configuration does not need
    from lookout.protocols.client.session import Session

# NotConnected, CannotConnect, CanConnect, Connected: the place in the node's own list of states.
_CONNECTED: Final = 3


class MessagingTable(SourceTable, frozen=True):
    url: Url
    """The REST address of a waku node that runs with `--rest-admin=true`."""

    def address(self) -> str:
        return self.url


class MessagingSource:
    def __init__(self, service: str, settings: MessagingTable) -> None:
        self.name = service
        self.checks = (Check(service, None),)
        self._connected = Request("GET", below(settings.url, "/admin/v1/peers/connected"), settings)
        self._known = Request("GET", below(settings.url, "/admin/v1/peers"), settings)

    async def probe(self, session: "Session", _now: Now, /) -> Mapping[Check, Found]:
        async with at_most(session.timeout_s):
            return {self.checks[0]: await self._peers(session)}

    async def _peers(self, session: "Session") -> Peers:
        try:
            return parse_connected(await session.fetch(self._connected))
        except ProbeFailed as failure:
            if failure.code not in (400, 404):
                raise
        # A version without this path says 400. One without its admin interface says 404 here and there.
        return parse_known(await session.fetch(self._known))


def parse_connected(body: bytes) -> Peers:
    peers = entries(decode(body), "no list of peers")
    return Peers(len([table(peer, "a peer") for peer in peers]))


def parse_known(body: bytes) -> Peers:
    peers = entries(decode(body), "no list of peers")
    return Peers(sum(_is_connected(table(peer, "a peer").get("connected")) for peer in peers))


def _is_connected(connected: Any) -> bool:
    """Written as the name of a state or as its number, depending on the node's version."""
    connected = open_value(connected)
    if type(connected) is str:
        return connected == "Connected"
    return count(connected, "whether a peer is connected") == _CONNECTED


MESSAGING: Final = OwnTableProtocol(
    "messaging", Peers, MessagingTable, lambda service, settings: (MessagingSource(service, settings),)
)
