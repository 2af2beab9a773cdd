"""What the campaign calls growth."""

import pytest

from tests.system.soak.growth import find_growth


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        pytest.param([10, 20, 30, 30, 30, 30], [], id="filling up is no growth"),
        pytest.param([30, 30, 30, 36, 30, 35, 30, 90, 30], [], id="what goes up and comes down again is none"),
        pytest.param([30, 30, 30, 31, 32, 33, 60, 90, 91], ["MB: from 32 to 90"], id="what goes on growing is"),
        pytest.param([30, 30, 100, 100, 101, 104], [], id="a little more is none"),
    ],
)
def test_growth_is_what_the_last_third_has_more_than_the_second(samples: list[float], found: list[str]) -> None:
    assert find_growth([{"MB": sample} for sample in samples]) == found
