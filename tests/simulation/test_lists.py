"""Lists that lose transactions in worlds in which much else goes wrong; thousands of them in the campaign."""

import pytest

from tests.simulation.lists import live

WORLDS = 200


@pytest.mark.clause("S17", "S18", "S19")
@pytest.mark.parametrize("first", range(0, WORLDS, 20), ids="seeds from {}".format)
def test_nothing_is_reported_that_the_list_has_and_what_it_lacks_is_reported(first: int) -> None:
    lived = [live(seed) for seed in range(first, first + 20)]
    assert [outcome.problem for outcome in lived if outcome.problem] == []
    assert sum(outcome.reported for outcome in lived) > 0


def test_without_a_second_look_false_reports_are_found() -> None:
    assert any(live(seed, second_look=False).problem for seed in range(20))
