"""The counters and histograms of the monitor: which there are, and the series that each has."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

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
