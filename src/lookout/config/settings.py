"""A whole configuration as one frozen value, and what its tables can get wrong together."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, defstruct, field
from msgspec.structs import fields

from lookout.alerts.deployment import Deployment
from lookout.alerts.policy import AlertPolicy
from lookout.base.problem import UNREAD, Problem, run_checks
from lookout.base.setting_types import Table
from lookout.base.sockets import can_be_asked
from lookout.base.text import shorten
from lookout.base.url import fingerprint_url
from lookout.config.alerts import AlertRule, AlertsTable
from lookout.config.own_services import OwnService, type_of_own_services
from lookout.config.server_settings import ServerSettings
from lookout.config.source_tables import type_of_tables
from lookout.config.tables import (
    AdminTable,
    ChainTable,
    EdgeTable,
    HistoryTable,
    LogTable,
    MonitorTable,
    PageTable,
    PingTable,
    PolicyTable,
    ServerTable,
    StoreTable,
    in_ms,
)
from lookout.core.episodes import EpisodeRules
from lookout.core.model import Check
from lookout.core.plan import Plan
from lookout.core.services import SERVICES, Service, all_services
from lookout.protocols.evm import EVM
from lookout.protocols.lists import ListTable, TransactionList
from lookout.protocols.registry import configurable_services, has_one_table
from lookout.protocols.tables import KindTable, SourceTable
from lookout.public.about import ChainDescription, Description, ServiceDescription

Value = TypeVar("Value", int, str)
_UNNAMED: Final = "protocol"  # where none is named
SEGMENT: Final = "a text of letters, digits and . _ ~ - that is neither . nor .."


class Settings(Table, frozen=True):
    """A whole configuration file. A service whose tables are left out is not configured (S14)."""

    protocol: Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[A-Za-z0-9._~-]+\Z", description=SEGMENT)] = _UNNAMED
    server: ServerTable = ServerTable()
    admin: AdminTable = AdminTable()
    log: LogTable = LogTable()
    store: StoreTable = StoreTable()
    monitor: MonitorTable = MonitorTable()
    chains: tuple[ChainTable, ...] = ()
    sources: dict[str, tuple[SourceTable, ...]] = field(default_factory=dict)
    """By the service's name, its tables."""
    services: tuple[OwnService, ...] = ()
    policy: PolicyTable = PolicyTable()
    history: HistoryTable = HistoryTable()
    edge: EdgeTable = EdgeTable()
    page: PageTable = PageTable()
    alerts: AlertsTable = AlertsTable()
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

    def for_server(self) -> ServerSettings:
        """The settings without what only a monitor needs: no key of an upstream or a target, and no right to write if
        reading has an address of its own."""
        return ServerSettings(
            self.protocol,
            self.server,
            AdminTable("", self.admin.server, self.admin.hosts),
            self.log,
            self.description(),
            self.store.read_url or self.store.url,
            reads_as_writer=not self.store.read_url,
        )

    def description(self) -> Description:
        """What the public is to know about this deployment."""
        page = self.page
        return Description(
            self.protocol,
            tuple(ChainDescription(chain.id, chain.name, chain.test_network) for chain in self.chains),
            tuple(ServiceDescription(name, title, name in page.run_by_others) for name, title in self._titles()),
            page.title or self.protocol,
            page.operator,
            page.contact,
            page.show_unmonitored,
        )

    def _titles(self) -> Iterator[tuple[str, str]]:
        """The name and title of every service. A server knows this much of one whose kind it does not look up."""
        yield from ((each.name, each.title) for each in SERVICES)
        yield from ((own.name, own.shown_title) for own in self.services)

    def all_services(self) -> tuple[Service, ...]:
        """Every service, in the report's order (R12)."""
        return all_services(own.service() for own in self.services)

    def tables(self) -> Iterator[tuple[Service, SourceTable]]:
        """All that names something to watch, in the report's order of the services (R12)."""
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

    def alert_policy(self, config: str = "") -> AlertPolicy:
        """The tables of alerts as the monitor needs them; ``config`` is the file that messages name in commands."""
        plan, alerts = self.plan(), self.alerts
        rules = tuple(each for rule in alerts.rules for each in rule.build(plan.monitored, alerts.targets))
        return AlertPolicy(
            EpisodeRules(rules, in_ms(alerts.group_s), plan.span.hold_ms),
            alerts.targets,
            in_ms(alerts.give_up_s),
            Deployment(
                {chain.id: chain.name for chain in self.chains},
                tuple(service.name for service in self.all_services()),
                self.page.title or (self.protocol if self.protocol != _UNNAMED else ""),
                self.page.operator,
                alerts.link,
                can_be_asked(self.admin.monitor),
                config,
            ),
        )

    def warnings(self) -> Iterator[Problem]:
        """What is allowed, and may still not be what is wanted."""
        for number, chain in enumerate(self.chains):
            yield from (each.below(f"chains[{number}]") for each in chain.warnings())
        for name in _repeated(chain.name for chain in self.chains):
            yield Problem("chains", f"several are named {name}, so people cannot tell them apart")
        for title in _repeated(service.title for service in self.all_services()):
            yield Problem("services", f"several have the title {title}, so people cannot tell them apart")
        for key, table in self._kind_tables():
            if isinstance(table, ListTable) and table.complete is not None:
                yield from (each.below(f"{key}.complete") for each in table.complete.warnings())
        yield from (each.below("store") for each in self.store.warnings())

    def validate(self) -> Iterable[Iterable[Problem]]:
        return (
            self._check_chains_differ(),
            self._check_endpoints_differ(),
            *(self._check_named_chains(key, named) for key, named in self._named_chains()),
            self._check_chains_of_own_services(),
            self._check_services_differ(),
            self._check_compared_with_others(),
            self._check_endpoints_suffice(),
            self._check_admin_port(),
            self._check_hold(),
            self._check_run_by_others(),
            self._check_chains_of_rules(),
            self._check_rules_match(),
        )

    def _named_chains(self) -> Iterable[tuple[str, Callable[[], Iterable[int]]]]:
        """Every key that names chains of [[chains]], and which."""
        written = {service: self.sources[service.name] for service in SERVICES if service.name in self.sources}
        for service, tables in written.items():
            if not has_one_table(service):
                yield service.name, partial(_chain_ids, tables)
        for service, tables in written.items():
            if has_one_table(service) and tables is not UNREAD:
                yield from ((f"{service.name}.{key}", named) for key, named in tables[0].named_chains())

    def _check_named_chains(self, key: str, named: Callable[[], Iterable[int]]) -> Iterator[Problem]:
        chains = list(named())
        yield from (Problem(key, f"chain {chain_id} is there twice") for chain_id in _repeated(chains))
        known = {chain.id for chain in self.chains}
        unknown = (chain_id for chain_id in dict.fromkeys(chains) if chain_id not in known)
        yield from (Problem(key, f"there is no chain {chain_id} in [[chains]]") for chain_id in unknown)

    def _check_chains_differ(self) -> Iterator[Problem]:
        repeated = _repeated(chain.id for chain in self.chains)
        yield from (Problem("chains", f"{chain_id} is there twice") for chain_id in repeated)

    def _check_endpoints_differ(self) -> Iterator[Problem]:
        """Three of which two are one would let that one lie (M8)."""
        yield from run_checks(_same_endpoints(f"chains[{n}].rpc", chain) for n, chain in enumerate(self.chains))

    def _check_services_differ(self) -> Iterator[Problem]:
        repeated = _repeated(own.name for own in self.services)
        yield from (Problem("services", f"{name} is there twice") for name in repeated)

    def _check_compared_with_others(self) -> Iterator[Problem]:
        """A node that is one of two endpoints is always as far as what they agree on (M8)."""
        chains = {chain.id: chain for chain in self.chains}
        nodes = ((key, table) for key, table in self._kind_tables() if table.kind is not UNREAD)
        yield from run_checks(_check_outvoted(key, table, chains) for key, table in nodes if table.kind == EVM.name)

    def _check_endpoints_suffice(self) -> Iterator[Problem]:
        """The chain's logs count only if so many endpoints give the same (S17)."""
        chains = {chain.id: chain for chain in self.chains}
        yield from run_checks(_check_enough(key, table, chains) for key, table in self._kind_tables())

    def _kind_tables(self) -> Iterator[tuple[str, KindTable]]:
        """Every table that has a kind, by its key."""
        written = {service.name: self.sources.get(service.name, ()) for service in SERVICES}
        own = (each for each in enumerate(self.services) if each[1] is not UNREAD)
        written |= {f"services[{number}].checks": service.checks for number, service in own}
        for key, tables in written.items():
            for number, table in enumerate(() if tables is UNREAD else tables):
                if isinstance(table, KindTable):
                    yield f"{key}[{number}]", table

    def _check_hold(self) -> Iterator[Problem]:
        heartbeat_s, hold_s = self.policy.heartbeat_s, self.history.hold_s
        if hold_s < heartbeat_s:
            what = (
                f"has to be at least policy.heartbeat_s, which is {heartbeat_s:g}, or most of the time would not count"
            )
            yield Problem("history.hold_s", what)

    def _check_run_by_others(self) -> Iterator[Problem]:
        yield from self._check_named_services("page.run_by_others", self.page.run_by_others)

    def _check_named_services(self, key: str, named: Iterable[str]) -> Iterator[Problem]:
        known = dict.fromkeys((*SERVICES.names, *(own.name for own in self.services)))
        for name in dict.fromkeys(named):
            if name not in known:
                what = "an address" if "://" in name else json.dumps(shorten(name, 60))
                yield Problem(key, f"there is no service {what}; there are {', '.join(known)}")

    def _check_admin_port(self) -> Iterator[Problem]:
        is_any_port = not self.server.listen.rpartition(":")[2].strip("0")  # another one each time
        if self.admin.server == self.server.listen and not is_any_port:
            yield Problem("admin.server", "has to be another address than server.listen")

    def _check_chains_of_rules(self) -> Iterator[Problem]:
        yield from run_checks(
            self._check_named_chains(f"alerts.rules[{number}].chains", partial(getattr, rule, "chains"))
            for number, rule in enumerate(self.alerts.rules)
        )

    def _check_chains_of_own_services(self) -> Iterator[Problem]:
        yield from run_checks(
            self._check_named_chains(f"services[{number}].checks", partial(OwnService.chain_ids, own))
            for number, own in enumerate(self.services)
        )

    def _check_rules_match(self) -> Iterator[Problem]:
        monitored = frozenset(self.sources_by_check())
        known = {chain.id for chain in self.chains}
        shared = {service.name for service in self.all_services() if service.is_shared}
        for number, rule in enumerate(self.alerts.rules):
            found = run_checks([self._check_rule(rule, monitored, known, shared)])
            yield from (each.below(f"alerts.rules[{number}]") for each in found)

    def _check_rule(
        self, rule: AlertRule, monitored: Collection[Check], chain_ids: Collection[int], shared: Collection[str]
    ) -> Iterator[Problem]:
        unknown = list(self._check_named_services("services", rule.services))
        yield from unknown or rule.check_matches(monitored, chain_ids, shared)


