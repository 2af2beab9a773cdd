"""One bucket's character, and uptime."""

import pytest

from lookout.core.history import bucket_character, uptime
from tests.cases import cases


@pytest.mark.clause("H5", "H6", "H7")
@pytest.mark.parametrize(("seen_s", "character"), cases("buckets", "a bucket shows"))
def test_a_bucket_shows(seen_s: dict[str, float], character: str) -> None:
    seen_ms = {status: round(seconds * 1000) for status, seconds in seen_s.items()}
    assert bucket_character(seen_ms, 60_000) == character


@pytest.mark.clause("H9", "H10", "H11")
@pytest.mark.parametrize(
    ("current", "known", "expected"),
    [
        pytest.param(12, 12, 1.0, id="every known bucket current"),
        pytest.param(11, 11, None, id="fewer than twelve known buckets"),
        pytest.param(0, 12, 0.0, id="none current"),
        pytest.param(4032, 4033, 0.9998, id="one other bucket in a fortnight"),
        pytest.param(19_999, 20_000, 0.9999, id="never rounded up to 1, tie"),
        pytest.param(99_999, 100_000, 0.9999, id="never rounded up to 1"),
        pytest.param(1, 32, 0.0312, id="half to even, down"),
        pytest.param(3, 32, 0.0938, id="half to even, up"),
        pytest.param(1, 160, 0.0062, id="half to even where the binary fraction is above the half"),
        pytest.param(2, 3 * 12, 0.0556, id="rounded up"),
        pytest.param(1, 3 * 12, 0.0278, id="rounded up again"),
        pytest.param(1, 12, 0.0833, id="rounded down"),
    ],
)
def test_uptime_is_the_share_of_current_buckets(current: int, known: int, expected: float | None) -> None:
    assert uptime(current, known, 12) == expected
