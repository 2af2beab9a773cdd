"""One bucket's character, and uptime."""

import pytest

from lookout.core.history import bucket_character, uptime


@pytest.mark.clause("H5", "H6", "H7")
@pytest.mark.parametrize(
    ("seen_s", "character"),
    [
        pytest.param({"c": 300}, "c", id="current throughout"),
        pytest.param({"k": 300}, "k", id="catching up throughout"),
        pytest.param({"d": 300}, "d", id="degraded throughout"),
        pytest.param({"u": 300}, "u", id="unavailable throughout"),
        pytest.param({"?": 300}, "?", id="unknown throughout"),
        pytest.param({".": 300}, ".", id="unmonitored throughout"),
        pytest.param({}, "-", id="no sample"),
        pytest.param({"c": 240, "u": 60}, "u", id="a minute colours the bucket"),
        pytest.param({"c": 240.001, "u": 59.999}, "c", id="a shorter blip does not count"),
        pytest.param({"d": 30, "u": 40, "c": 230}, "d", id="time in worse statuses counts toward milder ones"),
        pytest.param({"k": 10, "d": 20, "u": 30, "c": 240}, "k", id="over three of them"),
        pytest.param({"k": 200, "d": 100}, "d", id="the worst that lasted long enough"),
        pytest.param({"u": 59, "?": 241}, "?", id="short trouble and nothing current is too little to tell"),
        pytest.param({"c": 0.001, "?": 299.999}, "c", id="anything known wins over unknown"),
        pytest.param({"?": 1, ".": 299}, "?", id="unknown wins over unmonitored"),
        pytest.param({"u": 0}, "?", id="a status that has only just begun has not lasted"),
        pytest.param({"c": 0}, "c", id="a current one is seen at once"),
        pytest.param({"?": 0}, "?", id="an unknown one likewise"),
        pytest.param({".": 0}, ".", id="an unmonitored one likewise"),
        pytest.param({"?": 30, "c": 0}, "c", id="a current sample after an unknown time"),
        pytest.param({"k": 20, "d": 20, "u": 19}, "?", id="all kinds of trouble, too short together"),
        pytest.param({"c": 0, "u": 59}, "c", id="short trouble beside what was current, however short"),
        pytest.param({".": 30, "?": 0}, "?", id="an unknown sample after an unmonitored time"),
    ],
)
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
