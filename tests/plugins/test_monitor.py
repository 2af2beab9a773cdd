"""A monitor one of whose plug-ins hangs: the others are asked as ever, and no process is left."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from lookout.base.clock import SystemClock
from lookout.base.instants import parse_instant
from tests.commands import a_command, said
from tests.integration.fast import World, a_config, a_world
from tests.plugins.packages import install, path_with, with_parse
from tests.wait import until, until_async

HANGS: Final = with_parse("import time", "open(__file__ + '.asked', 'w').close()", "time.sleep(3600)")
HANGS_S: Final = 20
OLDEST_MS: Final = 7_000  # who waits for an import that hangs is 8 s late
SERVICE: Final = """
[[services]]
name = "tide"
[[services.checks]]
kind = "tidal"
chain = 1
url = "{base}/json/1"
"""


@dataclass
class Running:
    world: World
    process: "subprocess.Popen[bytes]"
    place: str

    @property
    def plugins(self) -> list[int]:
        """The processes of the plug-in, by their numbers."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    if self.place in (folder / "cmdline").read_text().split("\0"):
                        found.append(int(folder.name))
                except (FileNotFoundError, ProcessLookupError):
                    continue
        return found

    def write(self, text: str) -> None:
        (self.world.folder / "new.toml").write_text(text)
        (self.world.folder / "new.toml").replace(self.world.folder / "lookout.toml")


@asynccontextmanager
async def a_monitor(folder: Path, probe_timeout_s: float) -> AsyncIterator[Running]:
    """With all rows of the launch configuration, and one more whose plug-in hangs."""
    place = install(folder, HANGS, distribution=f"lookout-tidal-{os.getpid()}-{folder.name.replace('_', '-')}")
    async with a_world(folder) as world:
        (folder / "lookout.toml").write_text(
            a_config(world.base, probe_timeout_s=probe_timeout_s, failures_for_unavailable=1)
            + SERVICE.format(base=world.base)
        )
        with a_command(folder, "monitor", "-c", "lookout.toml", **path_with(folder)) as process:
            running = Running(world, process, place)
            try:
                asked = folder / f"{place.partition(':')[0]}.py.asked"
                await until_async(lambda: asked.exists() or process.poll() is not None, "the plug-in hangs")
                assert process.poll() is None, said(folder)
                assert len(running.plugins) == 1
                yield running
            finally:
                process.kill()
                until(lambda: running.plugins == [], "no plug-in is left, also of a monitor that was killed")


@pytest.mark.first
@pytest.mark.clause("M6")
async def test_nobody_else_is_late(tmp_path: Path) -> None:
    async with a_monitor(tmp_path, probe_timeout_s=HANGS_S) as running:
        world, hung_at = running.world, SystemClock().now()

        def all_were_asked_again() -> bool:
            return min(observed_at(world)) > hung_at + 3_000

        await world.until(all_were_asked_again, "the others are asked again and again")
        assert world.status_of("tide", 1) == "unknown/no-observation"  # while it hangs
        await world.until(lambda: world.status_of("tide", 1) == "unavailable/unreachable", "the plug-in's row failed")
        assert "died of a bug" not in said(tmp_path)


@pytest.mark.clause("M6")
async def test_a_reload_that_names_two_that_hang_is_refused_for_both_and_nobody_is_late(tmp_path: Path) -> None:
    install(tmp_path, "import time; time.sleep(3600)")
    install(tmp_path, "import time; time.sleep(3600)", "ebbing", "lookout-ebbing")
    async with a_world(tmp_path) as world:
        config = tmp_path / "lookout.toml"
        config.write_text(a_config(world.base))
        with a_command(tmp_path, "monitor", "-c", "lookout.toml", **path_with(tmp_path)) as process:
            await world.until_healthy()
            service = SERVICE.format(base=world.base)
            second = service.replace("tide", "ebb").replace("tidal", "ebbing")
            config.write_text(a_config(world.base) + service + second)
            process.send_signal(signal.SIGHUP)
            ages = []

            def is_refused() -> bool:
                ages.append(oldest_ms(world))
                text = said(tmp_path)
                hanging = (f"lookout-{name} 1.0, which provides it, is not imported" for name in ("tidal", "ebbing"))
                return all(f"{each} within 8 s" in text for each in hanging)

            await until_async(is_refused, "the reload is refused")
            assert max(ages) < OLDEST_MS
            assert len(ages) > 5
            assert process.poll() is None


def oldest_ms(world: World) -> int:
    """The age of the row that was observed longest ago, but for the plug-in's."""
    return parse_instant(world.document()["generatedAt"]) - min(observed_at(world))


def observed_at(world: World) -> list[int]:
    """When each row was observed, but for the plug-in's."""
    return [
        parse_instant(row["observedAt"]) if row["observedAt"] is not None else 0
        for row in world.document()["checks"]
        if row["service"] != "tide" and row["status"] != "unmonitored"
    ]


@pytest.mark.first
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda running: running.process.terminate(), id="the monitor ends"),
        pytest.param(lambda running: running.process.kill(), id="the monitor is killed"),
        pytest.param(
            lambda running: (
                running.write(a_config(running.world.base)),
                running.process.send_signal(signal.SIGHUP),
            ),
            id="a reload removes the service",
        ),
    ],
)
async def test_no_process_is_left(end: Callable[[Running], object], tmp_path: Path) -> None:
    async with a_monitor(tmp_path, probe_timeout_s=HANGS_S) as running:
        end(running)
        await until_async(lambda: running.plugins == [], "the plug-in is gone", 40)
