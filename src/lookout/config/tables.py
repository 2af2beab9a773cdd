"""The tables of a configuration file, except sources', with the keys' launch values, and a server's part of them."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from msgspec import Meta
from msgspec.structs import fields, replace

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.base.problem import Problem
from lookout.base.setting_types import (
    NOT_EMPTY,
    RESTART,
    SECRET,
    AdminAddress,
    Duration,
    DurationOrZero,
    Former,
    HostPort,
    HostPortOrNone,
    Line,
    Name,
    NameOrNone,
    Natural,
    Networks,
    Positive,
    Table,
    Text,
    Url,
    UrlOrNone,
    ValueRule,
    in_ms,
    must,
)
from lookout.base.url import find_url_mistake
from lookout.config.reader import find_note
from lookout.core.heads import Pace
from lookout.core.plan import Limits, Span
from lookout.core.services import OWN_NAME, SERVICES, find_unknown_services, make_title
from lookout.protocols.client.request import AccessTable
from lookout.public.about import ChainDescription, Description, ServiceDescription
from lookout.store.kinds import ADDRESS_FORM, KINDS, find_kind
from lookout_reader.rollup import TEST_NETWORK

_WITH_READ_URL: Final = tuple(kind for kind in KINDS if kind.name_database is not None)
_TO_OUTVOTE_ONE: Final = 3  # endpoints of a chain (M8)


def find_former_keys(table: Table) -> Iterator[Problem]:
    """The keys of earlier versions that are still written."""
    for key in fields(table):
        former = find_note(key.type, Former)
        if former is not None and getattr(table, key.name) is not None:
            yield Problem(key.name, f"is not used any more: {former.advice}")


class ServerTable(Table, frozen=True):
    listen: HostPort = "127.0.0.1:8080"
    workers: Annotated[Any, Former("a server is one process; docs/scale.md says how to run several")] = None
    rate_limit_per_minute: Natural = 120
    trusted_proxies: Networks = ()
    connections_per_address: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    history_unreadable_s: Duration = 300
    ban_s: Duration = 60

    def warnings(self) -> Iterator[Problem]:
        return find_former_keys(self)


class AdminTable(Table, frozen=True):
    monitor: AdminAddress = "127.0.0.1:9464"
    server: AdminAddress = "127.0.0.1:9465"
    hosts: tuple[Text, ...] = ()


class LogTable(Table, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class StoreTable(Table, frozen=True):
    url: Annotated[
        str,
        SECRET,
        Meta(min_length=1),
        must(lambda url: find_kind(url) is not None, f"has to {ADDRESS_FORM}"),
    ] = "sqlite:lookout.db"
    read_url: Annotated[
        str,
        SECRET,
        NOT_EMPTY,
        must(
            lambda url: not url or find_kind(url) in _WITH_READ_URL,
            f"has to {' or '.join(kind.form for kind in _WITH_READ_URL)};"
            f" a {' or '.join(kind.title for kind in KINDS if kind not in _WITH_READ_URL)} file is read"
            " where store.url names it",
        ),
    ] = ""

    def check(self) -> Iterator[Problem]:
        kind = find_kind(self.read_url)
        if kind is None or kind.name_database is None:
            return
        if find_kind(self.url) is not kind:
            yield Problem("read_url", f"is for {kind.title} alone, and store.url names something else")
        elif len({kind.name_database(self.url), kind.name_database(self.read_url)} - {""}) > 1:
            yield Problem("read_url", "names another database than store.url")

    def warnings(self) -> Iterator[Problem]:
        if find_kind(self.url) in _WITH_READ_URL and not self.read_url:
            why = "so servers hold an address that may write; name one of a role that only reads"
            yield Problem("read_url", f"is not set, {why}")


class MonitorTable(Table, frozen=True):
    record: str = ""
    record_max_mb: Positive = 256


class RpcEndpoint(AccessTable, frozen=True):
    """A text alone is the address."""

    text_key: ClassVar[str] = "url"
    url: Url
    name: Annotated[NameOrNone, SECRET] = ""  # may by mistake hold the address


class NamedChain(Table, frozen=True, kw_only=True):
    """What a server uses of ``[[chains]]``."""

    id: Positive
    name: Name = ""  # required unless the chain is known
    test_network: bool = False

    @classmethod
    def fill_in(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Add the keys of a known chain that are not written."""
        chain_id = written.get("id")
        known = KNOWN_CHAINS.get(chain_id) if isinstance(chain_id, int) else None
        return written if known is None else known._asdict() | written

    def check(self) -> Iterator[Problem]:
        if not self.name:
            yield self._missing("name")
        if self.id == TEST_NETWORK and not self.test_network:
            yield Problem("test_network", f"chain {TEST_NETWORK} always is a test network")

    def _missing(self, key: str) -> Problem:
        return Problem(key, f"missing; Lookout knows nothing about chain {self.id}")


