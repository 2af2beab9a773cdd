"""Many readers beside a monitor that goes on watching, and how soon they see what it publishes."""

import asyncio
import re
import shutil
import time
from itertools import pairwise
from pathlib import Path

import pytest

from lookout.base.clock import parse_instant
from tests.commands import a_command
from tests.integration.fast import POLICY, World, a_world
from tests.integration.metrics import Samples, scrape
from tests.integration.served import LIVE
from tests.integration.whole_service import Service, a_service, answer
from tests.wait import until_async

LOAD_S = 5
CONNECTIONS = 32


@pytest.mark.long
@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not there (Debian: apt-get install wrk)")
@pytest.mark.clause("M4", "M5")
async def test_under_load_no_reader_fails_and_no_probe_is_late(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        service = a_service(tmp_path, world.base)
        with a_command(tmp_path, "run", "-c", "lookout.toml"):
            await until_served(world, service)
            before = await scrape(world.http, service.monitor_admin)
            failed_before = failures(await scrape(world.http, service.server_admin))  # before the first report
            begun = time.monotonic()
            watching = asyncio.create_task(ages_and_instants(world, service))
            printed = await wrk(service.base + LIVE)
            ages_s, instants = await watching
            took_s = time.monotonic() - begun
            after = await scrape(world.http, service.monitor_admin)
            served = await scrape(world.http, service.server_admin)

    assert "Socket errors" not in printed, printed
    assert "Non-2xx" not in printed, printed
    requests = int(re.findall(r"(\d+) requests in", printed)[0])
    assert requests > 1_000
    assert served["lookout_requests_total", "200", "live"] >= requests
    assert failures(served) == failed_before

    assert late(after) == late(before), "a probe or a reading began more than 2.5 s late"
    assert grown(before, after, "lookout_scheduler_delay_seconds_count") > 50
    assert slow(after) == slow(before), "a probe took more than 5 s"
    # No request starts a probe: a source has its own pace, however many readers there are.
    for service_name, sources in (("messaging", 1), ("indexer", 5)):
        at_most = sources * (took_s / POLICY["recheck_s"] + 2)
        assert 0 < probes(after, service_name) - probes(before, service_name) <= at_most

    assert max(ages_s) <= 5 + POLICY["heartbeat_s"], f"a report was {max(ages_s):.2f} s old"
    assert all(earlier <= later for earlier, later in pairwise(instants))
    assert len(set(instants)) >= LOAD_S
    print(f"{requests / LOAD_S:.0f} requests a second; the oldest report was {max(ages_s):.2f} s old")  # noqa: T201


async def until_served(world: World, service: Service) -> None:
    await world.until_healthy()

    async def ready() -> bool:
        # A worker has loaded the report a moment before it listens.
        urls = f"http://{service.server_admin}/readyz?maxAge=2", service.base + LIVE
        return all([await answer(world.http, url) is not None for url in urls])

    await until_async(ready, "the report is served")


async def wrk(url: str) -> str:
    command = ("wrk", "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{LOAD_S}s", url)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return printed.decode()


async def ages_and_instants(world: World, service: Service) -> tuple[list[float], list[int]]:
    """Of the reports that one more reader gets during the load, ten a second."""
    ages_s, instants = [], []
    until_s = time.monotonic() + LOAD_S
    while time.monotonic() < until_s:
        asked_at = time.time()
        async with world.http.get(service.base + LIVE) as got:
            assert got.status == 200
            instant = parse_instant((await got.json())["generatedAt"])
        ages_s.append(asked_at - instant / 1000)
        instants.append(instant)
        await asyncio.sleep(0.1)
    return ages_s, instants


def failures(samples: Samples) -> float:
    return sum(number for key, number in samples.items() if key[:2] == ("lookout_requests_total", "503"))


def late(samples: Samples) -> float:
    return samples["lookout_scheduler_delay_seconds_count",] - samples["lookout_scheduler_delay_seconds_bucket", "2.5"]


def slow(samples: Samples) -> float:
    """Probes that took more than 5 seconds."""
    counts = {key[1:]: number for key, number in samples.items() if key[0] == "lookout_probe_duration_seconds_count"}
    quick = sum(samples["lookout_probe_duration_seconds_bucket", chain, "5.0", service] for chain, service in counts)
    return sum(counts.values()) - quick


def probes(samples: Samples, service: str) -> float:
    """Of this service, on whichever chain."""
    name = "lookout_probe_duration_seconds_count"
    return sum(number for key, number in samples.items() if key[0] == name and key[2] == service)


def grown(before: Samples, after: Samples, *key: str) -> float:
    return after[key] - before.get(key, 0)
