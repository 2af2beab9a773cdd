"""What a protocol is: one value that says how a third party is configured, asked and understood."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lookout.core.model import Answer, Check, Found
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.request import Request
from lookout.protocols.source import OneRequest, Source
from lookout.protocols.tables import KindTable, SourceTable

Settings = TypeVar("Settings", bound=KindTable)


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
