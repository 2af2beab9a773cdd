"""The sources and endpoints that the settings name."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lookout.config.settings import Settings
from lookout.core.model import Members
from lookout.core.services import SERVICES
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, SeenBroadcasters
from lookout.protocols.broadcasters.source import BroadcastersSource
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.registry import protocol_of
from lookout.protocols.source import Endpoint, Source


class Built(NamedTuple):
    sources: tuple[Source, ...]
    endpoints: tuple[Endpoint, ...]


def sources_of(settings: Settings, seen: Mapping[str, SeenBroadcasters] = {}) -> Built:
    """All sources and endpoints, before their first probe. ``seen`` comes from ``seen_by`` before a restart (M7)."""
    sources = (
        source
        for service, table in settings.tables()
        for source in protocol_of(table).sources(service.name, table, seen.get(service.name, NOTHING_SEEN))
    )
    endpoints = (
        EvmEndpoint(name, chain.id, rpc.url, rpc)
        for chain in settings.chains
        for name, rpc in zip(chain.endpoint_names(), chain.rpc, strict=True)
    )
    return Built(tuple(sources), tuple(endpoints))


def seen_by(sources: Iterable[Source]) -> dict[str, SeenBroadcasters]:
    """What the sources of a service have to remember over a restart (M7), by service."""
    listening = [source for source in sources if isinstance(source, BroadcastersSource)]
    return {
        service.name: _join(source.seen for source in listening if source.checks[0].service == service.name)
        for service in SERVICES
        if service.answer is Members
    }


def _join(parts: Iterable[SeenBroadcasters]) -> SeenBroadcasters:
    seen = tuple(parts)
    return SeenBroadcasters(
        tuple(sighting for part in seen for sighting in part.sightings),
        {chain_id: at for part in seen for chain_id, at in part.asked_at.items()},
    )
