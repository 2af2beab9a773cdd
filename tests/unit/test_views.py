"""How the views of several places become one row: the vectors, an independent oracle, and whichever place lies."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from lookout.core.model import NO_GAPS, Gaps, Metrics, Reason, Row, unmonitored
from lookout.core.policy import apply_gaps, split_gaps
from lookout.features.witnesses.reading import view_of
from lookout.features.witnesses.rules import BEST_FIRST, combine, counts
from lookout_reader import Row as ReportRow
from lookout_reader import UnreadableRow
from lookout_reader.report import Metrics as ReportMetrics
from tests.builders import INDEXER, MINUTE, NOON, SECOND
from tests.oracles import views as oracle

CASES: Final[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent.parent / "data" / "vectors" / "views.json").read_text()
)
LIFETIME_MS: Final = 150_000
MISSING: Final = Gaps(missing=3)


def read_row(row: dict[str, Any]) -> ReportRow:
    """A row of a witness's report."""
    metrics = ReportMetrics(**row["metrics"])
    return ReportRow(*INDEXER, row["status"], row["reason"], *read_instants(row), metrics)


def own_row(row: dict[str, Any]) -> Row:
    return Row(INDEXER, row["status"], row["reason"], *read_instants(row), Metrics(**row["metrics"]))


def read_instants(row: dict[str, Any]) -> tuple[int | None, int | None, int | None]:
    return row["observedAt"], row["lastSuccessAt"], row["expiresAt"]


def as_view(row: Row) -> oracle.View:
    return oracle.View(
        row.status, row.reason, row.observed_at, row.last_success_at, row.expires_at, to_builtins(row.metrics)
    )


@pytest.mark.clause("W3", "W4", "W5", "W6", "W7")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_vector_is_published_as_it_says(case: dict[str, Any]) -> None:
    at, published = case["at"], case["published"]
    found = case["finding"]
    views = [
        None if row is None else view_of(INDEXER, read_row(row), at, LIFETIME_MS, knows_time=True)
        for row in case["witnesses"]
    ]
    gaps = NO_GAPS if found is None else Gaps(**found["metrics"])
    row = combine(own_row(case["own"]), gaps, views, at)
    assert as_view(row) == oracle.read_view(published)
    by_oracle = oracle.publish(
        oracle.read_view(case["own"]),
        None if found is None else (found["reason"], found["metrics"]),
        [None if view is None else as_view(view) for view in views],
        at,
    )
    assert by_oracle == oracle.read_view(published)


def test_a_row_of_several_places_says_since_when_our_own_position_has_not_moved() -> None:
    own, other = (Row(INDEXER, "catching-up", "behind", NOON, NOON, NOON + LIFETIME_MS) for _ in range(2))
    own = replace(own, still_since_at=NOON - MINUTE)
    assert combine(own, NO_GAPS, [other], NOON).still_since_at == NOON - MINUTE


# Each place has another age, so that no two instants are the same by chance; one expires at the very instant.
KINDS: Final = ("current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored", "expired", "never")


def a_view(kind: str, place: int) -> Row | None:
    at = NOON - (7 * place + 3) * SECOND
    if kind == "never":
        return None
    if kind == "unmonitored":
        return unmonitored(INDEXER)
    if kind == "unknown":
        return Row(INDEXER, "unknown", "unreachable", at, at - MINUTE)
    if kind == "expired":
        return Row(INDEXER, "current", "synced", NOON - LIFETIME_MS, NOON - LIFETIME_MS, NOON, Metrics(position=place))
    status = next(status for status in BEST_FIRST if status == kind)
    if status == "unavailable":  # one of them never answered
        return Row(INDEXER, status, "unreachable", at, at - MINUTE if place else None, at + LIFETIME_MS)
    reason: Reason = "synced" if status == "current" else "behind"
    return Row(INDEXER, status, reason, at, at, at + LIFETIME_MS, Metrics(position=1_000 - place, head=1_000))


def every_scene() -> Iterator[tuple[Row, list[Row | None]]]:
    """All statuses and ages of two to four places in every order; of five, in one order of the witnesses."""
    orders = [views for number in (0, 1, 2, 3) for views in product(KINDS, repeat=number)]
    for own in KINDS[:-1]:
        row = a_view(own, 0)
        assert row is not None
        for witnesses in (*orders, *combinations_with_replacement(KINDS, 4)):
            yield row, [a_view(kind, place) for place, kind in enumerate(witnesses, 1)]


@pytest.mark.clause("W3", "W4", "W5", "W6", "W7")
@pytest.mark.parametrize("gaps", [NO_GAPS, Gaps(missing=2, gap=1)], ids=["without a finding", "with a finding"])
def test_up_to_five_places_come_to_what_the_clauses_say(gaps: Gaps) -> None:
    finding = None if gaps == NO_GAPS else ("incomplete", {"missing": 2, "gap": 1})
    for own, views in every_scene():
        said = oracle.publish(as_view(own), finding, [None if view is None else as_view(view) for view in views], NOON)
        assert as_view(combine(own, gaps, views, NOON)) == said, (own, views)


