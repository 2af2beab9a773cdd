"""A whole configuration as one frozen value, and checks across its tables."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from msgspec import defstruct, field
from msgspec.structs import fields

from lookout.base.problem import Problem
from lookout.base.setting_types import RESTART, Table
from lookout.base.sockets import can_be_asked
from lookout.base.url import fingerprint_url
from lookout.config.reader import TableReader
from lookout.config.services import OwnService, form_of
from lookout.config.tables import (
    UNNAMED,
    ChainTable,
    EdgeTable,
    HistoryTable,
    MonitorTable,
    PingTable,
    PolicyTable,
    ServerSettings,
)
from lookout.core.model import Check, Members
from lookout.core.plan import Plan
from lookout.core.services import PPOI, SERVICES, Service, all_services
from lookout.features.feature import Around, Feature
from lookout.features.registry import FEATURES
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, SeenBroadcasters
from lookout.protocols.broadcasters.source import BroadcastersSource
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.evm import EVM, EvmEndpoint
from lookout.protocols.lists import ListTable
from lookout.protocols.ppoi import PpoiTable, find_compared_lists
from lookout.protocols.registry import configurable_services, has_one_table, protocol_of
from lookout.protocols.source import Endpoint, Source


class _FixedSettings(ServerSettings, frozen=True):
    """The tables that are no feature's."""

    monitor: MonitorTable = MonitorTable()
    chains: tuple[ChainTable, ...] = ()
    sources: dict[str, tuple[SourceTable, ...]] = field(default_factory=dict)
    """The tables by service name, which is the key in the file."""
    services: tuple[OwnService, ...] = ()
    policy: PolicyTable = PolicyTable()
    history: HistoryTable = HistoryTable()
    edge: Annotated[EdgeTable, RESTART] = EdgeTable()


if TYPE_CHECKING:
    _WithFeatures = _FixedSettings
else:
    _WithFeatures = defstruct(
        "_WithFeatures",
        [(feature.key, feature.table, feature.table()) for feature in FEATURES if feature.key],
        bases=(_FixedSettings,),
        frozen=True,
    )


class Settings(_WithFeatures, frozen=True):
    """A whole configuration file, with the tables of the features. A service without tables is not configured (S14)."""

    ping: PingTable = PingTable()

    def plan(self) -> Plan:
        """The settings as the rules need them."""
        confirmations = {
            Check(service.name, table.chain): table.confirmations
            for service, table in self.tables()
            if service.needs_head and isinstance(table, KindTable)
        }
        return Plan(
            {chain.id: chain.pace() for chain in self.chains},
            frozenset(self.sources_by_check()),
            confirmations,
            self.policy.limits(),
            self.history.span(),
            tuple(own.service() for own in self.services),
            {check: fingerprint_url(table.address()) for check, table in self.sources_by_check().items()},
        )

    def all_services(self) -> tuple[Service, ...]:
        """Every service, in the report's order (R12)."""
        return all_services(own.service() for own in self.services)

    def tables(self) -> Iterator[tuple[Service, SourceTable]]:
        """All tables of sources, in the report's order of services (R12)."""
        for service in SERVICES:
            yield from ((service, table) for table in self.sources.get(service.name, ()))
        for own in self.services:
            yield from ((own.service(), table) for table in own.checks)

    def sources_by_check(self) -> dict[Check, SourceTable]:
        """Every monitored check, with the settings of the source that answers for it."""
        return {
            Check(service.name, chain_id): of_source
            for service, table in self.tables()
            for of_source in table.by_source()
            for chain_id in of_source.chain_ids()
        }

    def table_of(self, feature: type[Feature]) -> Any:
        """The feature's table, or None if it has none of its own."""
        return getattr(self, feature.key) if feature.key else None

    def warnings(self) -> Iterator[Problem]:
        yield from super().warnings()
        yield from (doubt.below("monitor") for doubt in self.monitor.warnings())
        for feature in FEATURES:
            yield from feature.warnings(self.table_of(feature), self.monitor.place)
        for number, chain in enumerate(self.chains):
            yield from (doubt.below(f"chains[{number}]") for doubt in chain.warnings())
        for name, tables in self.sources.items():
            for number, table in enumerate(tables):
                if isinstance(table, ListTable) and table.complete is not None:
                    yield from (doubt.below(f"{name}[{number}].complete") for doubt in table.complete.warnings())

    def check(self, absent: Collection[str] = ()) -> Iterator[Problem]:
        """Problems across the tables, except ``absent`` ones, which could not be read."""

        def are_there(*tables: str) -> bool:
            return not set(absent).intersection(tables)

        heartbeat_s = self.policy.heartbeat_s
        if are_there("policy", "history") and self.history.hold_s < heartbeat_s:
            why = f"which is {heartbeat_s:g}, or most of the time would not count"
            yield Problem("history.hold_s", f"has to be at least policy.heartbeat_s, {why}")
        if are_there("page", "services"):
            yield from self.check_page()
        if are_there(*SERVICES.names):
            yield from self._check_compared()
        for feature in FEATURES:
            if are_there(feature.key, "chains", "services", *SERVICES.names):
                monitored = frozenset(self.sources_by_check())
                yield from feature.check(self.table_of(feature), monitored, self.all_services())

    def _check_compared(self) -> Iterator[Problem]:
        for node in self.sources.get(PPOI, ()):
            if isinstance(node, PpoiTable) and node.agrees_with and not find_compared_lists(self.sources_by_check()):
                why = f'none of its chains has an [[{node.agrees_with}]] of kind "squid", whose list could be counted'
                yield Problem(f"{PPOI}.agrees_with", why)


