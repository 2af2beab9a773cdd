"""What the monitor measures of itself, for Prometheus; docs/operations.md says what each means.

Labels are the contract's words, chain ids and their names: an address or a header is never among them.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from prometheus_client import CollectorRegistry, Gauge
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
from lookout.monitor.series import Series
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