class _File(Table, frozen=True):
    """A configuration as it is written: in the place of ``sources`` are the tables of every service."""

    def normalise(self) -> Settings:
        keys = {each.encode_name: getattr(self, each.name) for each in fields(self)}
        written = {service.name: keys.pop(service.name) for service in configurable_services()}
        return Settings(**keys, sources={name: _as_rows(each) for name, each in written.items() if each is not None})

    def validate(self) -> Iterable[Iterable[Problem]]:
        return self.normalise().validate()


def type_of_file() -> type[_File]:
    """The type of a file, with the services and protocols that are declared now."""
    keys: list[Any] = []
    for each in fields(Settings):
        if each.name == "sources":
            for service in configurable_services():
                name = service.name.replace("-", "_")
                keys.append((name, type_of_tables(service), field(default=None, name=service.name)))
        elif each.name == "services":
            keys.append((each.name, type_of_own_services(), ()))
        else:
            keys.append((each.name, each.type, each.default))
    file: type[Any] = defstruct("File", keys, bases=(_File,), frozen=True)
    return file


def _as_rows(read: Any) -> Any:
    return read if read is UNREAD or isinstance(read, tuple) else (read,)


def _chain_ids(tables: Iterable[SourceTable]) -> list[int]:
    return [chain_id for table in tables for chain_id in table.chain_ids() if chain_id is not None]


