"""A real monitor beside lists that lose entries, and ppoi nodes that keep an old tree; hundreds of such worlds in the
campaign."""

from pathlib import Path

import pytest

from tests.simulation.listed import live_monitor
from tests.simulation.silence import without_logs


@pytest.mark.clause("S17", "S18", "S20", "S21")
@pytest.mark.parametrize("first", [1, 6], ids="seeds from {}".format)
def test_the_real_monitor_reports_only_what_is_so(first: int, tmp_path: Path) -> None:
    with without_logs():
        lived = [live_monitor(tmp_path, seed) for seed in range(first, first + 5)]
    assert [outcome.problem for outcome in lived if outcome.problem] == []
    assert {"missing", "breaks"} <= {metric for outcome in lived for metric in outcome.metrics}
