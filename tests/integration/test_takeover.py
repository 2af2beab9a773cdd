"""A monitor that takes over from one whose clock was another."""

from itertools import pairwise
from pathlib import Path

import pytest

from lookout.base.clock import SystemClock, parse_instant
from tests.integration.fast import a_config, a_world, watched


class Behind(SystemClock):
    """A clock of a machine that is a little behind."""

    def now(self) -> int:
        return super().now() - 2_000


@pytest.mark.clause("M7")
async def test_a_clock_that_is_a_little_behind_does_not_take_the_report_back(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        async with watched(world, a_config(world.base)):
            await world.until_healthy()
        instants = [world.document()["generatedAt"]]
        async with watched(world, a_config(world.base), Behind()):
            until = parse_instant(instants[0]) + 500

            def went_on() -> bool:
                instants.append(world.document()["generatedAt"])
                return parse_instant(instants[-1]) > until

            await world.until(went_on, "the report goes on when the clock has caught up")
        assert all(earlier <= later for earlier, later in pairwise(instants))