def _same_endpoints(key: str, chain: ChainTable) -> Iterator[Problem]:
    for second, first in chain.same_endpoints():
        what = f"is the same endpoint as {key}[{first}]; name another one, or leave it out"
        yield Problem(f"{key}[{second}]", what)


def _check_outvoted(key: str, table: KindTable, chains: Mapping[int, ChainTable]) -> Iterator[Problem]:
    chain = None if table.chain is None else chains.get(table.chain)
    if chain is not None and not chain.outvotes(table.url):
        what = "is an rpc endpoint of the chain as well, which has fewer than three"
        yield Problem(f"{key}.url", f"{what}: it would be compared with itself")


def _check_enough(key: str, table: KindTable, chains: Mapping[int, ChainTable]) -> Iterator[Problem]:
    complete = table.complete if isinstance(table, ListTable) else None
    chain = None if table.chain is None else chains.get(table.chain)
    if complete is not None and chain is not None and complete.endpoints > (has := len(chain.rpc)):
        what = f"is {complete.endpoints}, and chain {chain.id} has {has} rpc endpoint{'s' * (has != 1)}"
        yield Problem(f"{key}.complete.endpoints", f"{what}; name more of them, or lower it")


def _repeated(values: Iterable[Value]) -> list[Value]:
    return [value for value, times in Counter(values).items() if times > 1]
