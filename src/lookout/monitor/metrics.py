"""What the monitor measures of itself, for Prometheus; docs/operations.md says what each means.

Labels are the contract's words, chain ids and their names: an address or a header is never among them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lookout.base.admin_port import Readiness
from lookout.base.clock import Clock
from lookout.core.heads import ChainProgress
from lookout.core.history import Uptime
from lookout.core.model import Answer, Check, Found, Row
from lookout.core.services import SERVICES, Service
from lookout.monitor.board import Board
from lookout.monitor.coverage_metrics import collect_coverages
from lookout.monitor.endpoint_metrics import collect_endpoints
from lookout.monitor.publication_metrics import chain_label, collect_heads, collect_rows, collect_uptimes
from lookout.monitor.sources import Built
from lookout.protocols.client.failure import LACKING, Lacking
from lookout.public.about import ChainDescription
from lookout.state.log import Outcome, outcome_of

MessageOutcome = Literal["sent", "retried", "given-up", "dropped"]
HeadOutcome = Literal["answered", "failed"]
PingOutcome = Literal["answered", "failed"]
ReloadOutcome = Literal["applied", "refused"]

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
        "Probes and readings that could not be made for want of something of the monitor's own",
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


class _Publication(NamedTuple):
    at: int
    made_ms: int  # on the clock that never jumps
    rows: tuple[Row, ...]
    chains: Mapping[int, ChainProgress]


class Instruments(Collector):
    """The monitor's metrics in a registry. It is called on the event loop; scrapes come from other threads."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self.board = Board()
        self._clock = clock
        self._published: _Publication | None = None
        self._stored: _Publication | None = None
        self._uptimes: Mapping[Check, Uptime] = {}
        self._answers: Mapping[str, type[Answer]] = {service.name: service.answer for service in SERVICES}
        self._own_fault_ms: int | None = None  # the last, on the clock that never jumps
        self._config_loaded_s: float | None = None
        self._last_reload_successful: bool | None = None
        self._firing = 0
        self._waiting: Mapping[str, int] = {}
        self._chains: tuple[ChainDescription, ...] = ()
        self._counters = {
            name: Counter(name, what, labels, registry=registry) for name, (what, *labels) in _COUNTERS.items()
        }
        self._histograms = {
            name: Histogram(name, what, labels, buckets=_BUCKETS_S[name], registry=registry)
            for name, (what, *labels) in _HISTOGRAMS.items()
        }
        self._labels: dict[str, set[tuple[str, ...]]] = defaultdict(set)  # of the series that there are
        self._tasks = Gauge("lookout_tasks", "Tasks of the event loop", registry=registry)
        self._declare(SERVICES)
        for lacking in LACKING:
            self._count("lookout_own_faults_total", lacking, by=0)
        for reload_outcome in get_args(ReloadOutcome):
            self._count("lookout_reloads_total", reload_outcome, by=0)
        registry.register(self)

    def describe_watched(
        self, chains: tuple[ChainDescription, ...], own_services: Iterable[Service], built: Built
    ) -> None:
        """What is watched from now on. Of what left there is no series any more; what came begins at 0, so that a rate
        sees the first of it. Causes are too many for that: there the rate of all failures sees the first."""
        self._chains = chains
        services = (*SERVICES, *own_services)
        self._answers = {service.name: service.answer for service in services}
        endpoints = {(str(each.chain_id), each.name) for each in built.endpoints}
        rows = {(check.service, chain_label(check)) for source in built.sources for check in source.checks}
        sources = {_source_labels(source.checks) for source in built.sources}
        self._keep_only("lookout_probes_total", {(service.name,) for service in services}, 1)
        self._keep_only("lookout_probe_failures_total", rows, 2)
        self._keep_only("lookout_probe_duration_seconds", sources, 2)
        self._keep_only("lookout_head_reads_total", {(chain,) for chain, _ in endpoints}, 1)
        for name in ("reads_total", "failures_total", "read_duration_seconds"):
            self._keep_only(f"lookout_endpoint_{name}", endpoints, 2)
        self._keep_only("lookout_coverage_requests_total", endpoints, 2)
        self._declare(services)
        for chain, endpoint in endpoints:
            for outcome in get_args(HeadOutcome):
                self._count("lookout_head_reads_total", chain, outcome, by=0)
                self._count("lookout_endpoint_reads_total", chain, endpoint, outcome, by=0)
            self._durations("lookout_endpoint_read_duration_seconds", chain, endpoint)

    def _declare(self, services: Iterable[Service]) -> None:
        for service in services:
            for outcome in get_args(Outcome):
                if outcome != "missing-list" or service.has_required_list:
                    self._count("lookout_probes_total", service.name, outcome, by=0)

    def count_tasks_of(self, loop: asyncio.AbstractEventLoop) -> None:
        """Whenever they are asked for."""
        self._tasks.set_function(lambda: len(asyncio.all_tasks(loop)))

    def count_probe(self, checks: Sequence[Check], took_ms: int, found: Mapping[Check, Found]) -> None:
        """``checks`` is what the source answers for."""
        self._durations("lookout_probe_duration_seconds", *_source_labels(checks)).observe(took_ms / 1000)
        for check, what in found.items():
            self._count("lookout_probes_total", check.service, outcome_of(what))

    def count_probe_failure(self, check: Check, cause: str) -> None:
        self._count("lookout_probe_failures_total", check.service, chain_label(check), cause)

    def count_reading(self, chain_id: int, endpoint: str, took_ms: int, cause: str | None) -> None:
        """``cause`` is the code of why it failed."""
        chain = str(chain_id)
        outcome: HeadOutcome = "answered" if cause is None else "failed"
        self._count("lookout_head_reads_total", chain, outcome)
        self._count("lookout_endpoint_reads_total", chain, endpoint, outcome)
        self._durations("lookout_endpoint_read_duration_seconds", chain, endpoint).observe(took_ms / 1000)
        if cause is not None:
            self._count("lookout_endpoint_failures_total", chain, endpoint, cause)

    def count_coverage_request(self, chain_id: int, endpoint: str, *, has_failed: bool) -> None:
        outcome: HeadOutcome = "failed" if has_failed else "answered"
        self._count("lookout_coverage_requests_total", str(chain_id), endpoint, outcome)

    def measure_delay(self, by_ms: int) -> None:
        self._durations("lookout_scheduler_delay_seconds").observe(max(0, by_ms) / 1000)

    def count_crash(self) -> None:
        self._count("lookout_probe_bugs_total")

    def count_own_fault(self, lacking: Lacking) -> None:
        self._count("lookout_own_faults_total", lacking)
        self._own_fault_ms = self._clock.elapsed_ms()

    def is_exhausted(self, within_s: float) -> bool:
        """Whether the monitor lacked something of its own that lately (M17)."""
        last_ms = self._own_fault_ms
        return last_ms is not None and self._clock.elapsed_ms() - last_ms < within_s * 1000

    def published(self, at: int, rows: tuple[Row, ...], chains: Mapping[int, ChainProgress]) -> None:
        self._count("lookout_publications_total")
        self._published = _Publication(at, self._clock.elapsed_ms(), rows, chains)

    def set_uptimes(self, uptimes: Mapping[Check, Uptime]) -> None:
        """What the history says that was made last."""
        self._uptimes = uptimes

    def stored(self, took_ms: int) -> None:
        """The last publication is in the store."""
        self._durations("lookout_store_write_duration_seconds").observe(took_ms / 1000)
        self._stored = self._published

    def not_stored(self, took_ms: int) -> None:
        self._durations("lookout_store_write_duration_seconds").observe(took_ms / 1000)
        self._count("lookout_store_errors_total")

    def count_alert_message(self, target: str, outcome: MessageOutcome) -> None:
        self._count("lookout_alert_messages_total", target, outcome)

    def count_sender_failure(self, target: str) -> None:
        self._count("lookout_alert_sender_failures_total", target)

    def set_alert_gauges(self, firing: int, waiting: Mapping[str, int]) -> None:
        """How many episodes were reported and go on, and how many messages wait for each target."""
        for target in waiting.keys() - self._waiting.keys():
            for outcome in get_args(MessageOutcome):  # all are there from the first on
                self._count("lookout_alert_messages_total", target, outcome, by=0)
            self._count("lookout_alert_sender_failures_total", target, by=0)
        self._firing, self._waiting = firing, waiting

    def count_ping(self, outcome: PingOutcome) -> None:
        for each in get_args(PingOutcome):
            self._count("lookout_pings_total", each, by=each == outcome)

    def count_reload(self, outcome: ReloadOutcome) -> None:
        self._count("lookout_reloads_total", outcome)
        self._last_reload_successful = outcome == "applied"

    def set_config_loaded(self, at: int, *, last_reload_successful: bool) -> None:
        """The settings in force were read then. The file may have been refused since."""
        self._config_loaded_s = at / 1000
        self._last_reload_successful = last_reload_successful

    def readiness(self, max_age_s: float | None) -> Readiness:
        """Whether this process stored a publication, and lately enough."""
        age_s = self._age_s()
        if age_s is None:
            return Readiness(False, "nothing was stored yet", None)
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
        gauges: dict[str, tuple[str, float | None]] = {
            "lookout_publication_timestamp_seconds": (
                "When the last publication was made",
                None if published is None else published.at / 1000,
            ),
            "lookout_stored_publication_timestamp_seconds": (
                "When the last publication that was stored had been made",
                None if stored is None else stored.at / 1000,
            ),
            "lookout_publication_age_seconds": ("How old the last stored publication is", self._age_s()),
            "lookout_config_loaded_timestamp_seconds": (
                "When the configuration in force was read",
                self._config_loaded_s,
            ),
            "lookout_config_last_reload_successful": (
                "1 if the configuration that was read last is in force, 0 if it was refused",
                self._last_reload_successful,
            ),
            "lookout_alerts_firing": ("Episodes that were reported and go on", self._firing),
        }
        yield from (GaugeMetricFamily(name, what, value) for name, (what, value) in gauges.items())

    def _count(self, name: str, *labels: str, by: int = 1) -> None:
        """By 0, so that it is there from the beginning, and a rate sees the first."""
        counter = self._counters[name]
        self._labels[name].add(labels)
        (counter.labels(*labels) if labels else counter).inc(by)

    def _durations(self, name: str, *labels: str) -> Histogram:
        histogram = self._histograms[name]
        self._labels[name].add(labels)
        return histogram.labels(*labels) if labels else histogram

    def _keep_only(self, name: str, kept: Set[tuple[str, ...]], width: int) -> None:
        """Remove the series whose first labels, so many of them, are none of these."""
        metric = self._counters.get(name) or self._histograms[name]
        for labels in [each for each in self._labels[name] if each[:width] not in kept]:
            metric.remove(*labels)
            self._labels[name].remove(labels)

    def _age_s(self) -> float | None:
        stored = self._stored
        return None if stored is None else (self._clock.elapsed_ms() - stored.made_ms) / 1000


def _source_labels(checks: Sequence[Check]) -> tuple[str, str]:
    """The service of a source, and its chain, if it answers for a single one."""
    return checks[0].service, chain_label(checks[0]) if len(checks) == 1 else ""
