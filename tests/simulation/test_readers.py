"""Both readers behind caches and on networks that lose requests; the campaign runs them for longer."""

import pytest

from tests.simulation.readers import (
    DAY_S,
    DOWN_S,
    LOSSES,
    PLACES,
    Respond,
    a_day_behind,
    count_false_alarms,
    four_edges_of_which_one_is_cut_off,
    is_green_after_red,
    run_javascript,
    run_python,
)


@pytest.mark.clause("C15")
@pytest.mark.parametrize("place", PLACES)
def test_with_one_request_in_a_hundred_lost_a_healthy_row_is_stale_at_most_once_a_day(place: str) -> None:
    assert count_false_alarms(run_python(a_day_behind(place, 0.01, seed=1), DAY_S, seed=1)) <= 1
    (shown,) = run_javascript([a_day_behind(place, 0.01, seed=1)], DAY_S)
    assert count_false_alarms(shown) <= 1


@pytest.mark.long
@pytest.mark.clause("C15")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("place", PLACES)
def test_so_it_is_over_five_days(place: str, loss: float) -> None:
    most = {0.0: 0, 0.01: 5, 0.05: 50}[loss]
    assert count_false_alarms(run_python(a_day_behind(place, loss, seed=2), 5 * DAY_S, seed=2)) <= most
    (shown,) = run_javascript([a_day_behind(place, loss, seed=2)], 5 * DAY_S)
    assert count_false_alarms(shown) <= most


@pytest.mark.clause("C14")
@pytest.mark.parametrize("runs", [20, pytest.param(400, marks=pytest.mark.long)])
def test_no_older_copy_of_an_edge_that_is_cut_off_turns_red_back_into_green(runs: int) -> None:
    def edges() -> list[Respond]:
        return [four_edges_of_which_one_is_cut_off(seed) for seed in range(runs)]

    found = [run_python(respond, 2 * DOWN_S, seed) for seed, respond in enumerate(edges())]
    found += run_javascript(edges(), 2 * DOWN_S)
    assert all(any(status == "unavailable" for _, status in shown) for shown in found)
    assert not any(map(is_green_after_red, found))
