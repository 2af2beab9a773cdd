"""A whole configuration as one frozen value, and checks across its tables."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import field
from msgspec.structs import fields

from lookout.alerts.event import AlertPolicy, Deployment
from lookout.base.problem import Problem
from lookout.base.setting_types import RESTART, Table
from lookout.base.sockets import can_be_asked
from lookout.base.url import fingerprint_url
from lookout.config.alerts import AlertsTable, rules_without_rows, store_rule
from lookout.config.reader import TableReader, has_note
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
    in_ms,
)
from lookout.core.episodes import EpisodeRules, endpoint_check, source_check
from lookout.core.model import Check, Members
from lookout.core.plan import Plan
from lookout.core.services import PPOI, SERVICES, Service, all_services
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, SeenBroadcasters
from lookout.protocols.broadcasters.source import BroadcastersSource
from lookout.protocols.client.request import KindTable, SourceTable
from lookout.protocols.evm import EVM, EvmEndpoint
from lookout.protocols.lists import LinkedList, ListTable, TransactionList
from lookout.protocols.ppoi import PpoiTable
from lookout.protocols.registry import configurable_services, has_one_table, protocol_of
from lookout.protocols.source import Endpoint, Source
from lookout.protocols.squid import SquidTable


class Settings(ServerSettings, frozen=True):
    """A whole configuration file. A service without tables is not configured (S14)."""

    monitor: MonitorTable = MonitorTable()
    chains: tuple[ChainTable, ...] = ()
    sources: dict[str, tuple[SourceTable, ...]] = field(default_factory=dict)
    """The tables by service name, which is the key in the file."""
    services: tuple[OwnService, ...] = ()
    policy: PolicyTable = PolicyTable()
    history: HistoryTable = HistoryTable()
    edge: Annotated[EdgeTable, RESTART] = EdgeTable()
    alerts: AlertsTable = AlertsTable()
    ping: PingTable = PingTable()

    @classmethod
    def applied_by_reload(cls) -> frozenset[str]:
        """The tables whose changes need no restart."""
        return frozenset(key.encode_name for key in fields(cls) if not has_note(key.type, RESTART))

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

    def transaction_lists(self) -> dict[Check, TransactionList]:
        """The list of every check whose indexer's list is compared with the chain's logs (S17)."""
        return {
            Check(service.name, table.chain): listed
            for service, table in self.tables()
            if isinstance(table, ListTable) and (listed := table.transaction_list()) is not None
        }

    def linked_lists(self) -> dict[Check, LinkedList]:
        """The list of every check whose running hash is checked (S20)."""
        return {
            Check(service.name, table.chain): listed
            for service, table in self.tables()
            if isinstance(table, ListTable) and (listed := table.linked_list()) is not None
        }

    def counted_lists(self) -> dict[Check, tuple[Check, SquidTable]]:
        """For each ppoi check with ``agrees_with``: the indexer's check and table, whose entries are counted (S21)."""
        sources = self.sources_by_check()
        counted = {}
        for check, node in sources.items():
            if isinstance(node, PpoiTable) and node.agrees_with:
                indexer = Check(node.agrees_with, check.chain_id)
                table = sources.get(indexer)
                if isinstance(table, SquidTable):
                    counted[check] = indexer, table
        return counted

    def alert_policy(self, config: str = "") -> AlertPolicy:
        """The tables of alerts as the monitor needs them; ``config`` is the file that messages name in commands."""
        plan, alerts = self.plan(), self.alerts
        rules = tuple(built for rule in alerts.rules for built in rule.build(plan.monitored, alerts.targets))
        others = (*self.endpoint_checks(), *self.source_checks())
        rules += tuple(rule.build_without_rows(others, alerts.targets) for rule in rules_without_rows(alerts.rules))
        rules += (store_rule(alerts.targets),)
        return AlertPolicy(
            EpisodeRules(rules, in_ms(alerts.group_s), plan.span.hold_ms),
            alerts.targets,
            in_ms(alerts.give_up_s),
            Deployment(
                {chain.id: chain.name for chain in self.chains},
                tuple(service.name for service in self.all_services()),
                self.page.title or (self.protocol if self.protocol != UNNAMED else ""),
                self.page.operator,
                alerts.link,
                can_be_asked(self.admin.monitor),
                config,
                {own.name: own.effect for own in self.services if own.effect},
            ),
        )

    def endpoint_checks(self) -> list[Check]:
        """Pseudo-checks, by which RPC endpoints have episodes."""
        return [endpoint_check(name, chain.id) for chain in self.chains for name in chain.endpoint_names()]

    def source_checks(self) -> list[Check]:
        """Pseudo-checks, by which sources have episodes of their own."""
        return [source_check(source.name, source.checks) for source in upstreams_of(self).sources]

    def warnings(self) -> Iterator[Problem]:
        yield from super().warnings()
        yield from (doubt.below("monitor") for doubt in self.monitor.warnings())
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
            yield from self._check_counted()
        if are_there("alerts", "chains", "services", *SERVICES.names):
            yield from self._check_rules()

    def _check_counted(self) -> Iterator[Problem]:
        for node in self.sources.get(PPOI, ()):
            if isinstance(node, PpoiTable) and node.agrees_with and not self.counted_lists():
                why = f'none of its chains has an [[{node.agrees_with}]] of kind "squid", whose list could be counted'
                yield Problem(f"{PPOI}.agrees_with", why)

    def _check_rules(self) -> Iterator[Problem]:
        monitored = frozenset(self.sources_by_check())
        shared = {service.name for service in self.all_services() if service.is_shared}
        for number, rule in enumerate(self.alerts.rules):
            key = f"alerts.rules[{number}]"
            unknown = list(self.check_names(f"{key}.services", rule.services))
            matching = (problem.below(key) for problem in rule.check_matches(monitored, shared))
            yield from unknown or matching


class Upstreams(NamedTuple):
    """All that is asked."""

    sources: tuple[Source, ...]
    endpoints: tuple[Endpoint, ...]

    def seen(self) -> Mapping[str, SeenBroadcasters]:
        """What the sources of a service have to remember over a restart (M7), by service."""
        listening = [source for source in self.sources if isinstance(source, BroadcastersSource)]
        return {
            service.name: _join(source.seen for source in listening if source.checks[0].service == service.name)
            for service in SERVICES
            if service.answer is Members
        }


def upstreams_of(settings: Settings, seen: Mapping[str, SeenBroadcasters] = {}) -> Upstreams:
    """All sources and endpoints, before their first probe. ``seen`` is what they had seen before a restart (M7)."""
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
    return Upstreams(tuple(sources), tuple(endpoints))


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
