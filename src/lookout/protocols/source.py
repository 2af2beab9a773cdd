"""The interfaces of protocols and sources, and where a source's failure becomes a value."""

import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lookout.core.heads import Reading
from lookout.core.model import Answer, Check, Failed, Found
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import KindTable, Request, SourceTable

if TYPE_CHECKING:  # loads ssl and urllib, which reading a configuration does not need
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
        """The checks that it answers for."""

    async def probe(self, session: "Session", now: Now, /) -> Mapping[Check, Found]:
        """Ask once, within the session's time (M3), and return the result for every check.

        ProbeFailed if all checks failed, OwnFault if a local resource ran out. If only one chain's answer fails, the
        failure is among the results.
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
    """A source that needs one request for all its checks."""

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
    """ProbeFailed for any answer of another form."""
    source: Callable[[OneRequest, Settings], Source] = lambda one, _: one
    """Makes the source, if a probe needs more than the request."""

    def sources(self, service: str, settings: Settings) -> tuple[Source, ...]:
        check = Check(service, settings.chain)
        parse = self.parse
        one = OneRequest(check.name, (check,), self.request(settings), lambda body: {check: parse(body, settings)})
        return (self.source(one, settings),)


@dataclass(frozen=True, slots=True)
class OwnTableProtocol:
    """A protocol with several requests per probe, and with its own table without ``kind``."""

    name: str
    answer: type[Answer]
    settings: type[SourceTable]
    sources: Callable[[str, Any], tuple[Source, ...]]
    """From the service's name and the settings."""


AnyProtocol = Protocol[Any] | OwnTableProtocol


async def observe(source: Source, session: "Session", now: Now) -> Mapping[Check, Found]:
    """Probe a source; its failure becomes the result of all its checks."""
    try:
        return await source.probe(session, now)
    except ProbeFailed as failure:
        return dict.fromkeys(source.checks, Failed(failure.reason))
