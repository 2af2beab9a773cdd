"""A monitor as a real process that runs out of descriptors: nobody's outage is made of it (M17)."""

import json
import resource
from pathlib import Path

import pytest

from tests.commands import a_command, said
from tests.integration.admin import admin_address, with_admin
from tests.integration.fast import World, a_config, a_world
from tests.integration.metrics import scrape
from tests.wait import until_async


def limit(pid: int, descriptors: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors, hard))


def statuses(world: World) -> set[str]:
    return {row["status"] for row in world.document()["checks"]} - {"unmonitored"}


def oldest(world: World) -> str:
    return str(min(row["observedAt"] for row in world.document()["checks"] if row["observedAt"]))


def events(folder: Path, event: str) -> int:
    whole, _, _ = said(folder).rpartition("\n")
    return sum(json.loads(line)["event"] == event for line in whole.splitlines())


@pytest.mark.clause("M17", "M14")
async def test_without_descriptors_rows_age_and_come_back_and_nobody_is_called_unavailable(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        config = a_config(world.base, row_lifetime_s=3)
        (tmp_path / "lookout.toml").write_text(with_admin(config))
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
            address = await admin_address(tmp_path)
            await world.until_healthy()
            limit(process.pid, 3)
            before, generated_at = oldest(world), world.document()["generatedAt"]

            def expired() -> bool:
                document = world.document()
                assert statuses(world) == {"current"}  # as it was last seen
                return all(row["expiresAt"] < document["generatedAt"] for row in document["checks"] if row["expiresAt"])

            await world.until(expired, "every row ages out, and the report goes on")
            assert world.document()["generatedAt"] > generated_at
            limit(process.pid, 1024)
            await world.until(lambda: oldest(world) > before and not expired(), "they come back")
            await until_async(
                lambda: events(tmp_path, "the monitor's own fault is over") == 1, "that it is over is logged"
            )
            assert events(tmp_path, "a fault of the monitor's own; rows age until it ends") == 1
            samples = await scrape(world.http, address)
            assert samples["lookout_own_faults_total", "descriptors"] > 0
            assert samples["lookout_probe_bugs_total",] == samples["lookout_probes_total", "failed", "indexer"] == 0
