"""The tables of a configuration file that are not a source's: every key with its launch value."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from msgspec import Meta
from msgspec.structs import replace
from yarl import URL

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.base.problem import UNREAD, Problem
from lookout.base.setting_types import (
    SECRET,
    AdminAddress,
    Duration,
    DurationOrZero,
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
    must,
)
from lookout.base.url import find_url_mistake
from lookout.core.heads import Pace
from lookout.core.plan import Limits, Span
from lookout.protocols.client.request import AccessTable
from lookout.store.kinds import ADDRESS_FORM, KINDS, find_kind
from lookout_reader.rollup import TEST_NETWORK

_WITH_READ_URL: Final = tuple(kind for kind in KINDS if kind.name_database is not None)
_TO_OUTVOTE_ONE: Final = 3  # endpoints of a chain (M8)
_AS_KNOWN: Final[Any] = None  # of what is left out and depends on the chain


class ServerTable(Table, frozen=True):
    listen: HostPort = "127.0.0.1:8080"
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    rate_limit_per_minute: Natural = 120
    trusted_proxies: Networks = ()
    connections_per_address: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    history_unreadable_s: Duration = 300
    ban_s: Duration = 60


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
        must(
            lambda url: not url or find_kind(url) in _WITH_READ_URL,
            f"has to {' or '.join(kind.form for kind in _WITH_READ_URL)};"
            f" a {' or '.join(kind.title for kind in KINDS if kind not in _WITH_READ_URL)} file is read"
            " where store.url names it",
        ),
    ] = ""

    def validate(self) -> Iterable[Iterable[Problem]]:
        return (self._check_same_database(),)

    def _check_same_database(self) -> Iterator[Problem]:
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
    """An address alone is written as a text."""

    text_key: ClassVar[str] = "url"
    url: Url
    name: Annotated[NameOrNone, SECRET] = ""  # the address may be written in its place


class ChainTable(Table, frozen=True, kw_only=True):
    """A chain. What is left out of a known one is as it is known; another one is no test network by default."""

    id: Positive
    name: Name = _AS_KNOWN
    block_time_s: Duration = _AS_KNOWN
    rpc: Annotated[tuple[RpcEndpoint, ...], Meta(min_length=1)]
    test_network: bool = _AS_KNOWN

    def normalise(self) -> Self:
        known = KNOWN_CHAINS.get(self.id) if self.id is not UNREAD else None
        defaults = {"name": UNREAD, "block_time_s": UNREAD, "test_network": False} if known is None else known._asdict()
        left_out = {key: value for key, value in defaults.items() if getattr(self, key) is _AS_KNOWN}
        return replace(self, **left_out)

    def validate(self) -> Iterable[Iterable[Problem]]:
        return (self._check_is_known(), self._check_test_network(), self._check_endpoint_names())

    def _check_is_known(self) -> Iterator[Problem]:
        if self.id not in KNOWN_CHAINS:
            missing = (key for key in ("name", "block_time_s") if getattr(self, key) is _AS_KNOWN)
            yield from (Problem(key, f"missing; Lookout knows nothing about chain {self.id}") for key in missing)

    def _check_test_network(self) -> Iterator[Problem]:
        if self.id == TEST_NETWORK and self.test_network is False:
            yield Problem("test_network", f"chain {TEST_NETWORK} always is a test network")

    def _check_endpoint_names(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for number, label in enumerate(self._endpoint_labels()):
            if (before := first.setdefault(label, number)) != number:
                yield Problem(f"rpc[{number}].name", f"is the name of rpc[{before}] already; choose another one")

    def endpoint_names(self) -> list[str]:
        """What people see of the endpoints."""
        return [f"{label} of {self.name}" for label in self._endpoint_labels()]

    def _endpoint_labels(self) -> Iterator[str]:
        return (each.name or f"rpc {number}" for number, each in enumerate(self.rpc, 1))

    def same_endpoints(self) -> Iterator[tuple[int, int]]:
        """The numbers of endpoints that are the same as an earlier one, and of that. The address alone decides: a node
        that is asked with two keys would have two votes."""
        first: dict[tuple[object, ...], int] = {}
        for number, url in enumerate(each.url for each in self.rpc):
            before = first.setdefault(_as_sent(url), number) if _is_right(url) else number
            if before != number:
                yield number, before

    def outvotes(self, url: str) -> bool:
        """Whether a node at this address cannot decide alone what its chain's head is."""
        right = [each.url for each in self.rpc if _is_right(each.url)]
        is_one = _is_right(url) and _as_sent(url) in map(_as_sent, right)
        return not is_one or len(self.rpc) >= _TO_OUTVOTE_ONE

    def warnings(self) -> Iterator[Problem]:
        has = len(self.rpc)
        if has < _TO_OUTVOTE_ONE:
            only = "only one endpoint" if has == 1 else f"only {has} endpoints"
            why = "so one that is wrong can make the chain's rows untrue; name three or more, of different providers"
            yield Problem("rpc", f"chain {self.id} has {only}, {why}")

    def pace(self) -> Pace:
        """The block time exactly as it was written, 0.07 meaning seven hundredths and not the nearest binary
        fraction."""
        block_time_ms = Fraction(str(self.block_time_s)) * 1000
        return Pace(block_time_ms.numerator, block_time_ms.denominator)


class PolicyTable(Table, frozen=True):
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

    def validate(self) -> Iterable[Iterable[Problem]]:
        return (self._check_that_statuses_count(),)

    def _check_that_statuses_count(self) -> Iterator[Problem]:
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
    """What people see beside the rows; and which services are run by others than the operator (C12)."""

    title: Line = ""
    operator: Line = ""
    contact: Line = ""
    show_unmonitored: bool = True
    run_by_others: tuple[Text, ...] = ("ppoi", "hosted-indexer")


class EdgeTable(Table, frozen=True):
    listen: HostPort = "0.0.0.0:80"
    origin: HostPortOrNone = ""


def in_ms(seconds: float) -> int:
    return round(seconds * 1000)


def _is_right(url: str) -> bool:
    return url is not UNREAD and find_url_mistake(url) is None


def _as_sent(url: str) -> tuple[object, ...]:
    """What a request to this address is made of, however it is written. A dot at the end of its host, and slashes at
    the end of its path, make no difference."""
    sent = URL(url)
    host, path = (sent.raw_host or "").rstrip("."), sent.raw_path.rstrip("/")
    return sent.scheme, sent.raw_user or "", sent.raw_password or "", host, sent.port, path, sent.raw_query_string
