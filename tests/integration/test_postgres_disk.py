"""A disk that fills up under PostgreSQL, while a monitor writes and servers answer."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.integration.fast import a_world, run
from tests.integration.small_disks import REFUSED, a_small_disk, fill
from tests.integration.whole_service import BUCKET_S, Deployment, deployed
from tests.leases import or_skipped
from tests.postgres import Postgres, Programs, a_postgres, from_a_wheel
from tests.wait import until_async


@pytest.fixture
def disk() -> Iterator[Path]:
    with or_skipped(a_small_disk(128)) as disk:
        yield disk


async def outage(of: Deployment, disk: Path, folder: Path, server: Postgres) -> None:
    """Fill the disk until nothing is stored any more, for some buckets; free it, and everything is."""
    said = folder / "a" / "said.log"

    def is_refused() -> bool:
        fill(disk)
        with suppress(psycopg.OperationalError):  # which crashes if it is the log's disk
            server.ask("postgres", "SELECT pg_switch_wal()")
        return REFUSED in said.read_text()

    await until_async(is_refused, "a full disk refuses what is written")
    await asyncio.sleep(1)
    newest, began = of.readers.newest, time.monotonic()
    while time.monotonic() < began + 2 * BUCKET_S + 1:
        assert of.readers.newest == newest
        await asyncio.sleep(0.1)
    (disk / "ballast").unlink()
    if not server.is_running():
        server.start()
    await of.until_published(newest, "after the disk was full")
    await asyncio.sleep(BUCKET_S)


async def nothing_was_lost(of: Deployment) -> None:
    """Neither of what is served nor of what is stored: a monitor that is killed and started goes on from that."""
    reached = max(n for _, _, n in of.readers.buckets)
    row = [of.readers.buckets["messaging", None, n] for n in range(reached + 1)]
    assert "-" not in row[1:], row
    newest = of.readers.newest
    of.monitors["a"].kill()
    of.start("a")
    await of.until_published(newest, "after the monitor was killed")
    await asyncio.sleep(BUCKET_S)
    assert of.readers.wrong == []


def told_once(folder: Path) -> str:
    """What the monitor said was wrong."""
    said = (folder / "a" / "said.log").read_text()
    assert (said.count(REFUSED), said.count("stored again")) == (1, 1), said
    assert "standing by" not in said
    assert not [path for path in folder.glob("*/said.log") if "Traceback" in path.read_text()]
    (line,) = (json.loads(line) for line in said.splitlines() if REFUSED in line)
    return str(line["error"])


@pytest.mark.long
@pytest.mark.clause("M7", "A11", "H16")
@pytest.mark.parametrize("programs", [from_a_wheel()])
def test_a_database_whose_disk_is_full_is_written_when_it_is_not(
    programs: Programs, disk: Path, tmp_path: Path
) -> None:
    async def scenario(server: Postgres) -> None:
        async with a_world(tmp_path) as world, deployed(server, tmp_path, world.base) as of:
            began = time.monotonic()
            await outage(of, disk, tmp_path, server)
            refusals = (server.folder / "log").read_text().count("could not extend file")
            assert refusals < 3 * (time.monotonic() - began)  # as many as there would be publications
            await nothing_was_lost(of)

    with or_skipped(a_postgres(programs, disk, "--wal-segsize=1")) as server:
        server.ask("postgres", "ALTER SYSTEM SET autovacuum = off")  # which makes room now and then
        server.ask("postgres", "SELECT pg_reload_conf()")
        run(scenario(server))
        place = f"PostgreSQL lookout0 on {server.folder}: "
    assert re.fullmatch(f"{re.escape(place)}could not .*: No space left on device", told_once(tmp_path))
