"""What is monitored and by which thresholds: the configuration as the rules need it."""

from msgspec import Struct

from lookout.core.heads import Pace
from lookout.core.model import Check
from lookout.core.services import Service, all_checks


class Limits(Struct, frozen=True):
    """The status policy's thresholds (S16), and how often and how long the monitor probes, publishes and waits."""

    recheck_ms: int
    jitter_ms: int
    backoff_cap_ms: int
    probe_timeout_ms: int
    row_lifetime_ms: int
    failures_for_unavailable: int
    allowance_blocks: int
    allowance_ms: int
    degraded_lag_ms: int
    degraded_evaluations: int
    ppoi_behind_ms: int
    head_max_age_ms: int
    heartbeat_ms: int
    blind_after_ms: int  # 0: never blind (M13)
    endpoint_alert_ms: int = 3_600_000

    def wait_ms(self, failures: int, chance: float) -> int:
        """How long after a probe ended the next one begins (M1, M2).

        ``failures`` counts the consecutive failed probes before now; ``chance`` is from 0 up to 1 and spreads the
        probes over the jitter. Counted from the end of a probe, a row's greatest age is the sum of wait, jitter, probe
        and publication (M15).
        """
        # Past 2**20 the cap has long been reached; a larger exponent would only cost time.
        doubled_ms = self.recheck_ms << min(max(failures - 1, 0), 20)
        longest_ms = max(self.backoff_cap_ms, self.recheck_ms)
        return min(doubled_ms, longest_ms) + int(chance * self.jitter_ms)


class Span(Struct, frozen=True):
    bucket_ms: int  # divides a day
    retention_days: int
    counts_from_ms: int
    hold_ms: int
    min_known_buckets: int


class Plan(Struct, frozen=True):
    """The chains with their configured block times, the monitored checks, and the thresholds."""

    chains: dict[int, Pace]
    monitored: frozenset[Check]
    confirmations: dict[Check, int]  # of checks that are compared with their chain's head
    limits: Limits
    span: Span
    own_services: tuple[Service, ...] = ()
    addresses: dict[Check, str] = {}  # fingerprints of the monitored checks' addresses

    def checks(self) -> tuple[Check, ...]:
        return all_checks(self.chains, self.own_services)