@pytest.mark.clause("W4")
def test_a_known_status_lies_between_honest_views_whichever_place_lies() -> None:
    for own, views in every_scene():
        places = [own, *views]
        counted = [number for number, view in enumerate(places) if view is not None and counts(view, NOON)]
        row = combine(own, NO_GAPS, views, NOON)
        if len(counted) < 2 or row.status not in BEST_FIRST:
            continue
        ranks = {number: BEST_FIRST.index(view.status) for number in counted if (view := places[number]) is not None}
        rank = BEST_FIRST.index(row.status)
        for liar in counted:
            honest = [ranks[number] for number in counted if number != liar]
            assert min(honest) <= rank <= max(honest), (own, views, liar)


@pytest.mark.clause("W4")
def test_one_bad_place_of_three_or_more_makes_no_row_unknown() -> None:
    for number, status, lie in product((3, 4, 5), BEST_FIRST, KINDS):
        for liar in range(number):
            own, *views = [a_view(lie if place == liar else status, place) for place in range(number)]
            if own is not None and own.status != "unmonitored":
                assert combine(own, NO_GAPS, views, NOON).status == status, (number, lie, liar)


def test_a_position_of_our_own_stands_still_also_among_other_places() -> None:
    view = Row(INDEXER, "catching-up", "behind", NOON, NOON, NOON + LIFETIME_MS, Metrics(position=7, head=99))
    own = replace(view, still_since_at=NOON - MINUTE)
    assert combine(own, NO_GAPS, [view, view], NOON).still_since_at == NOON - MINUTE


@pytest.mark.clause("W6")
@pytest.mark.parametrize(
    ("shown", "known", "found"),
    [
        (MISSING, MISSING, MISSING),
        (MISSING, NO_GAPS, MISSING),
        (Gaps(extra=1, breaks=2, gap=3), NO_GAPS, Gaps(extra=1, breaks=2, gap=3)),
        (NO_GAPS, MISSING, NO_GAPS),
    ],
    ids=[
        "a row shows the gaps by which it was judged",
        "gaps that have ended since",
        "gaps of every kind",
        "gaps that were found since",
    ],
)
def test_a_judged_row_and_its_gaps_are_split(shown: Gaps, known: Gaps, found: Gaps) -> None:
    row = Row(INDEXER, "current", "synced", NOON, NOON, NOON + LIFETIME_MS, Metrics(position=7, head=9))
    assert split_gaps(apply_gaps(row, shown), known) == (row, found)


@pytest.mark.clause("W6")
def test_a_row_that_is_not_current_has_the_known_gaps_and_shows_none() -> None:
    behind = Row(INDEXER, "degraded", "behind", NOON, NOON, NOON + LIFETIME_MS, Metrics(position=7, head=9))
    assert split_gaps(behind, MISSING) == (behind, MISSING)


A_REPORT_ROW: Final = ReportRow(
    *INDEXER, "current", "synced", NOON - SECOND, NOON - SECOND, NOON + 149 * SECOND, ReportMetrics()
)


def a_report_row(**changes: Any) -> ReportRow:
    return dataclasses.replace(A_REPORT_ROW, **changes)


@pytest.mark.clause("W2")
@pytest.mark.parametrize(
    "found",
    [
        UnreadableRow(*INDEXER, INDEXER, "a metric is no count"),
        a_report_row(published_status="splendid"),
        a_report_row(published_status="unknown"),
        a_report_row(observed_at=None),
        a_report_row(expires_at=None),
        a_report_row(expires_at=NOON - SECOND),
        a_report_row(observed_at=NOON + 30_001, expires_at=NOON + MINUTE),
        a_report_row(reason=None),
        a_report_row(reason="Synced"),
        a_report_row(reason="s" * 41),
        a_report_row(reason="synced\n"),
    ],
    ids=[
        "that cannot be read",
        "of an unknown status",
        "that is unknown",
        "without observedAt",
        "without expiresAt",
        "that expires when it was observed",
        "observed more than 30 s ahead",
        "without a reason",
        "with a reason in capitals",
        "with a reason of 41 letters",
        "with a reason and a line break",
    ],
)
def test_a_row_does_not_count(found: ReportRow | UnreadableRow) -> None:
    view = view_of(INDEXER, found, NOON, LIFETIME_MS, knows_time=True)
    assert view.status == "unknown"
    assert not counts(view, NOON)


@pytest.mark.clause("W2", "W3")
@pytest.mark.parametrize("found", [None, a_report_row(published_status="unmonitored")], ids=["missing", "unmonitored"])
def test_a_row_that_the_witness_does_not_watch_is_unmonitored(found: ReportRow | None) -> None:
    assert view_of(INDEXER, found, NOON, LIFETIME_MS, knows_time=True) == unmonitored(INDEXER)


def lifetimes() -> Sequence[tuple[int, int, int, int]]:
    """When a row was observed and expires, as it came and as its view has it, each from noon."""
    return [
        (0, 150_000, 0, 150_000),
        (30_000, 180_000, 0, 150_000),
        (-10_000, 5_000, -10_000, 5_000),
        (-10_000, 10_000_000_000, -10_000, 140_000),
        (20_000, 20_010, 0, 10),
    ]


@pytest.mark.clause("W2")
@pytest.mark.parametrize(("observed", "expires", "seen", "ends"), lifetimes())
def test_a_view_lives_no_longer_than_a_row_of_our_own(observed: int, expires: int, seen: int, ends: int) -> None:
    found = a_report_row(observed_at=NOON + observed, expires_at=NOON + expires)
    view = view_of(INDEXER, found, NOON, LIFETIME_MS, knows_time=True)
    assert (view.observed_at, view.expires_at) == (NOON + seen, NOON + ends)
