"""What the monitor measures of itself, for Prometheus; docs/operations.md says what each means.

Labels are the contract's words, chain ids and their names: an address or a header is never among them.
"""

import asyncio
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from msgspec import UNSET
from msgspec.structs import fields
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lookout.base.admin_port import Readiness
from lookout.base.clock import Clock
from lookout.core.completeness.coverage import checked_blocks, gaps_of, oldest_unchecked_at
from lookout.core.heads import ChainProgress
from lookout.core.history import Uptime
from lookout.core.model import Answer, Blocks, Check, Found, Indexes, Row, Status
from lookout.core.services import SERVICES, Service
from lookout.monitor.board import Board, CoverageNote, Entry
from lookout.monitor.sources import Built
from lookout.protocols.client.failure import LACKING, Lacking
from lookout.public.about import ChainDescription
from lookout.state.log import Outcome, outcome_of

MessageOutcome = Literal["sent", "retried", "given-up", "dropped"]
HeadOutcome = Literal["answered", "failed"]
PingOutcome = Literal["answered", "failed"]
ReloadOutcome = Literal["applied", "refused"]

_GAUGES: Final = {
    "lookout_publication_timestamp_seconds": "When the last publication was made",
    "lookout_stored_publication_timestamp_seconds": "When the last publication that was stored had been made",
    "lookout_publication_age_seconds": "How old the last stored publication is",
    "lookout_config_loaded_timestamp_seconds": "When the configuration in force was read",
    "lookout_config_last_reload_successful": (
        "1 if the configuration that was read last is in force, 0 if it was refused"
    ),
    "lookout_alerts_firing": "Episodes that were reported and go on",
}


class _Publication(NamedTuple):
    at: int
    made_ms: int  # on the clock that never jumps
    rows: tuple[Row, ...]
    chains: Mapping[int, ChainProgress]


