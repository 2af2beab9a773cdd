"""The monitor on simulated upstreams that do what real ones did."""

from pathlib import Path

import pytest

from lookout.demo.sim.server import wall_clock
from tests.integration.fast import a_config, a_world, watched

MINUTE = 60_000


class SlowClock:
    """The world's time: two minutes late, so that a part of them can pass at once without being the future."""

    def __init__(self) -> None:
        self.late_ms = 2 * MINUTE

    def now(self) -> int:
        return wall_clock() - self.late_ms


@pytest.mark.clause("S12")
@pytest.mark.parametrize("kind", ["squid", "ponder"])
async def test_an_indexer_rebuilt_from_scratch_has_nothing_then_is_far_behind(kind: str, tmp_path: Path) -> None:
    clock = SlowClock()
    async with a_world(tmp_path, clock.now) as world, watched(world, a_config(world.base, indexer_kind=kind)):
        await world.until(lambda: world.status_of("indexer", 1) == "current/synced", "in step")
        before = world.row("indexer", 1)["lastSuccessAt"]
        await world.order(f"{kind}/1", "rebuild")
        await world.until(lambda: world.status_of("indexer", 1) == "unknown/no-observation", "nothing yet")
        row = world.row("indexer", 1)
        assert (row["metrics"], row["expiresAt"]) == ({}, None)
        assert row["lastSuccessAt"] >= before
        clock.late_ms -= MINUTE
        await world.until(lambda: world.status_of("indexer", 1) == "degraded/behind", "a day behind")
        await world.until(lambda: world.status_of("indexer", 56) == "current/synced", "another one is not")
        await world.order("*", None)
        await world.until(lambda: world.status_of("indexer", 1) == "current/synced", "in step again")
