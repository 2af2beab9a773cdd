"""Several places of which one is faulty, in 200 worlds; ten thousand in the campaign. Wrong rules are found."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from lookout.core.ledger import Combine
from lookout.core.model import Gaps, Row
from lookout.features.witnesses.rules import BEST_FIRST, combine, counts
from lookout.features.witnesses.witnesses import Witnesses
from tests.simulation.places import live

WORLDS = 200


@pytest.mark.clause("W2", "W3", "W4", "W5", "W7")
@pytest.mark.parametrize("first", range(0, WORLDS, 20), ids="seeds from {}".format)
def test_whichever_place_is_faulty_rows_are_between_what_honest_places_see(first: int) -> None:
    lived = [live(seed) for seed in range(first, first + 20)]
    assert [outcome.problem for outcome in lived if outcome.problem] == []
    assert {"current", "unknown", "unavailable"} <= {status for outcome in lived for status in outcome.statuses}


class Planted(Witnesses):
    """With another rule in the place of the right one."""

    def combiner(self) -> Combine:
        return lambda own, gaps, at: self.plant(own, gaps, self._views.of_check(own.check), at)

    def plant(self, own: Row, gaps: Gaps, views: Sequence[Row | None], at: int, /) -> Row:
        raise NotImplementedError


class WorstCounts(Planted):
    def plant(self, own: Row, _gaps: Gaps, views: Sequence[Row | None], at: int) -> Row:
        counted = [view for view in (own, *views) if view is not None and counts(view, at)]
        worst = max(counted, key=lambda view: BEST_FIRST.index(view.status), default=own)
        return replace(worst, metrics=replace(worst.metrics, views=1 + len(views), agreeing=1))


class OwnRedAlone(Planted):
    def plant(self, own: Row, gaps: Gaps, views: Sequence[Row | None], at: int) -> Row:
        is_alone = not any(view is not None and counts(view, at) for view in views)
        return own if is_alone else combine(own, gaps, views, at)


class ViewsNeverExpire(Planted):
    def plant(self, own: Row, gaps: Gaps, views: Sequence[Row | None], at: int) -> Row:
        kept = [view if view is None or view.expires_at is None else replace(view, expires_at=10**13) for view in views]
        row = combine(own, gaps, kept, at)
        observed_at = row.observed_at or 0
        return replace(row, expires_at=row.expires_at and min(row.expires_at, observed_at + 150_000))


class AmberOnAnyDissent(Planted):
    def plant(self, own: Row, gaps: Gaps, views: Sequence[Row | None], at: int) -> Row:
        row = combine(own, gaps, views, at)
        counted = {view.status for view in (own, *views) if view is not None and counts(view, at)}
        return replace(row, status="degraded", reason="not-everywhere") if len(counted) > 1 else row


class ViewCountedTwice(Planted):
    def plant(self, own: Row, gaps: Gaps, views: Sequence[Row | None], at: int) -> Row:
        return combine(own, gaps, [view for view in views for _ in range(2)], at)


@pytest.mark.clause("W4", "W5")
@pytest.mark.parametrize("wrong", [WorstCounts, OwnRedAlone, ViewsNeverExpire, AmberOnAnyDissent, ViewCountedTwice])
def test_a_wrong_rule_is_found(wrong: type[Planted]) -> None:
    assert any(live(seed, wrong).problem for seed in range(WORLDS))
