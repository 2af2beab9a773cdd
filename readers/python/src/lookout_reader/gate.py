"""Whether a wallet may use its services now."""

from collections.abc import Collection, Iterable

from lookout_reader.document import Check, Unreadable, rows_by_check
from lookout_reader.report import LiveReport
from lookout_reader.rollup import SERVICES, SHARED_SERVICE, CheckSummary, Clocks, summarize_check


def can_use(
    report: LiveReport | Unreadable | None,
    now: float,
    received_ago_ms: float | None = 0,
    clock_ahead_ms: float | None = None,
    *,
    chain: int,
    services: Iterable[str],
) -> bool:
    """Whether every one of the services is current on this chain: true only if nothing stands in the way."""
    return not obstacles_of(report, now, received_ago_ms, clock_ahead_ms, chain=chain, services=services)


def obstacles_of(
    report: LiveReport | Unreadable | None,
    now: float,
    received_ago_ms: float | None = 0,
    clock_ahead_ms: float | None = None,
    *,
    chain: int,
    services: Iterable[str],
) -> tuple[CheckSummary, ...]:
    """The checks that block the services on this chain, since they are not current.

    An unmonitored, unknown, unreadable or missing check is not current. The row of a service for all chains, such as
    messaging, is found automatically. ``received_ago_ms`` and ``clock_ahead_ms`` are as in
    ``effective_status``.
    """
    named = () if isinstance(services, str) else tuple(services)
    if not named:
        raise ValueError("services: no list of names given")
    if not isinstance(chain, int | None):
        raise TypeError(f"chain: {chain} ({type(chain).__name__}) is not a number")
    rows = rows_by_check(report) if isinstance(report, LiveReport) else {}
    clocks = Clocks(now, received_ago_ms, clock_ahead_ms)
    summaries = (
        summarize_check((service, chain_id), rows.get((service, chain_id)), clocks)
        for service in named
        for chain_id in _chains(service, chain, rows)
    )
    return tuple(summary for summary in summaries if summary.effective != "current")


def _chains(service: str, chain: int, rows: Collection[Check]) -> list[int | None]:
    """Where the service has to be current; an operator's own may have a row per chain, or a shared one."""
    if service == SHARED_SERVICE:
        return [None]
    found = [] if service in SERVICES else [chain_id for chain_id in (chain, None) if (service, chain_id) in rows]
    return found or [chain]
