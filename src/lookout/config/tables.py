"""The tables of a configuration file, except sources', with the keys' launch values, and a server's part of them."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from msgspec import Meta
from msgspec.structs import fields, replace

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.base.problem import Problem
from lookout.base.setting_types import (
    NOT_EMPTY,
    RESTART,
    SECRET,
    Accent,
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
    Picture,
    Positive,
    Table,
    Text,
    Url,
    UrlOrNone,
    ValueRule,
    find_note,
    in_ms,
    must,
)
from lookout.base.url import find_url_mistake
from lookout.core.heads import Pace
from lookout.core.plan import Limits, Span
from lookout.core.services import OWN_NAME, SERVICES, find_unknown_services, make_title
from lookout.protocols.client.request import AccessTable
from lookout.public.about import ChainDescription, Description, ServiceDescription
from lookout.public.page.assets import logo_path
from lookout.store.kinds import ADDRESS_FORM, KINDS, find_kind
from lookout_reader.rollup import TEST_NETWORK

Rules = TypeVar("Rules", Limits, Span)

_WITH_READ_URL: Final = tuple(kind for kind in KINDS if kind.has_roles)
_TO_OUTVOTE_ONE: Final = 3  # endpoints of a chain (M8)


def find_former_keys(table: Table) -> Iterator[Problem]:
    """The keys of earlier versions that are still written."""
    for key in fields(table):
        former = find_note(key.type, Former)
        if former is not None and getattr(table, key.name) is not None:
            yield Problem(key.name, f"is not used any more: {former.advice}")


class ServerTable(Table, frozen=True):
    listen: HostPort = "127.0.0.1:8080"
    """Where the documents and the status page are."""
    workers: Annotated[Any, Former("a server is one process; docs/scale.md says how to run several")] = None
    rate_limit_per_minute: Natural = 120
    """Requests of one caller to one path per minute (E2); 0 is no limit, for use behind an edge."""
    trusted_proxies: Networks = ()
    """Proxies whose forwarding headers are believed (E6), with any number of connections."""
    connections_per_address: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    """Open connections of one address, or one /64 of IPv6 (A16); 0 is no limit. At most half of what the server
    accepts."""
    history_unreadable_s: Duration = 300
    """How long the last good history is served while the store cannot be read (A12)."""
    ban_s: Duration = 60
    """How long a caller over the limit is refused (E2)."""

    def warnings(self) -> Iterator[Problem]:
        return find_former_keys(self)


class AdminTable(Table, frozen=True):
    monitor: AdminAddress = "127.0.0.1:9464"
    """The monitor's [port](operations.md#health) for metrics and health, never public."""
    server: AdminAddress = "127.0.0.1:9465"
    """The same for the server."""
    hosts: tuple[Text, ...] = ()
    """More names that a request's `Host` may have, such as the one that your Prometheus uses."""


