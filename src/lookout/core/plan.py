"""What is monitored and by which thresholds: the configuration as the rules need it."""

from msgspec import Struct

from lookout.core.heads import Pace
from lookout.core.model import Check
from lookout.core.services import Service, all_checks


class Limits(Struct, frozen=True):
    """The status policy's thresholds (S16)."""

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
