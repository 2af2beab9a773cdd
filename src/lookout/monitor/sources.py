"""The sources and endpoints that the settings name."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, assert_never

from lookout.config.settings import Settings
from lookout.core.model import Check, Found
from lookout.protocols import json_pointer, ponder, squid, subgraph
from lookout.protocols.broadcasters.sightings import NOTHING_SEEN, Seen
from lookout.protocols.broadcasters.source import BroadcastersSource, broadcasters_sources
from lookout.protocols.client.session import Request
from lookout.protocols.evm import EvmEndpoint
from lookout.protocols.messaging import MessagingSource
from lookout.protocols.ppoi import ppoi_source
from lookout.protocols.settings import Indexer
from lookout.protocols.source import Endpoint, OneRequest, Source


class Built(NamedTuple):
    sources: tuple[Source, ...]
    endpoints: tuple[Endpoint, ...]


def sources_of(settings: Settings, seen: Seen = NOTHING_SEEN) -> Built:
    """All of them, none of which has done anything yet. ``seen`` is what ``seen_by`` gave before a restart (M7)."""
    sources: list[Source] = []
    if settings.messaging is not None:
        sources.append(MessagingSource(settings.messaging))
    if settings.ppoi is not None:
        sources.append(ppoi_source(settings.ppoi))
    if settings.broadcasters is not None:
        sources.extend(broadcasters_sources(settings.broadcasters, seen))
    sources.extend(indexer_source("indexer", indexer) for indexer in settings.indexer)
    sources.extend(indexer_source("hosted-indexer", indexer) for indexer in settings.hosted_indexer)
    endpoints = (
        EvmEndpoint(f"rpc {number} of {chain.name}", chain.id, url)
        for chain in settings.chains
        for number, url in enumerate(chain.rpc, 1)
    )
    return Built(tuple(sources), tuple(endpoints))


def seen_by(sources: Iterable[Source]) -> Seen:
    """What the sources have to be given back after a restart (M7)."""
    seen = [source.seen for source in sources if isinstance(source, BroadcastersSource)]
    return Seen(
        tuple(sighting for each in seen for sighting in each.sightings),
        {chain_id: at for each in seen for chain_id, at in each.asked_at.items()},
        {chain_id: unread for each in seen for chain_id, unread in each.unread.items()},
    )


def indexer_source(service: str, settings: Indexer) -> OneRequest:
    check = Check(service, settings.chain)
    request, parse = _indexer_protocol(settings)
    return OneRequest(f"{service} {settings.chain}", (check,), request, lambda body: {check: parse(body)})


def _indexer_protocol(settings: Indexer) -> tuple[Request, Callable[[bytes], Found]]:
    url, headers = settings.url, settings.headers
    match settings.kind:
        case "squid":
            return Request("POST", url, headers, squid.QUERY), squid.parse_status
        case "subgraph" if settings.deployment:
            query = subgraph.status_query(settings.deployment)
            return Request("POST", url, headers, query), subgraph.parse_indexing_status
        case "subgraph":
            return Request("POST", url, headers, subgraph.META_QUERY), subgraph.parse_meta
        case "ponder":
            parse = partial(ponder.parse_status, chain_id=settings.chain)
            return Request("GET", ponder.status_url(url), headers), parse
        case "json":
            return Request("GET", url, headers), partial(json_pointer.parse_document, pointer=settings.pointer)
        case _ as never:
            assert_never(never)