class ChainTable(NamedChain, frozen=True, kw_only=True):
    block_time_s: Duration = 0  # required unless the chain is known
    rpc: Annotated[tuple[RpcEndpoint, ...], Meta(min_length=1)]

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if not self.block_time_s:
            yield self._missing("block_time_s")
        names: dict[str, int] = {}
        for number, label in enumerate(self._endpoint_labels()):
            if (before := names.setdefault(label, number)) != number:
                yield Problem(f"rpc[{number}].name", f"is the name of rpc[{before}] already; choose another one")
        # If two of three endpoints were one node, it could lie (M8). The address alone decides: with two keys a node
        # would have two votes.
        first: dict[str, int] = {}
        for number, endpoint in enumerate(self.rpc):
            is_address = find_url_mistake(endpoint.url) is None
            if (before := first.setdefault(endpoint.url.rstrip("/"), number)) != number and is_address:
                yield Problem(f"rpc[{number}]", f"is the same endpoint as rpc[{before}]; name another, or leave it out")

    def endpoint_names(self) -> list[str]:
        """The endpoints' public names."""
        return [f"{label} of {self.name}" for label in self._endpoint_labels()]

    def _endpoint_labels(self) -> Iterator[str]:
        return (endpoint.name or f"rpc {number}" for number, endpoint in enumerate(self.rpc, 1))

    def outvotes(self, url: str) -> bool:
        """Whether a node at this address cannot decide the chain's head alone."""
        is_endpoint = url.rstrip("/") in (endpoint.url.rstrip("/") for endpoint in self.rpc)
        return not is_endpoint or len(self.rpc) >= _TO_OUTVOTE_ONE

    def warnings(self) -> Iterator[Problem]:
        has = len(self.rpc)
        if has < _TO_OUTVOTE_ONE:
            only = "only one endpoint" if has == 1 else f"only {has} endpoints"
            why = "so one that is wrong can make the chain's rows untrue; name three or more, of different providers"
            yield Problem("rpc", f"chain {self.id} has {only}, {why}")

    def pace(self) -> Pace:
        """The block time exactly as written: 0.07 is seven hundredths, not the nearest binary fraction."""
        block_time_ms = Fraction(str(self.block_time_s)) * 1000
        return Pace(block_time_ms.numerator, block_time_ms.denominator)


class PolicyTable(Table, frozen=True):
    """The status policy's thresholds, with the launch values (S16)."""

    recheck_s: Duration = 30
    jitter_s: DurationOrZero = 3
    backoff_cap_s: Duration = 120
    probe_timeout_s: Duration = 10
    row_lifetime_s: Duration = 150
    failures_for_unavailable: Positive = 3
    allowance_blocks: Natural = 10
    allowance_s: DurationOrZero = 120
    degraded_lag_s: Duration = 1800
    degraded_evaluations: Positive = 2
    ppoi_behind_s: DurationOrZero = 45
    head_max_age_s: Duration = 60
    heartbeat_s: Duration = 30
    blind_after_s: Annotated[
        DurationOrZero, must(lambda after_s: not 0 < after_s < 0.001, "has to be 0 or at least 0.001")
    ] = 0

    def limits(self) -> Limits:
        return Limits(
            recheck_ms=in_ms(self.recheck_s),
            jitter_ms=in_ms(self.jitter_s),
            backoff_cap_ms=in_ms(self.backoff_cap_s),
            probe_timeout_ms=in_ms(self.probe_timeout_s),
            row_lifetime_ms=in_ms(self.row_lifetime_s),
            failures_for_unavailable=self.failures_for_unavailable,
            allowance_blocks=self.allowance_blocks,
            allowance_ms=in_ms(self.allowance_s),
            degraded_lag_ms=in_ms(self.degraded_lag_s),
            degraded_evaluations=self.degraded_evaluations,
            ppoi_behind_ms=in_ms(self.ppoi_behind_s),
            head_max_age_ms=in_ms(self.head_max_age_s),
            heartbeat_ms=in_ms(self.heartbeat_s),
            blind_after_ms=in_ms(self.blind_after_s),
        )


def _divides_a_day(bucket_s: int) -> Iterator[Problem]:
    if 86_400 % bucket_s:
        yield Problem("", f"{bucket_s} does not divide a day of 86400 s")


