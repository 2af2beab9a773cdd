"""What a protocol and its sources are, and the one edge at which a source's failure becomes a value."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lookout.core.heads import Reading
from lookout.core.model import Answer, Check, Failed, Found
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.tables import KindTable, SourceTable

if TYPE_CHECKING:  # loads aiohttp, which reading a configuration does not need
    from lookout.protocols.client.session import Session

Settings = TypeVar("Settings", bound=KindTable)
Now = Callable[[], int]  # milliseconds since 1970


class Source(typing.Protocol):
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


class Endpoint(typing.Protocol):
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


@dataclass(frozen=True, slots=True)
class Protocol(Generic[Settings]):
    """One request and its answer. Any service whose answers are of this kind can be configured with it."""

    name: str
    answer: type[Answer]
    settings: type[Settings]
    request: Callable[[Settings], Request]
    parse: Callable[[bytes, Settings], Found]
    """ProbeFailed for what is not exactly as expected."""
    source: Callable[[OneRequest, Settings], Source] = lambda one, _: one
    """Makes the source of that request, where a probe takes more."""

    def sources(self, service: str, settings: Settings, _seen: SeenBroadcasters) -> tuple[Source, ...]:
        check = Check(service, settings.chain)
        parse = self.parse
        one = OneRequest(check.name, (check,), self.request(settings), lambda body: {check: parse(body, settings)})
        return (self.source(one, settings),)


@dataclass(frozen=True, slots=True)
class OwnTableProtocol:
    """A protocol that takes more than one request and its answer, with a table of its own and no ``kind``."""

    name: str
    answer: type[Answer]
    settings: type[SourceTable]
    sources: Callable[[str, Any, SeenBroadcasters], tuple[Source, ...]]
    """Given the service's name, the settings, and what was seen for it before a restart (M7)."""


AnyProtocol = Protocol[Any] | OwnTableProtocol


async def observe(source: Source, session: "Session", now: Now) -> Mapping[Check, Found]:
    """Probe a source; a failure is what was found for each of its checks."""
    try:
        return await source.probe(session, now)
    except ProbeFailed as failure:
        return dict.fromkeys(source.checks, Failed(failure.reason))
