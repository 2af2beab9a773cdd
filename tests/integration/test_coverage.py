"""Lists of transactions compared with their chain, over real HTTP: holes are found, told, and end (S17 to S19)."""

from pathlib import Path

import pytest

from lookout.core.looks import Rules
from lookout.demo.sim.chain import hash_of
from lookout.monitor.board import CoverageEntry
from lookout.protocols.lists import CompleteTable
from tests.compared import a_compared_config
from tests.integration.fast import Watched, World, a_world, watched
from tests.wait import until_async

POLICY = "recheck_s = 1\njitter_s = 0.2\nbackoff_cap_s = 1.2\nprobe_timeout_s = 8\nheartbeat_s = 1\n"
INCOMPLETE = "degraded/incomplete"
SYNCED = "current/synced"


def in_a_hurry(table: CompleteTable) -> Rules:
    """The rules with a second for a minute."""
    return Rules(
        first_block=table.first_block,
        limit=table.limit,
        endpoints=table.endpoints,
        newest_every_ms=1_500,
        again_ms=1_000,
        retry_ms=1_000,
        follow_ms=2_000,
        prove_ms=10_000,
        repeat_ms=2_000,
    )


async def position(world: World) -> int:
    """Where the indexer is."""
    body = {"query": "{ squidStatus { height } }"}
    async with world.http.post(f"{world.base}/squid/1/graphql", json=body) as answer:
        return int((await answer.json())["data"]["squidStatus"]["height"])


async def a_config_of(world: World, *services: str) -> str:
    first_block = await position(world) - 300
    return a_compared_config(world.base, first_block, *services, policy=POLICY, requests_per_minute=600)


def gauge(here: Watched, name: str) -> float | None:
    return here.registry.get_sample_value(f"lookout_coverage_{name}", {"service": "indexer", "chain": "1"})


def missing(world: World) -> int:
    return int(world.row("indexer", 1)["metrics"].get("missing", 0))


@pytest.mark.first
@pytest.mark.clause("S17", "S18", "S19", "M7")
async def test_a_hole_is_told_survives_a_restart_and_ends_when_it_is_healed(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        config = await a_config_of(world)
        async with watched(world, config, compare_by=in_a_hurry) as here:
            await until_async(lambda: (gauge(here, "checked_blocks") or 0) > 280, "all of it is compared")
            assert world.status_of("indexer", 1) == SYNCED
            await world.order("squid/1", "hole", blocks=100)
            await world.until(lambda: missing(world) >= 8, "the hole is told")  # its newest blocks may not be final
            assert world.status_of("indexer", 1) == INCOMPLETE
            assert 8 <= (gauge(here, "missing") or 0) <= 10
            assert gauge(here, "extra") == 0
            (told,) = (each.coverage for each in here.board.list_entries() if each.kind == "coverage")
            assert isinstance(told, CoverageEntry)
            transaction = told.missing_transactions[0]
            assert transaction.hash == hash_of("transaction", 1, transaction.block)
        async with watched(world, config, compare_by=in_a_hurry):
            await world.until(lambda: missing(world) >= 8, "still known")
            await world.order("*", None)
            await world.until(lambda: world.status_of("indexer", 1) == SYNCED, "healed")
            assert "missing" not in world.row("indexer", 1)["metrics"]