class Instruments(Collector):
    """The monitor's metrics in a registry. It is called on the event loop; scrapes come from other threads. Most of its
    attributes are values that a scrape shows as they are then."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self.board = Board()
        self._clock = clock
        self._published: _Publication | None = None
        self._stored: _Publication | None = None
        self._uptimes: Mapping[Check, Uptime] = {}
        self._answers: Mapping[str, type[Answer]] = {service.name: service.answer for service in SERVICES}
        self._own_fault_ms: int | None = None  # the last, on the clock that never jumps
        self._gauges: dict[str, float] = {"lookout_alerts_firing": 0}  # those of _GAUGES that are known
        self._waiting: Mapping[str, int] = {}
        self._chains: tuple[ChainDescription, ...] = ()
        self._series = Series(registry)
        self._tasks = Gauge("lookout_tasks", "Tasks of the event loop", registry=registry)
        self._declare(SERVICES)
        for lacking in LACKING:
            self._series.count("lookout_own_faults_total", lacking, by=0)
        for reload_outcome in get_args(ReloadOutcome):
            self._series.count("lookout_reloads_total", reload_outcome, by=0)
        registry.register(self)

    def describe_watched(
        self, chains: tuple[ChainDescription, ...], own_services: Iterable[Service], built: Built
    ) -> None:
        """What is watched from now on. Series begin at 0, so that a rate sees the first of what they count. Causes are
        too many for that: there the rate of all failures sees the first."""
        self.board.clear()
        self._chains = chains
        services = (*SERVICES, *own_services)
        self._answers = {service.name: service.answer for service in services}
        endpoints = {(str(each.chain_id), each.name) for each in built.endpoints}
        self._declare(services)
        for chain, endpoint in endpoints:
            for outcome in get_args(HeadOutcome):
                self._series.count("lookout_head_reads_total", chain, outcome, by=0)
                self._series.count("lookout_endpoint_reads_total", chain, endpoint, outcome, by=0)
            self._series.durations("lookout_endpoint_read_duration_seconds", chain, endpoint)

    def _declare(self, services: Iterable[Service]) -> None:
        for service in services:
            for outcome in get_args(Outcome):
                if outcome != "missing-list" or service.has_required_list:
                    self._series.count("lookout_probes_total", service.name, outcome, by=0)

    def count_tasks_of(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show how many tasks this loop has, whenever that is asked for."""
        self._tasks.set_function(lambda: len(asyncio.all_tasks(loop)))

    def count_probe(self, checks: Sequence[Check], took_ms: int, found: Mapping[Check, Found]) -> None:
        """Count a probe of a source; ``checks`` is what it answers for."""
        self._series.durations("lookout_probe_duration_seconds", *_source_labels(checks)).observe(took_ms / 1000)
        for check, what in found.items():
            self._series.count("lookout_probes_total", check.service, outcome_of(what))

    def count_probe_failure(self, check: Check, cause: str) -> None:
        self._series.count("lookout_probe_failures_total", check.service, chain_label(check), cause)

    def count_reading(self, chain_id: int, endpoint: str, took_ms: int, cause: str | None) -> None:
        """Count a reading of an endpoint; ``cause`` is the code of why it failed."""
        chain = str(chain_id)
        outcome: HeadOutcome = "answered" if cause is None else "failed"
        self._series.count("lookout_head_reads_total", chain, outcome)
        self._series.count("lookout_endpoint_reads_total", chain, endpoint, outcome)
        self._series.durations("lookout_endpoint_read_duration_seconds", chain, endpoint).observe(took_ms / 1000)
        if cause is not None:
            self._series.count("lookout_endpoint_failures_total", chain, endpoint, cause)

    def count_coverage_request(self, chain_id: int, endpoint: str, *, has_failed: bool) -> None:
        outcome: HeadOutcome = "failed" if has_failed else "answered"
        self._series.count("lookout_coverage_requests_total", str(chain_id), endpoint, outcome)

    def measure_delay(self, by_ms: int) -> None:
        self._series.durations("lookout_scheduler_delay_seconds").observe(max(0, by_ms) / 1000)

    def count_crash(self) -> None:
        self._series.count("lookout_probe_bugs_total")

    def count_own_fault(self, lacking: Lacking) -> None:
        self._series.count("lookout_own_faults_total", lacking)
        if lacking != "time":  # a pause that is over; anything else lasts until it is repaired
            self._own_fault_ms = self._clock.elapsed_ms()

    def is_exhausted(self, within_s: float) -> bool:
        """Whether the monitor lacked something of its own that lately (M17)."""
        last_ms = self._own_fault_ms
        return last_ms is not None and self._clock.elapsed_ms() - last_ms < within_s * 1000

    def published(self, at: int, rows: tuple[Row, ...], chains: Mapping[int, ChainProgress]) -> None:
        self._series.count("lookout_publications_total")
        self._published = _Publication(at, self._clock.elapsed_ms(), rows, chains)

    def set_uptimes(self, uptimes: Mapping[Check, Uptime]) -> None:
        """What the history says that was made last."""
        self._uptimes = uptimes

    def stored(self, took_ms: int) -> None:
        """The last publication is in the store."""
        self._series.durations("lookout_store_write_duration_seconds").observe(took_ms / 1000)
        self._stored = self._published

    def not_stored(self, took_ms: int) -> None:
        self._series.durations("lookout_store_write_duration_seconds").observe(took_ms / 1000)
        self._series.count("lookout_store_errors_total")

    def count_alert_message(self, target: str, outcome: MessageOutcome) -> None:
        self._series.count("lookout_alert_messages_total", target, outcome)

    def count_sender_failure(self, target: str) -> None:
        self._series.count("lookout_alert_sender_failures_total", target)

    def set_alert_gauges(self, firing: int, waiting: Mapping[str, int]) -> None:
        """Set how many episodes were reported and go on, and how many messages wait for each target."""
        for target in waiting.keys() - self._waiting.keys():
            for outcome in get_args(MessageOutcome):  # all are there from the first on
                self._series.count("lookout_alert_messages_total", target, outcome, by=0)
            self._series.count("lookout_alert_sender_failures_total", target, by=0)
        self._gauges["lookout_alerts_firing"], self._waiting = firing, waiting

    def count_ping(self, outcome: PingOutcome) -> None:
        for each in get_args(PingOutcome):
            self._series.count("lookout_pings_total", each, by=each == outcome)

    def count_reload(self, outcome: ReloadOutcome) -> None:
        self._series.count("lookout_reloads_total", outcome)
        self._gauges["lookout_config_last_reload_successful"] = outcome == "applied"

    def set_config_loaded(self, at: int, *, last_reload_successful: bool) -> None:
        """The settings in force were read then. The file may have been refused since."""
        self._gauges["lookout_config_loaded_timestamp_seconds"] = at / 1000
        self._gauges["lookout_config_last_reload_successful"] = last_reload_successful

    def readiness(self, max_age_s: float | None) -> Readiness:
        """Whether this process stored a publication, and lately enough."""
        if self._stored is None:
            return Readiness(False, "nothing was stored yet", None)
        age_s = self._age_s(self._stored)
        if max_age_s is not None and age_s > max_age_s:
            return Readiness(False, f"the last stored publication is older than {max_age_s:g} s", age_s)
        return Readiness(True, "a publication was stored", age_s)

    def collect(self) -> Iterable[Metric]:
        """What is so now, made at each scrape and therefore never stale; what is not known yet has no sample."""
        published, stored = self._published, self._stored
        rows, chains = ((), {}) if published is None else (published.rows, published.chains)
        yield from collect_rows(rows, chains, self._answers, self._clock.now())
        yield from collect_heads(chains)
        yield collect_uptimes(self._uptimes)
        yield from collect_endpoints(self.board.list_entries())
        yield from collect_coverages(self.board.list_coverages(), self._clock.now())
        waiting = GaugeMetricFamily("lookout_alert_queue", "Messages that wait to be accepted", labels=["target"])
        for target, count in self._waiting.items():
            waiting.add_metric([target], count)
        chain_info = GaugeMetricFamily(
            "lookout_chain_info", "1 for each chain, with its name", labels=["chain", "name", "test_network"]
        )
        for chain in self._chains:
            chain_info.add_metric([str(chain.id), chain.name, "true" if chain.test_network else "false"], 1)
        yield from (waiting, chain_info)
        known = self._gauges.copy()
        if published is not None:
            known["lookout_publication_timestamp_seconds"] = published.at / 1000
        if stored is not None:
            known["lookout_stored_publication_timestamp_seconds"] = stored.at / 1000
            known["lookout_publication_age_seconds"] = self._age_s(stored)
        yield from (GaugeMetricFamily(name, what, known.get(name)) for name, what in _GAUGES.items())

    def _age_s(self, publication: _Publication) -> float:
        return (self._clock.elapsed_ms() - publication.made_ms) / 1000


