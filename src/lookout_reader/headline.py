"""One sentence about the mainnets, which says no more than the rows do (C11)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lookout_reader.document import rows_by_check
from lookout_reader.report import LiveReport
from lookout_reader.rollup import MAINNETS, CheckSummary, roll_up, summarize_check
from lookout_reader.statuses import BY_WORD, EFFECTIVE_STATUSES, EffectiveStatus


@dataclass(frozen=True, slots=True)
class Headline:
    """``text`` is about the ``checks``, which are the worst; ``others`` counts the rest, from worst to best.

    ``status`` is what to show beside it: of what is current and in doubt, unknown. Of the ``chains`` summed up those
    ``without_rows`` are not in the report; ``unwatched`` are mainnets of which nothing is expected.
    """

    text: str
    status: EffectiveStatus
    checks: tuple[CheckSummary, ...]
    others: Mapping[EffectiveStatus, int]
    chains: tuple[int, ...]
    without_rows: tuple[int, ...]
    unwatched: tuple[int, ...]

    @property
    def healthy(self) -> bool:
        return self.status == "current"


def headline_of(
    report: LiveReport,
    now: float,
    received_ago_ms: float | None = 0,
    *,
    seen_chains: Collection[int | None] = (),
    in_doubt: bool = False,
) -> Headline:
    """The mainnets in a sentence, at ``now``.

    ``seen_chains`` had rows before, or have some in the history: what is missing of them is unknown. A mainnet that
    never had any is not watched here; if none ever had, nothing is known of all. ``in_doubt`` is a report about which
    something is wrong: then nothing is said to be current now.
    """
    reported = {chain_id for _, chain_id in rows_by_check(report)}
    chains = tuple(each for each in MAINNETS if each in reported or each in seen_chains) or MAINNETS
    checks = _summaries(report, now, received_ago_ms, chains)
    counts = Counter(check.effective for check in checks)
    worst, *milder = (status for status in EFFECTIVE_STATUSES if counts[status])
    return Headline(
        text=_text(worst, counts, in_doubt),
        status="unknown" if worst == "current" and in_doubt else worst,
        checks=tuple(check for check in checks if check.effective == worst),
        others={status: counts[status] for status in milder},
        chains=chains,
        without_rows=tuple(chain_id for chain_id in chains if chain_id not in reported),
        unwatched=tuple(chain_id for chain_id in MAINNETS if chain_id not in chains),
    )


def _summaries(
    report: LiveReport, now: float, received_ago_ms: float | None, chains: Sequence[int]
) -> list[CheckSummary]:
    """The checks of the roll-up, and those of these chains whose service this reader does not know."""
    rolled_up = roll_up(report, now, received_ago_ms, chains=chains)
    checks = {(check.service, check.chain_id): check for each in rolled_up.services for check in each.checks}
    for check, row in rows_by_check(report).items():
        if check not in checks and (check[1] is None or check[1] in chains):
            checks[check] = summarize_check(check, row, now, received_ago_ms)
    return list(checks.values())


def _text(worst: EffectiveStatus, counts: Counter[EffectiveStatus], in_doubt: bool) -> str:
    if worst == "unmonitored":
        return "Nothing is watched on the mainnets"
    if worst == "current" and in_doubt:
        return "Everything on the mainnets was current when last seen"
    number, watched = counts[worst], counts.total() - counts["unmonitored"]
    part = f"All {watched}" if number == watched else f"{number} of {watched}"
    subject = "The only check" if watched == 1 else f"{part} checks"
    return f"{subject} of the mainnets {'is' if number == 1 else 'are'} {BY_WORD[worst].name}"
