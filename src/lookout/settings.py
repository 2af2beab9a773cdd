"""The configuration as one frozen value: every key with its launch value."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from lookout.core.alerting import Rule, Rules
from lookout.core.heads import Pace
from lookout.core.model import Check, Service, Status
from lookout.core.plan import Limits, Plan, Span

_YEAR_S = 31_536_000
Duration = Annotated[float, Meta(ge=0.001, le=_YEAR_S)]
DurationOrZero = Annotated[float, Meta(ge=0, le=_YEAR_S)]
Positive = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Natural = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Text = Annotated[str, Meta(min_length=1)]


# The ppoi node's own names of the networks that are built in.
PPOI_NETWORKS: Final[Mapping[int, str]] = {
    1: "Ethereum",
    56: "BNB_Chain",
    137: "Polygon",
    42161: "Arbitrum",
    11155111: "Ethereum_Sepolia",
}


SEGMENT: Final = "a text of letters, digits and . _ ~ - that is neither . nor .."
_SEVERITY: Final[tuple[Status, ...]] = ("catching-up", "degraded", "unavailable")


class Server(Struct, frozen=True):
    listen: str = "127.0.0.1:8080"
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    rate_limit_per_minute: Natural = 120
    trusted_proxies: tuple[str, ...] = ()
    connections_per_address: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    history_unreadable_s: Duration = 300
    ban_s: Duration = 60


class Admin(Struct, frozen=True):
    monitor: str = "127.0.0.1:9464"
    server: str = "127.0.0.1:9465"
    hosts: tuple[Text, ...] = ()


class Log(Struct, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = "auto"


class Store(Struct, frozen=True):
    url: Text = "sqlite:lookout.db"
    read_url: str = ""


class Monitor(Struct, frozen=True):
    record: str = ""
    record_max_mb: Positive = 256


class Chain(Struct, frozen=True):
    id: Positive
    name: Text
    block_time_s: Duration
    rpc: Annotated[tuple[Text, ...], Meta(min_length=1)]


class Ppoi(Struct, frozen=True):
    url: Text
    required_list: Text
    chains: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    networks: dict[str, Text] = {}
    headers: dict[str, str] = {}


class Indexer(Struct, frozen=True):
    chain: Positive
    kind: Literal["squid", "subgraph", "ponder", "json"]
    url: Text
    confirmations: Natural
    deployment: str = ""
    pointer: str = ""
    headers: dict[str, str] = {}


class Messaging(Struct, frozen=True):
    url: Text
    headers: dict[str, str] = {}


class Broadcasters(Struct, frozen=True):
    url: Text
    chains: Annotated[tuple[Positive, ...], Meta(min_length=1)]
    via: Literal["store", "relay"] = "store"
    pubsub_topic: Text = "/waku/2/rs/5/1"
    content_topic: Text = "/railgun/v2/0-{chainId}-fees/json"
    limit: Positive = 20
    fresh_s: Duration = 120
    expiry_margin_s: DurationOrZero = 40
    seen_s: Duration = 86_400
    members: dict[str, tuple[Text, ...]] = {}
    headers: dict[str, str] = {}

    def by_source(self) -> tuple["Broadcasters", ...]:
        """The settings of each source. A store is asked for each chain on its own, so that none waits for another (M6).
        A relay has one cache for all chains, which reading empties."""
        if self.via == "relay":
            return (self,)
        return tuple(replace(self, chains=(each,), members=self._members_of(each)) for each in self.chains)

    def _members_of(self, chain_id: int) -> dict[str, tuple[str, ...]]:
        return {chain: listed for chain, listed in self.members.items() if chain == str(chain_id)}


Asked = Messaging | Ppoi | Broadcasters | Indexer


class Policy(Struct, frozen=True):
    """The status policy's thresholds, with the values of the launch (S16)."""

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
    blind_after_s: DurationOrZero = 0


class History(Struct, frozen=True):
    bucket_s: Annotated[int, Meta(ge=1, le=86_400)] = 300
    retention_days: Annotated[int, Meta(ge=1, le=366)] = 14
    counts_from_s: Duration = 60
    hold_s: Duration = 60
    min_known_buckets: Positive = 12
    write_every_s: Duration = 60


class AlertRule(Struct, frozen=True):
    name: str = ""
    services: tuple[Service, ...] = ()
    chains: tuple[Positive, ...] = ()
    from_: Literal["catching-up", "degraded", "unavailable"] = field(default="unavailable", name="from")
    unknown: bool = False
    for_s: DurationOrZero = 300
    remind_s: DurationOrZero = 3600
    targets: tuple[Text, ...] = ()

    def key(self) -> str:
        """What its episodes are found by, also after it was changed: its name, or what it finds bad."""
        if self.name:
            return self.name
        where = f"{','.join(sorted(self.services))}/{','.join(map(str, sorted(self.chains)))}"
        return f"{where}/{self.from_}/{self.unknown}"

    def matches(self, check: Check) -> bool:
        return (not self.services or check.service in self.services) and (
            not self.chains or check.chain_id in self.chains
        )


class Alerts(Struct, frozen=True):
    targets: dict[str, Text] = {}
    group_s: Annotated[float, Meta(ge=0, le=3600)] = 30
    give_up_s: Duration = 3600
    rules: tuple[AlertRule, ...] = ()


