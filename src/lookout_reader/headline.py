"""One sentence about the chains that count, which says no more than the rows do (C11)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lookout_reader.document import rows_by_check
from lookout_reader.report import LiveReport
from lookout_reader.rollup import MAINNETS, SERVICES, TEST_NETWORK, CheckSummary, roll_up, worst_of
from lookout_reader.statuses import BY_WORD, EFFECTIVE_STATUSES, EffectiveStatus


@dataclass(frozen=True, slots=True)
class Headline:
    """``text`` is about the ``checks``, which are the worst; ``others`` counts the rest, from worst to best.

    ``status`` is what to show beside it: of what is current and in doubt, unknown. ``services`` has the worst of each.
    ``chains`` are those that were counted, and ``missing`` are checks on them that are not in the report: of these
    nothing is known.
    """

    text: str
    status: EffectiveStatus
    checks: tuple[CheckSummary, ...]
    others: Mapping[EffectiveStatus, int]
    services: Mapping[str, EffectiveStatus]
    chains: tuple[int, ...]
    missing: tuple[CheckSummary, ...]

    @property
    def healthy(self) -> bool:
        return self.status == "current"


def headline_of(
    report: LiveReport,
    now: float,
    received_ago_ms: float | None = 0,
    *,
    chains: Iterable[int] = MAINNETS,
    test_networks: Collection[int] = (TEST_NETWORK,),
    in_doubt: bool = False,
) -> Headline:
    """The rows of these chains, and those of no chain, in a sentence at ``now``.

    Chains among the ``test_networks`` are left out. ``in_doubt`` is a report about which something is wrong: then
    nothing is said to be current now.
    """
    counted = tuple(chain_id for chain_id in dict.fromkeys(chains) if chain_id not in test_networks)
    rows = rows_by_check(report)
    services = dict.fromkeys((*SERVICES, *(service for service, _ in rows)))
    rolled_up = roll_up(report, now, received_ago_ms, chains=counted, services=services)
    expected = [check for summary in rolled_up.services for check in summary.checks]
    missing = tuple(check for check in expected if check.presence == "missing" and check.service in SERVICES)
    checks = [check for check in expected if check.presence != "missing"]
    left_out = {chain_id for _, chain_id in rows if chain_id is not None and chain_id not in counted}
    where = "" if not left_out else " outside test networks" if left_out <= set(test_networks) else " on these chains"
    counts = Counter(check.effective for check in checks)
    worst = next((status for status in EFFECTIVE_STATUSES if counts[status] or (status == "unknown" and missing)), None)
    return Headline(
        text=_text(worst, counts, where, len(missing), in_doubt),
        status="unknown" if worst is None or (worst == "current" and in_doubt) else worst,
        checks=tuple(check for check in checks if check.effective == worst),
        others={status: counts[status] for status in EFFECTIVE_STATUSES if counts[status] and status != worst},
        services={service: worst_of(of) for service, of in _by_service((*checks, *missing)).items()},
        chains=counted,
        missing=missing,
    )


def _by_service(checks: Iterable[CheckSummary]) -> dict[str, list[EffectiveStatus]]:
    found: dict[str, list[EffectiveStatus]] = {}
    for check in checks:
        found.setdefault(check.service, []).append(check.effective)
    return found


def _text(
    worst: EffectiveStatus | None, counts: Counter[EffectiveStatus], where: str, missing: int, in_doubt: bool
) -> str:
    if worst is None or worst == "unmonitored":
        return f"Nothing is watched{where}"
    if not counts[worst]:
        return f"{missing} check{'s are' if missing > 1 else ' is'} missing from the report"
    if worst == "current" and in_doubt:
        return f"Everything{where} was current when last seen"
    number, watched = counts[worst], counts.total() - counts["unmonitored"]
    noun = "watched check" if counts["unmonitored"] else "check"
    part = f"All {watched}" if number == watched else f"{number} of {watched}"
    subject = f"The only {noun}" if watched == 1 else f"{part} {noun}s"
    return f"{subject}{where} {'is' if number == 1 else 'are'} {BY_WORD[worst].name}"
