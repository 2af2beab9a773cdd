"""Rows of several places by the sentences of W3 to W7, by counting who supports a status instead of sorting."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

BEST_FIRST: Final = ("current", "catching-up", "degraded", "unavailable")
FINDINGS: Final = ("missing", "extra", "breaks", "gap")


class View(NamedTuple):
    """What a place says of a row."""

    status: str
    reason: str = "synced"
    observed_at: int | None = None
    last_success_at: int | None = None
    expires_at: int | None = None
    metrics: dict[str, int] = {}  # noqa: RUF012  nobody changes it


def publish(own: View, finding: tuple[str, dict[str, int]] | None, witnesses: Sequence[View | None], at: int) -> View:
    """``own`` is without the finding; None was never heard."""
    watching = [view for view in witnesses if view is None or view.status != "unmonitored"]
    known = [view for view in (own, *watching) if view is not None and view.status in BEST_FIRST]
    counted = [view for view in known if view.expires_at is not None and at < view.expires_at]
    own_with_finding = _find(own, finding)
    own_counts = any(view is own for view in counted)
    if own.status == "unmonitored" or not watching or (len(counted) < 2 and not own_counts):
        return own_with_finding
    if len(counted) == 1 and own.status == "unavailable":
        return own._replace(status="unknown", reason="unreachable", expires_at=None, metrics={})
    outcome = _find(own if len(counted) == 1 else _of_two_or_more(own, counted), finding)
    statuses = [own_with_finding.status if view is own else view.status for view in counted]
    numbers = {"views": 1 + len(watching), "agreeing": statuses.count(outcome.status)}
    return outcome._replace(metrics={**outcome.metrics, **numbers})


def _of_two_or_more(own: View, counted: Sequence[View]) -> View:
    def better_or_as(status: str) -> list[View]:
        return [view for view in counted if BEST_FIRST.index(view.status) <= BEST_FIRST.index(status)]

    def worse_or_as(status: str) -> list[View]:
        return [view for view in counted if BEST_FIRST.index(view.status) >= BEST_FIRST.index(status)]

    good = next(status for status in BEST_FIRST if len(better_or_as(status)) >= 2)
    bad = next(status for status in reversed(BEST_FIRST) if len(worse_or_as(status)) >= 2)
    if BEST_FIRST.index(good) > BEST_FIRST.index(bad):
        return View("unknown", "not-everywhere", own.observed_at, own.last_success_at)

    def instant(of: Callable[[View], int | None]) -> int | None:
        return _earliest(_second(better_or_as(good), of), _second(worse_or_as(bad), of))

    observed_at, expires_at = instant(lambda view: view.observed_at), instant(lambda view: view.expires_at)
    if good != bad:
        status = "degraded" if bad == "unavailable" else bad
        metrics = next(view.metrics for view in counted if view.status != "unavailable")
        return View(status, "not-everywhere", observed_at, observed_at, expires_at, metrics)
    same = [view for view in counted if view.status == good]
    answered_at = observed_at
    if good == "unavailable":
        answered_at = _earliest(_second(same, lambda view: view.last_success_at), observed_at)
    return View(good, same[0].reason, observed_at, answered_at, expires_at, same[0].metrics)


def _find(view: View, finding: tuple[str, dict[str, int]] | None) -> View:
    if finding is None or view.status != "current":
        return view
    return view._replace(status="degraded", reason=finding[0], metrics={**view.metrics, **finding[1]})


def _second(views: Sequence[View], of: Callable[[View], int | None]) -> int | None:
    """The second-latest instant; null is the earliest."""
    instants = [of(view) for view in views]
    for instant in instants:
        later = sum(1 for other in instants if _is_later(other, instant))
        as_late = instants.count(instant)
        if later <= 1 < later + as_late:
            return instant
    raise AssertionError("there are always two")


def _is_later(one: int | None, other: int | None) -> bool:
    return one is not None and (other is None or one > other)


def _earliest(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def read_view(row: dict[str, Any]) -> View:
    keys = ("status", "reason", "observedAt", "lastSuccessAt", "expiresAt", "metrics")
    return View(*(row[key] for key in keys))
