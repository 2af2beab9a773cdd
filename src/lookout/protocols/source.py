"""What a source is, and the one edge at which its failure becomes a value."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lookout.core.heads import Reading
from lookout.core.model import Check, Failed, Found
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request

if TYPE_CHECKING:  # it loads aiohttp, which reading a configuration does without
    from lookout.protocols.client.session import Session

Now = Callable[[], int]  # milliseconds since 1970


class Source(Protocol):
    """The adapter to one third party."""

    @property
    def name(self) -> str:
        """For people; never an address."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """What it answers for."""

    async def probe(self, session: "Session", now: Now, /) -> Mapping[Check, Found]:
        """Ask once, within the session's time (M3): what was found for each of the checks.

        ProbeFailed if that is nothing at all, OwnFault if something of our own was lacking to ask. Where one chain's
        answer fails without the others', it is among the found.
        """


class Endpoint(Protocol):
    """A node that knows the head of its chain."""

    @property
    def name(self) -> str:
        """For people; never an address."""

    @property
    def chain_id(self) -> int: ...

    async def read(self, session: "Session", now: Now, /) -> Reading:
        """The chain's head as this endpoint sees it; ProbeFailed or OwnFault if it could not be read."""


@dataclass(frozen=True, slots=True)
class OneRequest:
    """A source that answers for all its checks at one request."""

    name: str
    checks: tuple[Check, ...]
    request: Request
    parse: Callable[[bytes], Mapping[Check, Found]]

    async def probe(self, session: "Session", _now: Now, /) -> Mapping[Check, Found]:
        return self.parse(await session.fetch(self.request))


async def observe(source: Source, session: "Session", now: Now) -> Mapping[Check, Found]:
    """Probe a source; a failure is what was found for each of its checks."""
    try:
        return await source.probe(session, now)
    except ProbeFailed as failure:
        return dict.fromkeys(source.checks, Failed(failure.reason))
