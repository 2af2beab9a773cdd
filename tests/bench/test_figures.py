"""What the measurements work out of what they saw."""

from collections.abc import Sequence

import pytest

from bench.crowd import count_requests
from bench.figures import percentile


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        pytest.param(range(1, 101), 50, 51, id="half of a hundred stay under the 51st"),
        pytest.param(range(100, 0, -1), 99, 100, id="in any order, 99 of a hundred stay under the last"),
        pytest.param(range(1, 1001), 99, 991, id="ten of a thousand do not stay under it"),
        pytest.param([0.25], 99, 0.25, id="a single one is all there is to say"),
        pytest.param([], 99, float("inf"), id="nothing seen keeps no promise"),
    ],
)
def test_percentile(values: Sequence[float], percent: int, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_requests_of_both_endpoints_are_counted_and_no_others() -> None:
    metrics = """\
# HELP lookout_requests_total Requests answered
# TYPE lookout_requests_total counter
lookout_requests_total{code="200",route="live"} 100.0
lookout_requests_total{code="304",route="live"} 20.0
lookout_requests_total{code="200",route="history"} 3.0
lookout_requests_total{code="404",route="other"} 4000.0
lookout_store_read_errors_total 50000.0
"""
    assert count_requests(metrics) == 123
