"""One status for many rows, over the chains of the client's own allowlist (C11)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lookout_reader.clocks import Clocks, clocks_of
from lookout_reader.document import Check, Unreadable, UnreadableRow, rows_by_check
from lookout_reader.report import LiveReport, Row
from lookout_reader.status import judge_row
from lookout_reader.statuses import EFFECTIVE_STATUSES, EffectiveStatus

#: The contract's services, which every report has; messaging is one check for all chains.
SERVICES: Final = ("messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer")
MAINNETS: Final = (1, 42161, 137, 56)
TEST_NETWORK: Final = 11155111

SHARED_SERVICE: Final = "messaging"

Presence = Literal["readable", "unreadable", "missing"]


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """One check of the roll-up with its effective status; unknown if it is missing or unreadable."""

    service: str
    chain_id: int | None
    effective: EffectiveStatus
    presence: Presence
    row: Row | UnreadableRow | None


@dataclass(frozen=True, slots=True)
class ServiceSummary:
    """The worst status of one service's checks."""

    service: str
    status: EffectiveStatus
    checks: tuple[CheckSummary, ...]

    @property
    def healthy(self) -> bool:
        return self.status == "current"


@dataclass(frozen=True, slots=True)
class RollUp:
    """The worst status of all services, and the number of checks by status."""

    status: EffectiveStatus
    chains: tuple[int, ...]
    services: tuple[ServiceSummary, ...]
    counts: Mapping[EffectiveStatus, int]

    @property
    def healthy(self) -> bool:
        return self.status == "current"


def roll_up(
    report: LiveReport | Unreadable | None,
    now: Clocks | float | None = None,
    received_ago_ms: float | None = None,
    clock_ahead_ms: float | None = None,
    *,
    chains: Iterable[int] = MAINNETS,
    services: Iterable[str] | None = None,
    include_test_network: bool = False,
) -> RollUp:
    """One status per service and for all, for status pages. It is no gate: use ``can_use`` for that.

    It is of the checks that ``count_checks`` finds; with anything but current rows nothing is healthy. Unmonitored rows
    are neither failure nor health, and so is a service without a check on these chains. Shared rows alone are healthy
    only if you name their services. Sepolia is left out, even if listed, unless you include it on purpose.
    ``now`` and what follows are as in ``effective_status``.
    """
    allowed = tuple(chain_id for chain_id in dict.fromkeys(chains) if include_test_network or chain_id != TEST_NETWORK)
    named = None if services is None else tuple(services)
    arrival = report.arrival if isinstance(report, LiveReport) else None
    clocks = clocks_of(arrival, now, received_ago_ms, clock_ahead_ms)
    checks, doubts = count_checks(report, allowed, named, clocks)
    by_service: dict[str, list[CheckSummary]] = {service: [] for service in (SERVICES if named is None else named)}
    for check in checks:
        by_service.setdefault(check.service, []).append(check)
    summaries = tuple(
        ServiceSummary(service, worst_of(check.effective for check in found) if found else "unmonitored", tuple(found))
        for service, found in by_service.items()
    )
    times = Counter(check.effective for check in checks)
    counts: dict[EffectiveStatus, int] = {status: times[status] for status in EFFECTIVE_STATUSES}
    worst = worst_of((*doubts, *(summary.status for summary in summaries)))
    return RollUp(worst if named is not None else require_chain(worst, checks), allowed, summaries, counts)


def count_checks(
    report: LiveReport | Unreadable | None, chains: Sequence[int], services: Sequence[str] | None, clocks: Clocks
) -> tuple[list[CheckSummary], Sequence[EffectiveStatus]]:
    """The checks that every summary counts, and the doubts.

    The checks are those of the named ``services``, or of the contract's five and all others in the report, without a
    chain or on these chains. The five are expected on every chain, and messaging once; so is another named service,
    unless it has a row without a chain. A missing or unreadable check is unknown. The doubts are "unknown" if a row's
    check cannot be read; a row of one of the five would be missing, and count as missing.
    """
    rows = rows_by_check(report) if isinstance(report, LiveReport) else {}
    scope = {None, *chains}
    expected = [
        check
        for service in (SERVICES if services is None else services)
        for check in ([(service, None)] if service == SHARED_SERVICE else [(service, chain_id) for chain_id in chains])
        if service in SERVICES or (service, None) not in rows
    ]
    found = (check for check in rows if check[1] in scope and (services is None or check[0] in services))
    counted = dict.fromkeys((*expected, *found))
    listed = report.rows if isinstance(report, LiveReport) and services is None else ()
    is_clear = all(row.check or row.service in SERVICES for row in listed)
    return [summarize_check(check, rows.get(check), clocks) for check in counted], () if is_clear else ("unknown",)


def summarize_check(check: Check, row: Row | UnreadableRow | None, clocks: Clocks) -> CheckSummary:
    presence: Presence = "missing" if row is None else "readable" if isinstance(row, Row) else "unreadable"
    return CheckSummary(*check, judge_row(row, clocks), presence, row)


def require_chain(worst: EffectiveStatus, checks: Iterable[CheckSummary]) -> EffectiveStatus:
    """The status of a summary of these checks, of which this is the worst: unmonitored instead of current if no check
    of a chain is current, since shared rows only worsen a summary."""
    is_seen = any(check.chain_id is not None and check.effective == "current" for check in checks)
    return "unmonitored" if worst == "current" and not is_seen else worst


def worst_of(statuses: Iterable[EffectiveStatus]) -> EffectiveStatus:
    found = set(statuses)
    worst_first: list[EffectiveStatus] = [status for status in EFFECTIVE_STATUSES if status in found]
    return worst_first[0] if worst_first else "unknown"
