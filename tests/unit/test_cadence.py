"""When a source is asked again."""

import pytest
from msgspec.structs import replace

from lookout.core.cadence import wait_ms
from tests.builders import LAUNCH


@pytest.mark.clause("M1", "M2")
@pytest.mark.parametrize(
    ("failures", "wait_s"),
    [
        pytest.param(0, 30, id="a source that answers"),
        pytest.param(1, 30, id="after the first failure"),
        pytest.param(2, 60, id="after the second"),
        pytest.param(3, 120, id="after the third"),
        pytest.param(4, 120, id="capped"),
        pytest.param(10**9, 120, id="capped for ever"),
    ],
)
def test_the_wait_doubles_with_each_failure_up_to_two_minutes(failures: int, wait_s: int) -> None:
    assert wait_ms(failures, 0, LAUNCH) == wait_s * 1000


@pytest.mark.clause("M1", "M2")
@pytest.mark.parametrize("failures", [0, 3])
def test_chance_adds_up_to_three_seconds(failures: int) -> None:
    least = wait_ms(failures, 0, LAUNCH)
    assert wait_ms(failures, 0.5, LAUNCH) == least + 1500
    assert least + 2990 < wait_ms(failures, 0.999, LAUNCH) < least + 3000


@pytest.mark.clause("M2")
def test_a_cap_below_the_recheck_never_makes_a_failing_source_asked_more_often() -> None:
    assert wait_ms(5, 0, replace(LAUNCH, backoff_cap_ms=10_000)) == 30_000


def test_the_greatest_ages_are_the_contracts() -> None:
    published_within_ms = 1000
    answering = wait_ms(0, 1, LAUNCH) + LAUNCH.probe_timeout_ms + published_within_ms
    failing = wait_ms(3, 1, LAUNCH) + LAUNCH.probe_timeout_ms
    assert (answering, failing) == (44_000, 133_000)