class LogTable(Table, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is written."""
    format: Literal["auto", "console", "json"] = "auto"
    """`"auto"` is `"console"` on a terminal, otherwise `"json"`."""


class StoreTable(Table, frozen=True):
    url: Annotated[
        str,
        SECRET,
        Meta(min_length=1),
        must(lambda url: find_kind(url) is not None, f"has to {ADDRESS_FORM}"),
    ] = "sqlite:lookout.db"
    """Where everything is stored.
    Allowed: `sqlite:` and a path, or a `postgresql://` address"""
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
    """What servers use instead of `url`, with a role that can only read; it may be a replica.
    Allowed: a `postgresql://` address of the same database, or `""`"""

    def check(self) -> Iterator[Problem]:
        kind = find_kind(self.read_url)
        if kind is not None and kind.has_roles and find_kind(self.url) is not kind:
            yield Problem("read_url", f"is only for {kind.title}, and store.url names something else")

    def warnings(self) -> Iterator[Problem]:
        if find_kind(self.url) in _WITH_READ_URL and not self.read_url:
            why = "so servers hold an address that may write; name one of a role that only reads"
            yield Problem("read_url", f"is not set, {why}")


class MonitorTable(Table, frozen=True):
    record: str = ""
    """An [observation log](operations.md#the-observation-log) to append to.
    Allowed: a path, or `""` for none"""
    place: NameOrNone = ""
    """This monitor's name among the places of `[[witnesses]]`, such as `"Frankfurt"`."""
    record_max_mb: Annotated[Any, Former("logrotate keeps the log small; docs/operations.md says how")] = None

    def warnings(self) -> Iterator[Problem]:
        return find_former_keys(self)


class RpcEndpoint(AccessTable, frozen=True):
    """A text alone is the address."""

    text_key: ClassVar[str] = "url"
    url: Url
    """The endpoint's address."""
    name: Annotated[NameOrNone, SECRET] = ""  # may by mistake hold the address
    """What `lookout probe` and the log call it, instead of `rpc 2 of Ethereum`.
    Allowed: one line; no two of a chain have the same"""


class NamedChain(Table, frozen=True, kw_only=True):
    """What a server uses of ``[[chains]]``."""

    id: Positive
    """The chain id, which each endpoint has to confirm."""
    name: Name = ""  # required unless the chain is known
    """What people see.
    Example: "Ethereum"
    Default: as known"""
    test_network: bool = False
    """No summary counts a test network (C11). 11155111 always is one.
    Default: as known
    Example: false"""

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
            yield Problem("test_network", f"chain {TEST_NETWORK} is always a test network")

    def _missing(self, key: str) -> Problem:
        return Problem(key, f"missing; Lookout knows nothing about chain {self.id}")


class ChainTable(NamedChain, frozen=True, kw_only=True):
    block_time_s: Duration = 0  # required unless the chain is known
    """The time between blocks until it was measured (S15).
    Default: as known
    Example: 12"""
    rpc: Annotated[tuple[RpcEndpoint, ...], Meta(min_length=1)]
    """JSON-RPC endpoints that are asked for the head; with three, one may be wrong (M8).
    Allowed: one or more, each an address or a [table](#chainsrpc), each address once"""

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


def _convert_to_ms(table: Table, kind: type[Rules]) -> Rules:
    """The values that the rules need, which are named like the keys, and have milliseconds where those have seconds."""
    names = {key.name: key.name.replace("_ms", "_s") for key in fields(kind)}
    values = {name: getattr(table, key) for name, key in names.items()}
    return kind(**{name: in_ms(value) if name.endswith("_ms") else value for name, value in values.items()})


class PolicyTable(Table, frozen=True):
    """The status policy's thresholds, with the launch values (S16)."""

    recheck_s: Duration = 30
    """From the end of a probe to the start of the next (M1)."""
    jitter_s: DurationOrZero = 3
    """A random time up to this is added (M1)."""
    backoff_cap_s: Duration = 120
    """The wait doubles while a source fails, up to this (M2)."""
    probe_timeout_s: Duration = 10
    """A probe that takes this long has failed (M3)."""
    row_lifetime_s: Duration = 150
    """From `observedAt` to `expiresAt` (R7)."""
    failures_for_unavailable: Positive = 3
    """So many failed probes in a row make a service unavailable (S2)."""
    allowance_blocks: Natural = 10
    """The lag that an indexer may have, in blocks (S3)."""
    allowance_s: DurationOrZero = 120
    """The same in time; the greater counts (S3)."""
    degraded_lag_s: Duration = 1800
    """A lag of this much is degraded (S5, S9)."""
    degraded_evaluations: Positive = 2
    """How many times in a row such a lag has to be seen (S5, S9)."""
    ppoi_behind_s: DurationOrZero = 45
    """How long a ppoi node may be behind its own index (S8)."""
    head_max_age_s: Duration = 60
    """An older head is not used (M8, S13)."""
    heartbeat_s: Duration = 30
    """The report is published at least this often (M5)."""
    endpoint_alert_s: Duration = 3600
    """How long a fault of a source or an RPC endpoint lasts before its alert."""
    blind_after_s: Annotated[
        DurationOrZero, must(lambda after_s: not 0 < after_s < 0.001, "has to be 0 or at least 0.001")
    ] = 0
    """If nothing answered for this long, the monitor counts as blind; 0 is never (M13)."""

    def limits(self) -> Limits:
        return _convert_to_ms(self, Limits)


def _divides_a_day(bucket_s: int) -> Iterator[Problem]:
    if 86_400 % bucket_s:
        yield Problem("", f"{bucket_s} does not divide a day of 86400 s")


class HistoryTable(Table, frozen=True):
    bucket_s: Annotated[int, Meta(ge=1, le=86_400), ValueRule(_divides_a_day)] = 300
    """The length of a bucket (H1).
    Allowed: whole seconds that divide a day, 86400"""
    retention_days: Annotated[int, Meta(ge=1, le=366)] = 14
    """How many days the history reaches back (H4)."""
    counts_from_s: Duration = 60
    """How long a status has to last in a bucket to decide its character (H6); less than `bucket_s`."""
    hold_s: Duration = 60
    """How long a published status counts at most (H8); not less than `policy.heartbeat_s`."""
    min_known_buckets: Positive = 12
    """With fewer known buckets, uptime is null (H10)."""
    write_every_s: Duration = 60
    """How often the history is written (H14)."""

    def check(self) -> Iterator[Problem]:
        if self.counts_from_s >= self.bucket_s:
            what = f"has to be below bucket_s, which is {self.bucket_s}, or trouble would hardly ever count"
            yield Problem("counts_from_s", what)

    def span(self) -> Span:
        return _convert_to_ms(self, Span)


class PingTable(Table, frozen=True):
    url: UrlOrNone = ""
    """Gets a GET [while publications are stored](operations.md#a-dead-monitor-sends-no-alert). Never printed."""
    every_s: Duration = 60
    """How often."""


class PageTable(Table, frozen=True):
    """The page's content beside the rows, and which services others than the operator run (C12)."""

    title: Line = ""
    """The title of the status page; if empty, it is `protocol`."""
    operator: Line = ""
    """Who runs this monitor."""
    contact: Line = ""
    """An address or a URL."""
    logo: Picture = ""
    """A picture above the page.
    Allowed: an SVG or PNG file of at most 64 KiB"""
    accent: Accent = ""
    """The colour of the page's upper edge and controls.
    Allowed: `#rrggbb`, with a contrast of 3 to the light and the dark page"""
    show_unmonitored: bool = True
    """Whether the page has the rows that are not monitored; both documents always have them."""
    run_by_others: tuple[Text, ...] = ("ppoi", "hosted-indexer")
    """Services that others run; page and feeds say so (C12).
    Allowed: names of services"""


class EdgeTable(Table, frozen=True):
    listen: HostPort = "0.0.0.0:80"
    """Where the cache listens, for `make edge`."""
    origin: HostPortOrNone = ""
    """The server that the cache asks; if empty, the one at `server.listen`."""


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
    """Its name for programs; none of the five, and each once."""
    title: NameOrNone = ""
    """What people see; if empty, it is made of the name."""
    effect: NameOrNone = ""
    """What its failure means for users: page and alerts say it."""

    @property
    def shown_title(self) -> str:
        return make_title(self.name, self.title)


UNNAMED: Final = "protocol"  # the default name
SEGMENT: Final = "a text of letters, digits and . _ ~ - that is neither . nor .."


class ServerSettings(Table, frozen=True):
    """What a server uses of a configuration file."""

    protocol: Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[A-Za-z0-9._~-]+\Z", description=SEGMENT)] = UNNAMED
    """The segment in the documents' paths (A1): /api/v1/protocol/liveness."""
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
            logo=logo_path(page.logo),
            accent=page.accent,
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


MONITORS_TABLES: Final = ("monitor", "policy", "history", "edge", "alerts", "witnesses", "ping", *SERVICES.names)
"""The tables of a file that a server does not read."""
