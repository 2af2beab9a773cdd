"""What stands in the way of what a wallet needs."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from lookout_reader.clocks import Clocks, clocks_of
from lookout_reader.document import Check, Unreadable, rows_by_check
from lookout_reader.feed import FailureCode, wrong_clock
from lookout_reader.report import LiveReport
from lookout_reader.rollup import SERVICES, SHARED_SERVICE, CheckSummary, summarize_check
from lookout_reader.status import FUTURE_MS
from lookout_reader.statuses import EffectiveStatus

#: Stop for ``bad`` alone. For ``unknown`` warn, and let the user decide: it may be Lookout that is down.
Severity = Literal["bad", "warn", "unknown"]
#: Why nothing is known: this machine's clock is wrong; no usable answer got here; Lookout itself gives nothing new; or
#: the monitor works, but does not know, or does not watch it.
Cause = Literal["device-clock", "network", "monitor-silent", "not-observed"]

_SEVERITIES: Final[dict[EffectiveStatus, Severity]] = {"unavailable": "bad", "degraded": "warn", "catching-up": "warn"}
# One is made within 30 s, may be 60 s in caches, and is asked for every 30.
_REPORT_OLD_MS: Final = 120_000
# Lookout answered, but nothing that this reader can use. Any other failure may be this machine's network.
_ANSWERED: Final = ("not-available", "unexpected", "wrong-version", None)


@dataclass(frozen=True, slots=True)
class Needs:
    """All of these services on this chain; one with a single row, such as messaging, is found automatically."""

    chain: int
    services: Collection[str]


@dataclass(frozen=True, slots=True)
class Obstacle(CheckSummary):
    """A check that is not current. ``cause`` is that of what is unknown, None before the first answer."""

    severity: Severity
    cause: Cause | None


def can_use(
    report: LiveReport | Unreadable | None,
    needs: Needs | Clocks | float | None = None,
    received_ago_ms: float | None = None,
    clock_ahead_ms: float | None = None,
    *,
    chain: int | None = None,
    services: Iterable[str] | None = None,
    clocks: Clocks | None = None,
) -> bool:
    """Whether every one of the services is current on this chain: true only if nothing stands in the way."""
    return not obstacles_of(
        report, needs, received_ago_ms, clock_ahead_ms, chain=chain, services=services, clocks=clocks
    )


def obstacles_of(
    report: LiveReport | Unreadable | None,
    needs: Needs | Clocks | float | None = None,
    received_ago_ms: float | None = None,
    clock_ahead_ms: float | None = None,
    *,
    chain: int | None = None,
    services: Iterable[str] | None = None,
    report_code: FailureCode | None = None,
    clocks: Clocks | None = None,
) -> tuple[Obstacle, ...]:
    """The checks that stand in the way now: an unmonitored, unknown, unreadable or missing check is not current either.

    ``report_code`` is what is wrong with the last request. ``clocks`` are for tests. 2.0.0's call, with three
    numbers, ``chain`` and ``services``, is deprecated.
    """
    numbers: Clocks | float | None = clocks
    if isinstance(needs, Needs):
        chain, services = needs.chain, needs.services
    elif needs is not None:
        numbers = needs
    named = () if services is None or isinstance(services, str) else tuple(services)
    if not named:
        raise ValueError("services: no list of names given")
    if not isinstance(chain, int | None):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may have no types
        raise TypeError(f"chain: {chain} ({type(chain).__name__}) is not a number")
    rows = rows_by_check(report) if isinstance(report, LiveReport) else {}
    arrival = report.arrival if isinstance(report, LiveReport) else None
    judged_by = clocks_of(arrival, numbers, received_ago_ms, clock_ahead_ms)
    summaries = (
        summarize_check((service, chain_id), rows.get((service, chain_id)), judged_by)
        for service in named
        for chain_id in _chains(service, chain, rows)
    )
    return tuple(
        _obstacle(summary, report, report_code, judged_by) for summary in summaries if summary.effective != "current"
    )


def _obstacle(
    found: CheckSummary, report: LiveReport | Unreadable | None, report_code: FailureCode | None, clocks: Clocks
) -> Obstacle:
    severity = _SEVERITIES.get(found.effective, "unknown")
    cause = _cause(report, report_code, clocks) if severity == "unknown" else None
    return Obstacle(found.service, found.chain_id, found.effective, found.presence, found.row, severity, cause)


def _cause(report: LiveReport | Unreadable | None, report_code: FailureCode | None, clocks: Clocks) -> Cause | None:
    """Why nothing is known of a check; None if nothing was asked yet."""
    made_at = report.generated_at if isinstance(report, LiveReport) else None
    if wrong_clock(clocks.clock_ahead_ms) or (made_at is not None and made_at - clocks.now > FUTURE_MS):
        return "device-clock"
    if made_at is not None and max(clocks.now - made_at, clocks.received_ago_ms or 0) < _REPORT_OLD_MS:
        return "not-observed"
    if report is None and report_code is None:
        return None
    return "monitor-silent" if report_code in _ANSWERED else "network"


def _chains(service: str, chain: int | None, rows: Collection[Check]) -> list[int | None]:
    """Where the service has to be current; an operator's own may have a row per chain, or a shared one."""
    if service == SHARED_SERVICE:
        return [None]
    found = [] if service in SERVICES else [chain_id for chain_id in (chain, None) if (service, chain_id) in rows]
    return found or [chain]