class HistoryTable(Table, frozen=True):
    bucket_s: Annotated[int, Meta(ge=1, le=86_400), ValueRule(_divides_a_day)] = 300
    retention_days: Annotated[int, Meta(ge=1, le=366)] = 14
    counts_from_s: Duration = 60
    hold_s: Duration = 60
    min_known_buckets: Positive = 12
    write_every_s: Duration = 60

    def check(self) -> Iterator[Problem]:
        if self.counts_from_s >= self.bucket_s:
            what = f"has to be below bucket_s, which is {self.bucket_s}, or trouble would hardly ever count"
            yield Problem("counts_from_s", what)

    def span(self) -> Span:
        return Span(
            bucket_ms=in_ms(self.bucket_s),
            retention_days=self.retention_days,
            counts_from_ms=in_ms(self.counts_from_s),
            hold_ms=in_ms(self.hold_s),
            min_known_buckets=self.min_known_buckets,
        )


class PingTable(Table, frozen=True):
    url: UrlOrNone = ""
    every_s: Duration = 60


class PageTable(Table, frozen=True):
    """The page's content beside the rows, and which services others than the operator run (C12)."""

    title: Line = ""
    operator: Line = ""
    contact: Line = ""
    show_unmonitored: bool = True
    run_by_others: tuple[Text, ...] = ("ppoi", "hosted-indexer")


class EdgeTable(Table, frozen=True):
    listen: HostPort = "0.0.0.0:80"
    origin: HostPortOrNone = ""


OwnName = Annotated[
    str,
    Meta(
        pattern=rf"\A(?=.{{1,60}}\Z){OWN_NAME.pattern}\Z",
        description="up to 60 small letters, digits and -, beginning with a letter",
    ),
    must(lambda name: name not in SERVICES, "is a service of the contract, which has a table of its own"),
]


class NamedService(Table, frozen=True, kw_only=True):
    """What a server uses of ``[[services]]``."""

    name: OwnName
    title: NameOrNone = ""
    effect: NameOrNone = ""

    @property
    def shown_title(self) -> str:
        return make_title(self.name, self.title)


UNNAMED: Final = "protocol"  # the default name
SEGMENT: Final = "a text of letters, digits and . _ ~ - that is neither . nor .."


class ServerSettings(Table, frozen=True):
    """What a server uses of a configuration file."""

    protocol: Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[A-Za-z0-9._~-]+\Z", description=SEGMENT)] = UNNAMED
    server: Annotated[ServerTable, RESTART] = ServerTable()
    admin: Annotated[AdminTable, RESTART] = AdminTable()
    log: LogTable = LogTable()
    store: Annotated[StoreTable, RESTART] = StoreTable()
    chains: tuple[NamedChain, ...] = ()
    services: tuple[NamedService, ...] = ()
    page: PageTable = PageTable()

    @property
    def store_url(self) -> str:
        """The address that a server reads."""
        return self.store.read_url or self.store.url

    @property
    def store_key(self) -> str:
        return "store.read_url" if self.store.read_url else "store.url"

    def listen_on(self, listen: str, admin: str) -> Self:
        """With other addresses, unless they are empty."""
        server = replace(self.server, listen=listen or self.server.listen)
        return replace(self, server=server, admin=replace(self.admin, server=admin or self.admin.server))

    def description(self) -> Description:
        """The public description of this deployment."""
        page = self.page
        titles = [(service.name, service.title, "") for service in SERVICES]
        titles += [(own.name, own.shown_title, own.effect) for own in self.services]
        return Description(
            self.protocol,
            tuple(ChainDescription(chain.id, chain.name, chain.test_network) for chain in self.chains),
            tuple(
                ServiceDescription(name, title, name in page.run_by_others, effect) for name, title, effect in titles
            ),
            page.title or self.protocol,
            page.operator,
            page.contact,
            page.show_unmonitored,
        )

    def warnings(self) -> Iterator[Problem]:
        """Settings that are allowed, but may be unintended."""
        yield from (doubt.below("server") for doubt in self.server.warnings())
        yield from (doubt.below("store") for doubt in self.store.warnings())

    def check_names(self, key: str, named: Iterable[str]) -> Iterator[Problem]:
        """Problems of the services that a key names."""
        return find_unknown_services(key, named, dict.fromkeys((*SERVICES.names, *(own.name for own in self.services))))

    def check_page(self) -> Iterator[Problem]:
        yield from self.check_names("page.run_by_others", self.page.run_by_others)


MONITORS_TABLES: Final = ("monitor", "policy", "history", "edge", "alerts", "ping", *SERVICES.names)
"""The tables of a file that a server does not read."""