class Upstreams(NamedTuple):
    """All that is asked."""

    sources: tuple[Source, ...]
    endpoints: tuple[Endpoint, ...]

    def seen(self) -> Mapping[str, SeenBroadcasters]:
        """What the sources of a service have to remember over a restart (M7), by service."""
        return {
            service.name: _join(source.seen for source in self._listening() if source.checks[0].service == service.name)
            for service in SERVICES
            if service.answer is Members
        }

    def resume(self, seen: Mapping[str, SeenBroadcasters]) -> None:
        """Before the first probe: go on with what was seen before a restart (M7)."""
        for source in self._listening():
            source.resume(seen.get(source.checks[0].service, NOTHING_SEEN))

    def _listening(self) -> list[BroadcastersSource]:
        return [source for source in self.sources if isinstance(source, BroadcastersSource)]


def upstreams_of(settings: Settings) -> Upstreams:
    """All sources and endpoints, before their first probe."""
    sources = (
        source for service, table in settings.tables() for source in protocol_of(table).sources(service.name, table)
    )
    endpoints = (
        EvmEndpoint(name, chain.id, rpc.url, rpc)
        for chain in settings.chains
        for name, rpc in zip(chain.endpoint_names(), chain.rpc, strict=True)
    )
    return Upstreams(tuple(sources), tuple(endpoints))


def around_of(settings: Settings, upstreams: Upstreams | None = None, config: str = "") -> Around:
    """The deployment as features need it; ``config`` is the file that messages name in commands."""
    sources, endpoints = upstreams or upstreams_of(settings)
    return Around(
        plan=settings.plan(),
        description=settings.description(),
        name=settings.page.title or (settings.protocol if settings.protocol != UNNAMED else ""),
        tables=settings.sources_by_check(),
        sources=sources,
        endpoints=endpoints,
        place=settings.monitor.place,
        has_admin_port=can_be_asked(settings.admin.monitor),
        config=config,
    )


def _join(parts: Iterable[SeenBroadcasters]) -> SeenBroadcasters:
    seen = tuple(parts)
    return SeenBroadcasters(
        tuple(sighting for part in seen for sighting in part.sightings),
        {chain_id: at for part in seen for chain_id, at in part.asked_at.items()},
    )


def read_settings(tables: Mapping[str, Any], reader: TableReader) -> Settings:
    """The settings in a file, as far as they could be read; the reader has the problems."""
    keys = {key.encode_name: key for key in fields(Settings) if key.name != "sources"}
    services = {service.name: service for service in configurable_services()}
    reader.report_unknown(tables, [*keys, *services], "")
    read: dict[str, Any] = {}
    sources: dict[str, tuple[SourceTable, ...]] = {}
    absent = set()
    for name, value in tables.items():
        gaps = reader.gaps
        if name in keys and (found := reader.read_key(keys[name].type, value, name)) is not None:
            read[name] = found
        elif name in services and (rows := _read_rows(services[name], value, reader)) is not None:
            sources[name] = rows
        if reader.gaps != gaps:
            absent.add(name)
    settings = Settings(**read, sources=sources)
    reader.add_problems(settings.check(absent))
    reader.add_problems(_check_duplicates(reader.tables))
    reader.add_problems(_check_endpoints(reader.tables))
    if "chains" not in absent:
        known = {chain.id for chain in settings.chains}
        unknown = ((key, chain_id) for key, chain_id in reader.named_chains if chain_id not in known)
        reader.add_problems(Problem(key, f"there is no chain {chain_id} in [[chains]]") for key, chain_id in unknown)
    return settings


def _read_rows(service: Service, value: Any, reader: TableReader) -> tuple[SourceTable, ...] | None:
    form = form_of(service)
    if not has_one_table(service):
        return reader.read_rows(form, value, service.name)
    table = reader.read_table(form, value, service.name)
    return None if table is None else (table,)


def _check_duplicates(tables: Mapping[str, Table]) -> Iterator[Problem]:
    """Duplicates among the tables that could be read, by their keys."""
    identities: dict[str, list[str]] = {}  # by the key of the list
    for key, table in tables.items():
        list_key = key.rpartition("[")[0]
        match table:
            case ChainTable():
                identities.setdefault(list_key, []).append(f"{table.id}")
            case OwnService():
                identities.setdefault(list_key, []).append(table.name)
            case KindTable() if table.chain is not None:
                identities.setdefault(list_key, []).append(f"chain {table.chain}")
    for key, named in identities.items():
        yield from (
            Problem(key, f"{identity} is listed twice") for identity, times in Counter(named).items() if times > 1
        )


def _check_endpoints(tables: Mapping[str, Table]) -> Iterator[Problem]:
    """Checks of nodes and lists against the endpoints."""
    chains = {table.id: table for table in tables.values() if isinstance(table, ChainTable)}
    for key, table in tables.items():
        if not isinstance(table, KindTable) or table.chain not in chains:
            continue
        chain = chains[table.chain]
        # A node that is one of two endpoints is never behind their agreed head (M8).
        if table.kind == EVM.name and not chain.outvotes(table.url):
            what = "is an rpc endpoint of the chain as well, which has fewer than three"
            yield Problem(f"{key}.url", f"{what}: it would be compared with itself")
        # The chain's logs count only if this many endpoints agree (S17).
        complete = table.complete if isinstance(table, ListTable) else None
        if complete is not None and complete.endpoints > (has := len(chain.rpc)):
            what = f"is {complete.endpoints}, and chain {chain.id} has {has} rpc endpoint{'s' * (has != 1)}"
            yield Problem(f"{key}.complete.endpoints", f"{what}; name more of them, or lower it")
