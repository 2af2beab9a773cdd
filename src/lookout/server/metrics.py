"""What a server measures of itself, for Prometheus; docs/operations.md says what each means."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lookout.base.admin_port import Readiness
from lookout.base.clock import Clock
from lookout.server.shared import Counts


class ServerInstruments(Collector):
    """The server's metrics in a registry, summed over its processes at each scrape."""

    def __init__(self, registry: CollectorRegistry, counts: Counts, clock: Clock) -> None:
        self._counts = counts
        self._clock = clock
        registry.register(self)

    def readiness(self, max_age_s: float | None) -> Readiness:
        """Whether every process has a live report to answer with, and one that is young enough."""
        loaded = self._counts.summarize(self._clock.elapsed_ms()).generated_at
        if len(loaded) < self._counts.processes:
            return Readiness(False, f"{len(loaded)} of {self._counts.processes} processes are there", None)
        ages_s = [self._age_s(at) for at in loaded if at is not None]
        if len(ages_s) < len(loaded):
            return Readiness(False, "no live report was loaded yet", None)
        age_s = max(ages_s)
        if max_age_s is not None and age_s > max_age_s:
            return Readiness(False, f"the live report is older than {max_age_s:g} s", age_s)
        return Readiness(True, "the live report is served", age_s)

    def collect(self) -> Iterable[Metric]:
        totals = self._counts.summarize(self._clock.elapsed_ms())
        requests = CounterMetricFamily("lookout_requests", "Requests answered", labels=["route", "code"])
        for (route, code), number in totals.requests.items():
            requests.add_metric([route, str(code)], number)
        yield requests
        yield CounterMetricFamily(
            "lookout_store_read_errors", "Times that the store could not be read", value=totals.store_errors
        )
        closed = CounterMetricFamily(
            "lookout_connections_closed", "Connections closed so that others are let in", labels=["reason"]
        )
        for reason, number in totals.closed.items():
            closed.add_metric([reason], number)
        yield closed
        yield GaugeMetricFamily("lookout_connections", "Connections that are open", totals.connections)
        yield GaugeMetricFamily("lookout_workers", "Processes that answer requests", len(totals.generated_at))
        age = GaugeMetricFamily("lookout_report_age_seconds", "How old the oldest live report is that is served")
        ages_s = [self._age_s(at) for at in totals.generated_at if at is not None]
        if ages_s:
            age.add_metric([], max(ages_s))
        yield age

    def _age_s(self, generated_at: int) -> float:
        return max(0, self._clock.now() - generated_at) / 1000
