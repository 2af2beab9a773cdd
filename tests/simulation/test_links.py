"""Lists that lose entries, and ppoi nodes that keep an old tree, in worlds in which much else goes wrong; thousands of
them in the campaign."""

from pathlib import Path

import pytest

from tests.simulation.links import live_list, live_node
from tests.simulation.listed import live_monitor
from tests.simulation.silence import without_logs

WORLDS = 200


@pytest.mark.clause("S20")
@pytest.mark.parametrize("first", range(0, WORLDS, 50), ids="seeds from {}".format)
def test_a_break_is_reported_in_time_and_nothing_that_fits(first: int) -> None:
    lived = [live_list(seed) for seed in range(first, first + 50)]
    assert [outcome.problem for outcome in lived if outcome.problem] == []
    assert sum(outcome.reported for outcome in lived) > 0


@pytest.mark.clause("S21")
def test_a_node_is_reported_that_was_behind_for_an_hour_and_no_other() -> None:
    lived = [live_node(seed) for seed in range(WORLDS)]
    assert [outcome.problem for outcome in lived if outcome.problem] == []
    assert sum(outcome.reported for outcome in lived) > 0


@pytest.mark.clause("S17", "S18", "S20", "S21")
@pytest.mark.parametrize("first", [1, 6], ids="seeds from {}".format)
def test_the_real_monitor_reports_only_what_is_so(first: int, tmp_path: Path) -> None:
    with without_logs():
        lived = [live_monitor(tmp_path, seed) for seed in range(first, first + 5)]
    assert [outcome.problem for outcome in lived if outcome.problem] == []
    assert {"missing", "breaks"} <= {metric for outcome in lived for metric in outcome.metrics}


def test_without_a_second_look_false_reports_are_found() -> None:
    assert any(live_list(seed, second_look=False).problem for seed in range(20))
    assert any(live_node(seed, second_look=False).problem for seed in range(20))
