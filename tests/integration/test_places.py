"""Three places as real processes, each with upstreams of its own that can be cut off: a monitor and two witnesses."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from tests.commands import a_command, lookout_here
from tests.integration.fast import World, a_world
from tests.integration.receivers import a_hook
from tests.integration.whole_service import Service, a_service, answer
from tests.wait import until_async

HARMLESS = ("current", "unmonitored")
SHORT_LIFE_S = 12  # of the monitor's rows and of the views that it keeps


class Place(NamedTuple):
    world: World
    service: Service
    process: subprocess.Popen[bytes]


class Deployment:
    """The first place is the monitor that combines all three."""

    def __init__(self, places: list[Place], http: aiohttp.ClientSession) -> None:
        self.places = places
        self._http = http
        self.statuses: list[set[str]] = []
        """Of all rows, each time that they were looked at."""

    async def rows(self, place: int = 0) -> dict[tuple[str, int | None], Any]:
        live = await answer(self._http, f"{self.places[place].service.base}/api/v1/protocol/liveness")
        rows = {} if live is None else {(row["service"], row["chainId"]): row for row in live["checks"]}
        if place == 0 and rows:
            self.statuses.append({row["status"] for row in rows.values()})
        return rows

    async def until(self, holds: Callable[[Any], bool], what: str, place: int = 0) -> None:
        async def look() -> bool:
            rows = await self.rows(place)
            return bool(rows) and holds(rows)

        await until_async(look, what, within_s=120)

    async def until_all(self, *statuses: str, agreeing: int | None = None, place: int = 0) -> None:
        def hold(rows: Any) -> bool:
            watched = [row for row in rows.values() if row["status"] != "unmonitored"]
            return all(
                row["status"] in statuses and agreeing in (None, row["metrics"].get("agreeing")) for row in watched
            )

        await self.until(hold, f"all rows of place {place} are {statuses}, {agreeing} agree", place)


@asynccontextmanager
async def three_places(folder: Path, policy: str = "", more: str = "") -> AsyncIterator[Deployment]:
    """``policy`` and ``more`` are further keys and tables of the monitor."""
    async with AsyncExitStack() as stack, aiohttp.ClientSession() as http:
        worlds, services = [], []
        for name in ("monitor", "singapore", "lima"):
            (folder / name).mkdir()
            worlds.append(await stack.enter_async_context(a_world(folder / name)))
            services.append(a_service(folder / name, worlds[-1].base))
        config = folder / "monitor" / "lookout.toml"
        witnesses = "".join(
            f'[[witnesses]]\nname = "{name}"\nurl = "{service.base}"\n'
            for name, service in zip(("Singapore", "Lima"), services[1:], strict=True)
        )
        text = config.read_text().replace("[policy]\n", f"[policy]\nrow_lifetime_s = {SHORT_LIFE_S}\n{policy}")
        config.write_text(f'{text}{more}{witnesses}[monitor]\nplace = "Frankfurt"\nrecord = "log.jsonl"\n')
        places = []
        for name, world, service in zip(("monitor", "singapore", "lima"), worlds, services, strict=True):
            process = stack.enter_context(a_command(folder / name, "run"))
            places.append(Place(world, service, process))
        yield Deployment(places, http)


@pytest.mark.first
@pytest.mark.clause("W2", "W3", "W4", "W7", "W9")
async def test_three_places_as_processes(tmp_path: Path) -> None:
    async with three_places(tmp_path) as deployment:
        monitor, singapore, lima = (place.world for place in deployment.places)
        await deployment.until_all("current", agreeing=3)
        deployment.statuses.clear()

        # One witness is cut off: nothing changes, but for how many agree.
        await singapore.order("*", "refuse")
        await deployment.until_all("unavailable", "unknown", place=1)
        await deployment.until_all("current", agreeing=2)
        await singapore.order("*", None)
        await deployment.until_all("current", agreeing=3)
        assert set().union(*deployment.statuses) <= set(HARMLESS)

        # The monitor is cut off: the others see the services.
        await monitor.order("*", "refuse")
        await deployment.until_all("current", agreeing=2)
        await asyncio.sleep(SHORT_LIFE_S)  # its own rows of before have expired
        await deployment.until_all("current", agreeing=2)
        assert set().union(*deployment.statuses) <= set(HARMLESS)
        await monitor.order("*", None)
        await deployment.until_all("current", agreeing=3)

        # A service that is refused from two places is unavailable.
        for world in (singapore, lima):
            await world.order("squid/1", "refuse")
        await deployment.until(
            lambda rows: (
                rows["indexer", 1]["status"] == "unavailable"
                and rows["indexer", 1]["metrics"] == {"views": 3, "agreeing": 2}
            ),
            "two places change the row",
        )
        for world in (singapore, lima):
            await world.order("squid/1", None)
        await deployment.until_all("current", agreeing=3)
        deployment.statuses.clear()

        # The monitor is cut off from everything: it knows nothing, and blames nobody.
        for place in deployment.places[1:]:
            os.killpg(place.process.pid, signal.SIGKILL)
        await monitor.order("*", "refuse")
        await deployment.until_all("unknown")
        await asyncio.sleep(SHORT_LIFE_S)
        await deployment.until_all("unknown")
        assert "unavailable" not in set().union(*deployment.statuses)

        process = deployment.places[0].process
        process.terminate()
        process.wait(30)
        assert lookout_here(tmp_path / "monitor", "replay", "log.jsonl", "--live", "live.json").returncode == 0
        replayed = json.loads((tmp_path / "monitor" / "live.json").read_text())
        assert replayed["checks"] == monitor.document()["checks"]


@pytest.mark.long
@pytest.mark.clause("W8")
async def test_a_place_that_sees_a_service_otherwise_is_named_and_alerted(tmp_path: Path) -> None:
    with a_hook() as hook:
        alerts = f'[alerts]\ngroup_s = 0\ntargets = {{ops = "{hook.address}"}}\n[[alerts.rules]]\nfrom = "degraded"\n'
        async with three_places(tmp_path, "endpoint_alert_s = 70\n", alerts) as deployment:
            base, singapore = deployment.places[0].service.base, deployment.places[1].world
            await deployment.until_all("current", agreeing=3)
            deployment.statuses.clear()
            await singapore.order("squid/1", "refuse")
            await deployment.until(lambda rows: rows["indexer", 1]["metrics"]["agreeing"] == 2, "two places agree")
            differs_at = time.monotonic()

            async def named() -> bool:
                async with aiohttp.ClientSession() as http:
                    about = await answer(http, f"{base}/about.json")
                return [row["status"] for row in about["places"][1]["differs"]] == ["unavailable"]

            await until_async(named, "it is named", within_s=90)
            assert time.monotonic() - differs_at > 55, "after a minute"
            await until_async(lambda: len(hook.accepted) > 0, "its alert", within_s=90)
            assert "Singapore" in hook.accepted[0].body
            assert "2 of 3 places" in hook.accepted[0].body
            await singapore.order("squid/1", None)
            await until_async(lambda: len(hook.accepted) > 1, "its end", within_s=90)
            await deployment.until_all("current", agreeing=3)
            assert set().union(*deployment.statuses) <= set(HARMLESS)