class Ping(Struct, frozen=True):
    url: str = ""
    every_s: Duration = 60


class Edge(Struct, frozen=True):
    listen: str = "0.0.0.0:80"
    origin: str = "127.0.0.1:8080"


class ServerSettings(Struct, frozen=True):
    """What a server needs of a configuration, and all of it that its processes ever hold."""

    protocol: str
    server: Server
    admin: Admin
    log: Log
    chains: dict[int, str]
    store_url: str
    reads_as_writer: bool = False

    @property
    def store_key(self) -> str:
        return "store.url" if self.reads_as_writer else "store.read_url"


class Settings(Struct, frozen=True):
    """A whole configuration file. A source's table that is left out is a source that is not configured (S14)."""

    protocol: Annotated[str, Meta(pattern=r"\A(?!\.{1,2}\Z)[A-Za-z0-9._~-]+\Z", description=SEGMENT)] = "protocol"
    server: Server = Server()
    admin: Admin = Admin()
    log: Log = Log()
    store: Store = Store()
    monitor: Monitor = Monitor()
    chains: tuple[Chain, ...] = ()
    ppoi: Ppoi | None = None
    indexer: tuple[Indexer, ...] = ()
    hosted_indexer: tuple[Indexer, ...] = field(default=(), name="hosted-indexer")
    messaging: Messaging | None = None
    broadcasters: Broadcasters | None = None
    policy: Policy = Policy()
    history: History = History()
    edge: Edge = Edge()
    alerts: Alerts = Alerts()
    ping: Ping = Ping()

    def plan(self) -> Plan:
        """The settings as the rules need them."""
        confirmations = {Check("indexer", i.chain): i.confirmations for i in self.indexer}
        confirmations |= {Check("hosted-indexer", i.chain): i.confirmations for i in self.hosted_indexer}
        return Plan(
            {chain.id: _pace(chain.block_time_s) for chain in self.chains},
            frozenset(self.asked()),
            confirmations,
            limits(self.policy),
            span(self.history),
        )

    def for_server(self) -> ServerSettings:
        """Without what only a monitor needs: no key of an upstream or a target, and no right to write if reading has an
        address of its own."""
        return ServerSettings(
            self.protocol,
            self.server,
            Admin("", self.admin.server, self.admin.hosts),
            self.log,
            {chain.id: chain.name for chain in self.chains},
            self.store.read_url or self.store.url,
            reads_as_writer=not self.store.read_url,
        )

    def asked(self) -> dict[Check, Asked]:
        """Every monitored check, with the settings of the source that answers for it."""
        asked: dict[Check, Asked] = {}
        if self.messaging is not None:
            asked[Check("messaging", None)] = self.messaging
        if self.ppoi is not None:
            asked |= {Check("ppoi", chain_id): self.ppoi for chain_id in self.ppoi.chains}
        if self.broadcasters is not None:
            for each in self.broadcasters.by_source():
                asked |= {Check("broadcasters", chain_id): each for chain_id in each.chains}
        asked |= {Check("indexer", indexer.chain): indexer for indexer in self.indexer}
        return asked | {Check("hosted-indexer", indexer.chain): indexer for indexer in self.hosted_indexer}

    def alert_rules(self) -> Rules:
        """Who is told what, as the rules of telling need it."""
        plan = self.plan()
        rules = tuple(
            Rule(
                rule.key(),
                frozenset(check for check in plan.monitored if rule.matches(check)),
                frozenset(_SEVERITY[_SEVERITY.index(rule.from_) :]) | ({"unknown"} if rule.unknown else set()),
                _ms(rule.for_s),
                _ms(rule.remind_s),
                rule.targets or tuple(self.alerts.targets),
            )
            for rule in self.alerts.rules
        )
        return Rules(rules, _ms(self.alerts.group_s), plan.span.hold_ms)


def limits(policy: Policy) -> Limits:
    return Limits(
        recheck_ms=_ms(policy.recheck_s),
        jitter_ms=_ms(policy.jitter_s),
        backoff_cap_ms=_ms(policy.backoff_cap_s),
        probe_timeout_ms=_ms(policy.probe_timeout_s),
        row_lifetime_ms=_ms(policy.row_lifetime_s),
        failures_for_unavailable=policy.failures_for_unavailable,
        allowance_blocks=policy.allowance_blocks,
        allowance_ms=_ms(policy.allowance_s),
        degraded_lag_ms=_ms(policy.degraded_lag_s),
        degraded_evaluations=policy.degraded_evaluations,
        ppoi_behind_ms=_ms(policy.ppoi_behind_s),
        head_max_age_ms=_ms(policy.head_max_age_s),
        heartbeat_ms=_ms(policy.heartbeat_s),
        blind_after_ms=_ms(policy.blind_after_s),
    )


def span(history: History) -> Span:
    return Span(
        bucket_ms=_ms(history.bucket_s),
        retention_days=history.retention_days,
        counts_from_ms=_ms(history.counts_from_s),
        hold_ms=_ms(history.hold_s),
        min_known_buckets=history.min_known_buckets,
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _pace(block_time_s: float) -> Pace:
    """The block time exactly as it was written, 0.07 meaning seven hundredths and not the nearest binary fraction."""
    block_time_ms = Fraction(str(block_time_s)) * 1000
    return Pace(block_time_ms.numerator, block_time_ms.denominator)
