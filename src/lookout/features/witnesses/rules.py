"""How the views of several places become one row (W3 to W7)."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from lookout.core.model import Gaps, Reason, Row, Status
from lookout.core.policy import apply_gaps

BEST_FIRST: Final[tuple[Status, ...]] = ("current", "catching-up", "degraded", "unavailable")
_DEGRADED: Final = BEST_FIRST.index("degraded")
_NEVER: Final = -1  # earlier than every instant


def combine(own: Row, gaps: Gaps, views: Sequence[Row | None], at: int) -> Row:
    """The row that is published of our own row, which is without its ``gaps``, and of the witnesses' views, in the
    order of the configuration. None is the view of a witness that was never heard; a witness whose view is
    ``unmonitored`` does not watch the row."""
    as_judged = apply_gaps(own, gaps)
    views = [view for view in views if view is None or view.status != "unmonitored"]
    if own.status == "unmonitored" or not views:  # W3, W4: no witness is a place of this row
        return as_judged
    counted = [view for view in (own, *views) if view is not None and counts(view, at)]
    if len(counted) > 1:
        outcome = _agree(own, counted)
    elif counted != [own]:
        return as_judged
    elif own.status == "unavailable":  # silence may be our own
        return Row(own.check, "unknown", "unreachable", own.observed_at, own.last_success_at)
    else:
        outcome = own
    outcome = apply_gaps(outcome, gaps)  # W6
    agreeing = sum((as_judged if view is own else view).status == outcome.status for view in counted)
    return replace(outcome, metrics=replace(outcome.metrics, views=1 + len(views), agreeing=agreeing))  # W7


def counts(view: Row, at: int) -> bool:
    """Whether a view says something at this instant (W3)."""
    return view.status in BEST_FIRST and not view.has_expired(at)


def _agree(own: Row, counted: Sequence[Row]) -> Row:
    """What two views or more come to: never better than the second-best nor worse than the second-worst, so one wrong
    place decides nothing (W4)."""
    ranks = sorted(map(_rank, counted))
    good, bad = ranks[1], ranks[-2]
    if good > bad:  # two that differ
        return Row(own.check, "unknown", "not-everywhere", own.observed_at, own.last_success_at)
    as_good = [view for view in counted if _rank(view) <= good]
    as_bad = [view for view in counted if _rank(view) >= bad]
    reason: Reason = "not-everywhere"
    if good == bad:
        status = BEST_FIRST[bad]
        first = next(view for view in counted if view.status == status)
        reason = first.reason
    else:  # two see it better than two others
        status = BEST_FIRST[min(bad, _DEGRADED)]
        first = next(view for view in counted if view.status != "unavailable")
    # W5: as old as the older of the two views that hold the status up and down.
    observed_at = min(_second_latest(view.observed_at for view in group) for group in (as_good, as_bad))
    expires_at = min(_second_latest(view.expires_at for view in group) for group in (as_good, as_bad))
    answered_at = observed_at
    if status == "unavailable":
        answered_at = min(
            observed_at, _second_latest(view.last_success_at for view in counted if view.status == status)
        )
    last_success_at = None if answered_at == _NEVER else answered_at
    instants = {"observed_at": observed_at, "last_success_at": last_success_at, "expires_at": expires_at}
    return replace(first, status=status, reason=reason, **instants)


def _rank(view: Row) -> int:
    return BEST_FIRST.index(view.status)


def _second_latest(instants: Iterable[int | None]) -> int:
    return sorted(_NEVER if at is None else at for at in instants)[-2]
