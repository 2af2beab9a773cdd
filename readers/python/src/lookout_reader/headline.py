"""One sentence about the counted chains, which claims no more than the rows (C11)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lookout_reader.clocks import Clocks, clocks_of
from lookout_reader.document import rows_by_check
from lookout_reader.report import LiveReport
from lookout_reader.rollup import MAINNETS, TEST_NETWORK, CheckSummary, count_checks, require_chain, worst_of
from lookout_reader.statuses import BY_WORD, EFFECTIVE_STATUSES, EffectiveStatus


@dataclass(frozen=True, slots=True)
class Headline:
    """``text`` is about the ``checks``, which are the worst; ``others`` counts the rest, from worst to best.

    ``status`` is the status to show beside it: unknown instead of current if in doubt, unmonitored if that was seen on
    no chain. ``services`` has the worst
    status by service. ``chains`` are the counted chains, and ``missing`` are checks on them that the report lacks,
    which are unknown.
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
    now: Clocks | float | None = None,
    received_ago_ms: float | None = None,
    clock_ahead_ms: float | None = None,
    *,
    chains: Iterable[int] = MAINNETS,
    test_networks: Collection[int] = (TEST_NETWORK,),
    in_doubt: bool = False,
    show_unmonitored: bool = True,
) -> Headline:
    """The checks of these chains, and checks without a chain, in a sentence.

    ``test_networks`` are omitted. ``in_doubt`` marks a report with a problem: then no check is called current. Without
    ``show_unmonitored`` unmonitored checks are omitted, as no part of the deployment (``About``). ``now`` and what
    follows are as in ``effective_status``.
    """
    counted = tuple(chain_id for chain_id in dict.fromkeys(chains) if chain_id not in test_networks)
    clocks = clocks_of(report.arrival, now, received_ago_ms, clock_ahead_ms)
    checks, doubts = count_checks(report, counted, None, clocks)
    if not show_unmonitored:
        checks = [check for check in checks if check.effective != "unmonitored"]
    left_out = {chain_id for _, chain_id in rows_by_check(report)} - {None, *counted}
    where = "" if not left_out else " outside test networks" if left_out <= set(test_networks) else " on these chains"
    counts: Counter[EffectiveStatus] = Counter(check.effective for check in checks)
    found: list[EffectiveStatus] = [status for status in EFFECTIVE_STATUSES if counts[status]] or ["unmonitored"]
    worst, *milder = found
    status = require_chain(worst_of(("unknown" if worst == "current" and in_doubt else worst, *doubts)), checks)
    return Headline(
        text=_text(worst, counts, where, status),
        status=status,
        checks=tuple(check for check in checks if check.effective == worst),
        others={status: counts[status] for status in milder},
        services=_worst_by_service(checks),
        chains=counted,
        missing=tuple(check for check in checks if check.presence == "missing"),
    )


def _worst_by_service(checks: Iterable[CheckSummary]) -> dict[str, EffectiveStatus]:
    found: dict[str, list[EffectiveStatus]] = {}
    for check in checks:
        found.setdefault(check.service, []).append(check.effective)
    return {service: worst_of(statuses) for service, statuses in found.items()}


def _text(worst: EffectiveStatus, counts: Counter[EffectiveStatus], where: str, status: EffectiveStatus) -> str:
    if worst == "unmonitored":
        return f"Nothing is watched{where}"
    if status == "unmonitored":
        return f"No chain is watched{where}"
    if worst == "current" and status != worst:
        return f"No problem{where} when last seen"
    number, watched = counts[worst], counts.total() - counts["unmonitored"]
    noun = "watched check" if counts["unmonitored"] else "check"
    part = f"All {watched}" if number == watched else f"{number} of {watched}"
    subject = f"The only {noun}" if watched == 1 else f"{part} {noun}s"
    return f"{subject}{where}: {BY_WORD[worst].name}"