def _source_labels(checks: Sequence[Check]) -> tuple[str, str]:
    """The service of a source, and its chain, if it answers for a single one."""
    return checks[0].service, chain_label(checks[0]) if len(checks) == 1 else ""


# What each is, and its labels.
_COUNTERS: Final[dict[str, tuple[str, *tuple[str, ...]]]] = {
    "lookout_probes_total": ("Probes of a check, by what they found", "service", "outcome"),
    "lookout_probe_failures_total": ("Failed probes of a check, by their cause", "service", "chain", "cause"),
    "lookout_endpoint_reads_total": ("Readings of an RPC endpoint", "chain", "endpoint", "outcome"),
    "lookout_endpoint_failures_total": (
        "Readings of an RPC endpoint that failed, by their cause",
        *("chain", "endpoint", "cause"),
    ),
    "lookout_head_reads_total": ("Readings of RPC endpoints", "chain", "outcome"),
    "lookout_coverage_requests_total": (
        "Requests to an RPC endpoint to compare an indexer's list with its chain",
        *("chain", "endpoint", "outcome"),
    ),
    "lookout_probe_bugs_total": ("Probes and readings that died of a bug",),
    "lookout_own_faults_total": (
        "Probes and readings that were lost because of a fault of the monitor's own machine",
        "lacking",
    ),
    "lookout_publications_total": ("Publications made",),
    "lookout_store_errors_total": ("Publications not stored",),
    "lookout_alert_messages_total": (
        "Messages to a target, by what became of them; a retried one is counted each time",
        *("target", "outcome"),
    ),
    "lookout_alert_sender_failures_total": (
        "Times that what sends to a target could not start, or died, and was started again",
        "target",
    ),
    "lookout_pings_total": ("Pings that say that the monitor lives", "outcome"),
    "lookout_reloads_total": ("Times the configuration was read again", "outcome"),
}
_HISTOGRAMS: Final[dict[str, tuple[str, *tuple[str, ...]]]] = {
    "lookout_probe_duration_seconds": ("How long a source took to answer, or to fail", "service", "chain"),
    "lookout_endpoint_read_duration_seconds": ("How long a reading of an RPC endpoint took", "chain", "endpoint"),
    "lookout_scheduler_delay_seconds": ("How late a probe or a reading began that was due",),
    "lookout_store_write_duration_seconds": ("How long the store took for a publication, or to fail",),
}
_BUCKETS_S: Final[dict[str, tuple[float, ...]]] = {
    # A probe that is given up takes 10 s (M3).
    "lookout_probe_duration_seconds": (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15),
    "lookout_endpoint_read_duration_seconds": (0.1, 0.5, 2.5, 10),  # few, since there are many endpoints
    "lookout_scheduler_delay_seconds": (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    "lookout_store_write_duration_seconds": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
}


class Series:
    """Counts and measures."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counters = {
            name: Counter(name, what, labels, registry=registry) for name, (what, *labels) in _COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(name, what, labels, buckets=_BUCKETS_S[name], registry=registry)
            for name, (what, *labels) in _HISTOGRAMS.items()
        }

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Count one, or 0: then the series is there from the beginning, and a rate sees the first."""
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(by)

    def durations(self, name: str, *labels: str) -> Histogram:
        histogram = self._histograms[name]
        return histogram.labels(*labels) if labels else histogram


_WINDOWS: Final = {each.name: each.encode_name for each in fields(Uptime)}
_ROW: Final = ("service", "chain")
# What each is. A row has no more than one of the first two: a ppoi node's indexes are not blocks.
_FIGURES: Final = {
    "lookout_row_lag_blocks": "How many blocks a row is behind the head that it is compared with",
    "lookout_row_lag_indexes": "How many indexes a row is behind its own head",
    "lookout_row_lag_seconds": "How long the chain takes, at its pace, for the blocks that a row is behind",
    "lookout_row_position": "How far a row is",
    "lookout_row_head": "What the position of a row is compared with",
    "lookout_row_expires_timestamp_seconds": "From when on a row says nothing any more",
}


def chain_label(check: Check) -> str:
    return "" if check.chain_id is None else str(check.chain_id)


def collect_rows(
    rows: Sequence[Row], chains: Mapping[int, ChainProgress], answers: Mapping[str, type[Answer]], now: int
) -> Iterator[GaugeMetricFamily]:
    """``answers`` are those of the services. The figures of a row that has expired are not known any more."""
    counts = Tally(row.status for row in rows)
    by_status = GaugeMetricFamily("lookout_rows", "Rows of the last publication, by status", labels=["status"])
    for status in get_args(Status):
        by_status.add_metric([status], counts[status])
    each = GaugeMetricFamily("lookout_row_status", "1 for the status that each row has", labels=[*_ROW, "status"])
    figures = {name: GaugeMetricFamily(name, what, labels=_ROW) for name, what in _FIGURES.items()}
    for row in rows:
        labels = [row.check.service, chain_label(row.check)]
        each.add_metric([*labels, row.status], 1)
        if row.expires_at is not None:
            figures["lookout_row_expires_timestamp_seconds"].add_metric(labels, row.expires_at / 1000)
        if row.expires_at is None or row.expires_at > now:
            for name, figure in _figures(row, answers.get(row.check.service), chains):
                figures[name].add_metric(labels, figure)
    yield from (by_status, each, *figures.values())


def _figures(row: Row, answer: type[Answer] | None, chains: Mapping[int, ChainProgress]) -> Iterator[tuple[str, float]]:
    position, head, chain_id = row.metrics.position, row.metrics.head, row.check.chain_id
    if position is UNSET:
        return
    yield "lookout_row_position", position
    if head is UNSET:
        return
    yield "lookout_row_head", head
    lag = max(0, head - position)  # R11
    if answer is Indexes:
        yield "lookout_row_lag_indexes", lag
    if answer is Blocks and chain_id is not None:
        pace = chains[chain_id].pace
        yield "lookout_row_lag_blocks", lag
        yield "lookout_row_lag_seconds", lag * pace.ms / pace.blocks / 1000


def collect_heads(chains: Mapping[int, ChainProgress]) -> Iterator[GaugeMetricFamily]:
    agreed = GaugeMetricFamily(
        "lookout_head_agreed", "1 while a chain has a head that positions are compared with, else 0", labels=["chain"]
    )
    height = GaugeMetricFamily("lookout_head_height", "The block that a chain's endpoints agree on", labels=["chain"])
    block_at = GaugeMetricFamily(
        "lookout_head_block_timestamp_seconds", "The timestamp of that block", labels=["chain"]
    )
    for chain_id, (head, _) in chains.items():
        agreed.add_metric([str(chain_id)], head is not None)
        if head is not None:
            height.add_metric([str(chain_id)], head.height)
            block_at.add_metric([str(chain_id)], head.block_at / 1000)
    yield from (agreed, height, block_at)


def collect_uptimes(uptimes: Mapping[Check, Uptime]) -> GaugeMetricFamily:
    ratio = GaugeMetricFamily(
        "lookout_row_uptime_ratio", "The uptime of a row, as the history has it", labels=[*_ROW, "window"]
    )
    for check, uptime in uptimes.items():
        for name, window in _WINDOWS.items():
            share = getattr(uptime, name)
            if share is not None:
                ratio.add_metric([check.service, chain_label(check), window], share)
    return ratio


_ENDPOINT: Final = ("chain", "endpoint")


def collect_endpoints(entries: Iterable[Entry]) -> Iterator[GaugeMetricFamily]:
    height = GaugeMetricFamily(
        "lookout_endpoint_height", "The newest block of an RPC endpoint, while it answers", labels=_ENDPOINT
    )
    lag = GaugeMetricFamily(
        "lookout_endpoint_lag_blocks",
        "How many blocks that is below the agreed head; above it: below 0",
        labels=_ENDPOINT,
    )
    standing = GaugeMetricFamily(
        "lookout_endpoint_standing",
        "1 for what the latest answer of an RPC endpoint counts for",
        labels=[*_ENDPOINT, "standing"],
    )
    for entry in entries:
        labels = [str(entry.chain_id), entry.name]
        if isinstance(entry.height, int):
            height.add_metric(labels, entry.height)
        if isinstance(entry.lag_blocks, int):
            lag.add_metric(labels, entry.lag_blocks)
        if isinstance(entry.standing, str):
            standing.add_metric([*labels, entry.standing], 1)
    yield from (height, lag, standing)


def collect_coverages(notes: Iterable[CoverageNote], now: int) -> Iterator[GaugeMetricFamily]:
    gauges = {
        "checked_blocks": "Blocks in which an indexer's list was compared with the chain",
        "missing": "Transactions of the chain that are confirmed to be missing in the list",
        "extra": "Transactions of the list that the chain is confirmed not to have",
        "oldest_unchecked_seconds": "Seconds since the least recently compared block was compared",
    }
    families = {
        name: GaugeMetricFamily(f"lookout_coverage_{name}", what, labels=["service", "chain"])
        for name, what in gauges.items()
    }
    for note in notes:
        gaps, labels = gaps_of(note.coverage), [note.check.service, chain_label(note.check)]
        waited_ms = max(0, now - oldest_unchecked_at(note.coverage, note.first_block))
        families["checked_blocks"].add_metric(labels, checked_blocks(note.coverage))
        families["missing"].add_metric(labels, gaps.missing)
        families["extra"].add_metric(labels, gaps.extra)
        families["oldest_unchecked_seconds"].add_metric(labels, waited_ms / 1000)
    yield from families.values()
