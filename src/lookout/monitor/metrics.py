"""What the monitor measures of itself, for Prometheus; docs/operations.md explains them.

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
from lookout.config.settings import Upstreams
from lookout.core.causes import code_of
from lookout.core.heads import ChainProgress
from lookout.core.history import Uptime
from lookout.core.model import Answer, Blocks, Check, Failed, Found, Indexes, Row, Status
from lookout.core.services import SERVICES, Service
from lookout.features.feature import Declared, Feature
from lookout.features.outcome import Sample, chain_label, row_labels
from lookout.features.registry import FEATURES
from lookout.monitor.board import Board
from lookout.protocols.client.failure import LACKING, Lacking
from lookout.public.about import ChainDescription
from lookout.state.log import Outcome, outcome_of

AnswerOutcome = Literal["answered", "failed"]
ReloadOutcome = Literal["applied", "refused"]
_WINDOWS: Final = {field.name: field.encode_name for field in fields(Uptime)}

# The help text and the labels.
_COUNTERS: Final[Declared] = {
    "lookout_probes_total": ("Probes of a check, by what they found", "service", "outcome"),
    "lookout_probe_failures_total": ("Failed probes of a check, by their cause", "service", "chain", "cause"),
    "lookout_endpoint_reads_total": ("Readings of an RPC endpoint", "chain", "endpoint", "outcome"),
    "lookout_endpoint_failures_total": (
        "Readings of an RPC endpoint that failed, by their cause",
        *("chain", "endpoint", "cause"),
    ),
    "lookout_head_reads_total": ("Readings of RPC endpoints", "chain", "outcome"),
    "lookout_probe_bugs_total": ("Probes and readings that died of a bug",),
    "lookout_own_faults_total": (
        "Probes and readings that were lost because of a fault of the monitor's own machine",
        "lacking",
    ),
    "lookout_publications_total": ("Publications made",),
    "lookout_store_errors_total": ("Publications not stored",),
    "lookout_pings_total": ("Pings that say that the monitor lives", "outcome"),
    "lookout_reloads_total": ("Times the configuration was read again", "outcome"),
}
_HISTOGRAMS: Final[Declared] = {
    "lookout_probe_duration_seconds": ("How long a source took to answer, or to fail", "service", "chain"),
    "lookout_endpoint_read_duration_seconds": ("How long a reading of an RPC endpoint took", "chain", "endpoint"),
    "lookout_scheduler_delay_seconds": ("How late a probe or a reading began that was due",),
    "lookout_store_write_duration_seconds": ("How long the store took for a publication, or to fail",),
}
_BUCKETS_S: Final[dict[str, tuple[float, ...]]] = {
    # A probe times out after 10 s (M3).
    "lookout_probe_duration_seconds": (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15),
    "lookout_endpoint_read_duration_seconds": (0.1, 0.5, 2.5, 10),  # few buckets, since there are many endpoints
    "lookout_scheduler_delay_seconds": (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    "lookout_store_write_duration_seconds": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
}
# Made at each scrape from the last publication. Unknown values have no sample.
_GAUGES: Final[Declared] = {
    "lookout_rows": ("Rows of the last publication, by status; an expired one is unknown", "status"),
    "lookout_row_status": (
        "1 for the status of each row in the last publication; an expired one is unknown",
        *("service", "chain", "status"),
    ),
    # A row has at most one of the next two: a ppoi node's indexes are not blocks.
    "lookout_row_lag_blocks": (
        "How many blocks a row is behind the head that it is compared with",
        *("service", "chain"),
    ),
    "lookout_row_lag_indexes": ("How many indexes a row is behind its own head", "service", "chain"),
    "lookout_row_lag_seconds": (
        "How long the chain takes, at its pace, for the blocks that a row is behind",
        *("service", "chain"),
    ),
    "lookout_row_position": ("How far a row is", "service", "chain"),
    "lookout_row_head": ("What the position of a row is compared with", "service", "chain"),
    "lookout_row_expires_timestamp_seconds": ("When a row expires", "service", "chain"),
    "lookout_head_agreed": ("1 while a chain has a head that positions are compared with, else 0", "chain"),
    "lookout_head_height": ("The block that a chain's endpoints agree on", "chain"),
    "lookout_chain_stands": ("1 while the agreed head of a chain does not rise, else 0", "chain"),
    "lookout_head_block_timestamp_seconds": ("The timestamp of the agreed head's block", "chain"),
    "lookout_row_uptime_ratio": ("The uptime of a row, as the history has it", "service", "chain", "window"),
    "lookout_endpoint_height": ("The newest block of an RPC endpoint, while it answers", "chain", "endpoint"),
    "lookout_endpoint_lag_blocks": (
        "How many blocks an RPC endpoint is below the agreed head; negative if above",
        *("chain", "endpoint"),
    ),
    "lookout_endpoint_standing": (
        "1 for what the latest answer of an RPC endpoint counts for",
        *("chain", "endpoint", "standing"),
    ),
    "lookout_source_doubt": ("1 for each cause for which something is wrong with a source", "source", "cause"),
    "lookout_source_certificate_expires_timestamp_seconds": (
        "Until when the certificate of a source is valid",
        "source",
    ),
    "lookout_chain_info": ("1 for each chain, with its name", "chain", "name", "test_network"),
    "lookout_standby": ("1 while another monitor has the store",),
    "lookout_publication_timestamp_seconds": ("When the last publication was made",),
    "lookout_stored_publication_timestamp_seconds": ("When the last publication that was stored had been made",),
    "lookout_publication_age_seconds": ("How old the last stored publication is",),
    "lookout_config_loaded_timestamp_seconds": ("When the configuration in force was read",),
    "lookout_config_last_reload_successful": (
        "1 if the configuration that was read last is in force, 0 if it was refused",
    ),
}


class Publication(NamedTuple):
    at: int
    made_ms: int  # on the clock that never jumps
    rows: tuple[Row, ...]
    chains: Mapping[int, ChainProgress]


class Instruments(Collector):
    """The monitor's metrics in a registry. Call it on the event loop; scrapes come from other threads."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self.board = Board()
        self._clock = clock
        self._published: Publication | None = None
        self._stored: Publication | None = None
        self._uptimes: Mapping[Check, Uptime] = {}
        self._answers: Mapping[str, type[Answer]] = {service.name: service.answer for service in SERVICES}
        self._own_fault_ms: int | None = None  # when the last one was, on the clock that never jumps
        self._known: dict[str, float] = {"lookout_standby": 0}  # gauges without labels
        self._of_features: dict[type[Feature], tuple[Sample, ...]] = {}
        self._chains: tuple[ChainDescription, ...] = ()
        self._counters = {
            name: Counter(name, what, labels, registry=registry)
            for declared in (_COUNTERS, *(feature.counters for feature in FEATURES))
            for name, (what, *labels) in declared.items()
        }
        self._gauges = {
            name: labelled
            for declared in (_GAUGES, *(feature.gauges for feature in FEATURES))
            for name, labelled in declared.items()
        }
        self._gauges_in_use = dict(item for feature in FEATURES for item in feature.gauges_in_use.items())
        self._histograms = {
            name: Histogram(name, what, labels, buckets=_BUCKETS_S[name], registry=registry)
            for name, (what, *labels) in _HISTOGRAMS.items()
        }
        self._tasks = Gauge("lookout_tasks", "Tasks of the event loop", registry=registry)
        self._declare(SERVICES)
        for lacking in LACKING:
            self.count("lookout_own_faults_total", lacking, by=0)
        for outcome in get_args(ReloadOutcome):
            self.count("lookout_reloads_total", outcome, by=0)
        registry.register(self)

    def describe_watched(
        self, chains: tuple[ChainDescription, ...], own_services: Iterable[Service], upstreams: Upstreams
    ) -> None:
        """Set what is monitored from now on. Most series begin at 0, so that a rate includes the first event. Causes
        are too many for that: the rate of all failures includes their first event."""
        self.board.begin()
        self._chains = chains
        services = (*SERVICES, *own_services)
        self._answers = {service.name: service.answer for service in services}
        self._declare(services)
        for endpoint in upstreams.endpoints:
            labels = str(endpoint.chain_id), endpoint.name
            for outcome in get_args(AnswerOutcome):
                self.count("lookout_head_reads_total", labels[0], outcome, by=0)
                self.count("lookout_endpoint_reads_total", *labels, outcome, by=0)
            self._histograms["lookout_endpoint_read_duration_seconds"].labels(*labels)

    def _declare(self, services: Iterable[Service]) -> None:
        for service in services:
            for outcome in get_args(Outcome):
                if outcome != "missing-list" or service.has_required_list:
                    self.count("lookout_probes_total", service.name, outcome, by=0)

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Count one, or 0 to create the series before the first event, so that a rate includes it."""
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(by)

    def measure(self, name: str, took_ms: int, *labels: str) -> None:
        histogram = self._histograms[name]
        (histogram.labels(*labels) if labels else histogram).observe(max(0, took_ms) / 1000)

    def count_tasks_of(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show the number of this loop's tasks at every scrape."""
        self._tasks.set_function(lambda: len(asyncio.all_tasks(loop)))

    def count_probe(self, checks: Sequence[Check], took_ms: int, found: Mapping[Check, Found]) -> None:
        """Count a probe of a source, which answers for these checks."""
        chain = chain_label(checks[0]) if len(checks) == 1 else ""
        self.measure("lookout_probe_duration_seconds", took_ms, checks[0].service, chain)
        for check, what in found.items():
            self.count("lookout_probes_total", check.service, outcome_of(what))
            if isinstance(what, Failed):
                self.count("lookout_probe_failures_total", check.service, chain_label(check), code_of(what.error))

    def count_reading(self, chain_id: int, endpoint: str, took_ms: int, cause: str | None) -> None:
        """Count a reading of an endpoint; ``cause`` is the code of why it failed."""
        chain = str(chain_id)
        outcome: AnswerOutcome = "answered" if cause is None else "failed"
        self.count("lookout_head_reads_total", chain, outcome)
        self.count("lookout_endpoint_reads_total", chain, endpoint, outcome)
        self.measure("lookout_endpoint_read_duration_seconds", took_ms, chain, endpoint)
        if cause is not None:
            self.count("lookout_endpoint_failures_total", chain, endpoint, cause)

    def count_own_fault(self, lacking: Lacking) -> None:
        self.count("lookout_own_faults_total", lacking)
        if lacking != "time":  # a pause is over; other faults last until they are repaired
            self._own_fault_ms = self._clock.elapsed_ms()

    def is_exhausted(self, recheck_ms: int) -> bool:
        """Whether a local resource ran out within two waits between probes (M17)."""
        last_ms = self._own_fault_ms
        return last_ms is not None and self._clock.elapsed_ms() - last_ms < 2 * recheck_ms

    def published(self, at: int, rows: tuple[Row, ...], chains: Mapping[int, ChainProgress]) -> Publication:
        self.count("lookout_publications_total")
        self._published = Publication(at, self._clock.elapsed_ms(), rows, chains)
        return self._published

    def set_uptimes(self, uptimes: Mapping[Check, Uptime]) -> None:
        """Set the uptimes of the newest history."""
        self._uptimes = uptimes

    def stored(self, publication: Publication, took_ms: int) -> None:
        self.measure("lookout_store_write_duration_seconds", took_ms)
        self._stored = publication

    def not_stored(self, took_ms: int) -> None:
        self.measure("lookout_store_write_duration_seconds", took_ms)
        self.count("lookout_store_errors_total")

    def set_samples(self, feature: type[Feature], samples: tuple[Sample, ...]) -> None:
        """Set all gauges of a feature that are not the board's."""
        self._of_features[feature] = samples

    def count_ping(self, outcome: AnswerOutcome) -> None:
        for possible in get_args(AnswerOutcome):
            self.count("lookout_pings_total", possible, by=possible == outcome)

    def count_reload(self, outcome: ReloadOutcome) -> None:
        self.count("lookout_reloads_total", outcome)
        self._known["lookout_config_last_reload_successful"] = outcome == "applied"

    def set_config_loaded(self, at: int, *, last_reload_successful: bool) -> None:
        """Set when the settings in force were read. The file may have been refused since."""
        self._known["lookout_config_loaded_timestamp_seconds"] = at / 1000
        self._known["lookout_config_last_reload_successful"] = last_reload_successful

    def readiness(self, max_age_s: float | None) -> Readiness:
        """Whether this process stored a publication recently enough."""
        if self._stored is None:
            return Readiness(False, "nothing was stored yet", None)
        age_s = self._age_s(self._stored)
        if max_age_s is not None and age_s > max_age_s:
            return Readiness(False, f"the last stored publication is older than {max_age_s:g} s", age_s)
        return Readiness(True, "a publication was stored", age_s)

    def collect(self) -> Iterable[Metric]:
        declared = self._gauges | self._gauges_in_use
        families = {name: GaugeMetricFamily(name, what, labels=labels) for name, (what, *labels) in declared.items()}
        for name, labels, value in self._samples():
            families[name].add_metric(labels, value)
        return [family for name, family in families.items() if family.samples or name in self._gauges]

    def _samples(self) -> Iterator[Sample]:
        published, stored, now = self._published, self._stored, self._clock.now()
        rows, chains = ((), {}) if published is None else (published.rows, published.chains)
        counts = Tally(_status_of(row, now) for row in rows)
        yield from (("lookout_rows", [status], counts[status]) for status in get_args(Status))
        for row in rows:
            yield from _sample_row(row, self._answers.get(row.check.service), chains, now)
        for chain_id, (head, _, stands_since_at) in chains.items():
            yield "lookout_head_agreed", [str(chain_id)], head is not None
            if head is not None:
                yield "lookout_head_height", [str(chain_id)], head.height
                yield "lookout_head_block_timestamp_seconds", [str(chain_id)], head.block_at / 1000
                yield "lookout_chain_stands", [str(chain_id)], stands_since_at is not None
        for check, uptime in self._uptimes.items():
            for name, window in _WINDOWS.items():
                if (share := getattr(uptime, name)) is not None:
                    yield "lookout_row_uptime_ratio", [*row_labels(check), window], share
        yield from self.board.samples(now)
        for samples in self._of_features.copy().values():
            yield from samples
        for chain in self._chains:
            yield "lookout_chain_info", [str(chain.id), chain.name, "true" if chain.test_network else "false"], 1
        yield from ((name, [], value) for name, value in self._known.copy().items())
        if published is not None:
            yield "lookout_publication_timestamp_seconds", [], published.at / 1000
        if stored is not None:
            yield "lookout_stored_publication_timestamp_seconds", [], stored.at / 1000
            yield "lookout_publication_age_seconds", [], self._age_s(stored)

    def _age_s(self, publication: Publication) -> float:
        return (self._clock.elapsed_ms() - publication.made_ms) / 1000


def _status_of(row: Row, now: int) -> Status:
    """As the history counts it (H17)."""
    return "unknown" if row.has_expired(now) else row.status


def _sample_row(
    row: Row, answer: type[Answer] | None, chains: Mapping[int, ChainProgress], now: int
) -> Iterator[Sample]:
    """The figures of an expired row are unknown, and omitted."""
    labels = row_labels(row.check)
    yield "lookout_row_status", [*labels, _status_of(row, now)], 1
    if row.expires_at is not None:
        yield "lookout_row_expires_timestamp_seconds", labels, row.expires_at / 1000
    if row.has_expired(now):
        return
    position, head, chain_id = row.metrics.position, row.metrics.head, row.check.chain_id
    if position is UNSET:
        return
    yield "lookout_row_position", labels, position
    if head is UNSET:
        return
    yield "lookout_row_head", labels, head
    lag = max(0, head - position)  # R11
    if answer is Indexes:
        yield "lookout_row_lag_indexes", labels, lag
    if answer is Blocks and chain_id is not None:
        pace = chains[chain_id].pace
        yield "lookout_row_lag_blocks", labels, lag
        yield "lookout_row_lag_seconds", labels, lag * pace.ms / pace.blocks / 1000
