"""One status for many rows, over the chains of the client's own allowlist (C11)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from lookout_reader.document import Check, Unreadable, UnreadableRow, rows_by_check
from lookout_reader.report import LiveReport, Row
from lookout_reader.status import effective_status
from lookout_reader.statuses import EFFECTIVE_STATUSES, EffectiveStatus

#: The contract's services, which every report has; messaging is one check for all chains.
SERVICES: Final = ("messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer")
MAINNETS: Final = (1, 42161, 137, 56)
TEST_NETWORK: Final = 11155111

SHARED_SERVICE: Final = "messaging"

Presence = Literal["readable", "unreadable", "missing"]


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """What one check that belongs to the roll-up came to; if it is missing or unreadable, unknown."""

    service: str
    chain_id: int | None
    effective: EffectiveStatus
    presence: Presence


@dataclass(frozen=True, slots=True)
class ServiceSummary:
    """The worst of one service's checks."""

    service: str
    status: EffectiveStatus
    checks: tuple[CheckSummary, ...]

    @property
    def healthy(self) -> bool:
        return self.status == "current"


@dataclass(frozen=True, slots=True)
class RollUp:
    """The worst of all services, and how many checks came to which status."""

    status: EffectiveStatus
    chains: tuple[int, ...]
    services: tuple[ServiceSummary, ...]
    counts: Mapping[EffectiveStatus, int]

    @property
    def healthy(self) -> bool:
        return self.status == "current"


def roll_up(
    report: LiveReport | Unreadable | None,
    now: float,
    received_ago_ms: float | None = 0,
    *,
    chains: Iterable[int] = MAINNETS,
    services: Iterable[str] | None = None,
    include_test_network: bool = False,
) -> RollUp:
    """One status for each service and for all: for status pages. It is no gate, for which there is ``can_use``.

    These are the ``services`` that you name; or the contract's five and whatever else the report has, of no chain or on
    these chains. A row that is missing or unreadable counts as unknown, and with anything but current rows nothing is
    healthy. Unmonitored rows are neither failure nor health. A service that has a row of no chain is expected on no
    chain, but what it has on these chains counts. Sepolia is left out, even if listed, unless you include it on
    purpose. ``received_ago_ms`` is as in ``effective_status``. Only the report and ``now`` are needed.
    """
    rows = rows_by_check(report) if isinstance(report, LiveReport) else {}
    allowed = tuple(chain_id for chain_id in dict.fromkeys(chains) if include_test_network or chain_id != TEST_NETWORK)
    expected = SERVICES if services is None else tuple(services)
    found = (service for service, chain_id in rows if services is None and chain_id in (None, *allowed))
    summaries = []
    for service in dict.fromkeys((*expected, *found)):
        scope = _scope(service, allowed, rows, is_expected=service in expected)
        checks = tuple(
            summarize_check((service, chain_id), rows.get((service, chain_id)), now, received_ago_ms)
            for chain_id in scope
        )
        summaries.append(ServiceSummary(service, worst_of(check.effective for check in checks), checks))
    times = Counter(check.effective for summary in summaries for check in summary.checks)
    counts = {status: times[status] for status in EFFECTIVE_STATUSES}
    statuses = [summary.status for summary in summaries]
    if services is None and isinstance(report, LiveReport) and any(map(_is_anyones, report.rows)):
        statuses.append("unknown")
    return RollUp(worst_of(statuses), allowed, tuple(summaries), counts)


def _scope(
    service: str, allowed: tuple[int, ...], rows: Collection[Check], *, is_expected: bool
) -> tuple[int | None, ...]:
    """Where the service counts: on every chain if it is expected there, otherwise where it has rows."""
    if is_expected and service != SHARED_SERVICE and (service, None) not in rows:
        return allowed
    here: tuple[int | None, ...] = (None, *allowed)
    return tuple(each for each in here if (service, each) in rows or (service, each) == (SHARED_SERVICE, None))


def _is_anyones(row: Row | UnreadableRow) -> bool:
    """Nobody knows which check it is of. One of the contract's five would be missing, and count as that."""
    return row.check is None and row.service not in SERVICES


def summarize_check(
    check: Check, row: Row | UnreadableRow | None, now: float, received_ago_ms: float | None
) -> CheckSummary:
    presence: Presence = "missing" if row is None else "readable" if isinstance(row, Row) else "unreadable"
    return CheckSummary(*check, effective_status(row, now, received_ago_ms), presence)


def worst_of(statuses: Iterable[EffectiveStatus]) -> EffectiveStatus:
    found = set(statuses)
    return next((status for status in EFFECTIVE_STATUSES if status in found), "unknown")
