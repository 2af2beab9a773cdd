"""Every protocol that sources can be configured with."""

from collections.abc import Iterable
from typing import Final

from lookout.core.services import SERVICES, Registry, Service
from lookout.protocols.broadcasters.source import BROADCASTERS
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.envio import ENVIO
from lookout.protocols.evm import EVM
from lookout.protocols.generic import HTTP, JSON, JSONRPC
from lookout.protocols.messaging import MESSAGING
from lookout.protocols.plugins import PluginError, load_protocol
from lookout.protocols.ponder import PONDER
from lookout.protocols.ppoi import PPOI
from lookout.protocols.source import AnyProtocol, OwnTableProtocol, Protocol
from lookout.protocols.squid import SQUID
from lookout.protocols.subgraph import SUBGRAPH

PROTOCOLS: Final[Registry[AnyProtocol]] = Registry(
    *(PPOI, SQUID, SUBGRAPH, PONDER, ENVIO, JSON, EVM, MESSAGING, BROADCASTERS, HTTP, JSONRPC)
)


def load_plugins(kinds: Iterable[str]) -> dict[str, str]:
    """Declare the other packages' protocols that these kinds name; returns why unusable ones cannot be used."""
    errors = {}
    for kind in dict.fromkeys(kinds):
        if kind not in PROTOCOLS:
            try:
                PROTOCOLS.add(load_protocol(kind))
            except PluginError as error:
                errors[kind] = str(error)
    return errors


def configurable_services() -> list[Service]:
    answers = {protocol.answer for protocol in PROTOCOLS}
    return [service for service in SERVICES if service.answer in answers]


def kinds_for(service: Service) -> list[Protocol[KindTable]]:
    return [protocol for protocol in all_kinds() if protocol.answer is service.answer]


def all_kinds() -> list[Protocol[KindTable]]:
    return [protocol for protocol in PROTOCOLS if isinstance(protocol, Protocol)]


def own_table_for(service: Service) -> OwnTableProtocol | None:
    own = [protocol for protocol in PROTOCOLS if isinstance(protocol, OwnTableProtocol)]
    return next((protocol for protocol in own if protocol.answer is service.answer), None)


def has_one_table(service: Service) -> bool:
    """Whether a service is configured by one table, ``[name]``, and not by one per chain, ``[[name]]``."""
    return service.is_shared or own_table_for(service) is not None


def protocol_of(table: SourceTable) -> AnyProtocol:
    if isinstance(table, KindTable):
        return PROTOCOLS[table.kind]
    return next(protocol for protocol in PROTOCOLS if protocol.settings is type(table))
