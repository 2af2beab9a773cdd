"""Whether a wallet may use what it needs now."""

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
    """What stands in the way of using the services on this chain: each check that is not current.

    One that is unmonitored, unknown, unreadable or not in the report is not current. A service with one row for all
    chains, such as messaging, is found by itself. ``received_ago_ms`` and ``clock_ahead_ms`` are as in
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
    """Where it has to be current; one that is not the contract's may have a row for each chain, or a shared one."""
    if service == SHARED_SERVICE:
        return [None]
    found = [] if service in SERVICES else [each for each in (chain, None) if (service, each) in rows]
    return found or [chain]
