"""A service that reloads its configuration, as real processes."""

import asyncio
import json
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from lookout.cli import main
from tests.commands import a_command
from tests.integration.fast import POLICY, World, a_world
from tests.integration.metrics import Samples, scrape
from tests.integration.served import HISTORY, LIVE
from tests.integration.whole_service import Service, a_service, answer
from tests.wait import until_async

EVERY_CHAIN = "chains = [1, 42161, 137, 56, 11155111]"


@dataclass
class Running:
    """A service whose chain 56 has indexers only, so that it can go without touching anybody else."""

    world: World
    service: Service
    process: "subprocess.Popen[bytes]"
    whole: str  # the configuration that it began with

    def write(self, text: str) -> None:
        """As an editor does: the file is never there in part."""
        (self.service.folder / "new.toml").write_text(text)
        (self.service.folder / "new.toml").replace(self.service.folder / "lookout.toml")

    async def samples(self) -> Samples:
        return await scrape(self.world.http, self.service.monitor_admin)

    async def count(self, outcome: str) -> float:
        return (await self.samples())["lookout_reloads_total", outcome]

    async def hang_up(self, outcome: str = "applied") -> None:
        """Send SIGHUP, and wait until it was handled."""
        before = await self.count(outcome)
        self.process.send_signal(signal.SIGHUP)

        async def is_handled() -> bool:
            assert self.process.poll() is None, self.service.said
            return await self.count(outcome) > before

        await until_async(is_handled, f"a reload is {outcome}")

    async def command(self) -> Result:
        return await asyncio.to_thread(reload, self.service.folder / "lookout.toml")

    def events(self, event: str) -> list[Any]:
        lines = (json.loads(line) for line in self.service.said.splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == event]


def reload(config: Path) -> Result:
    return CliRunner().invoke(main, ["reload", "-c", str(config)])


def without(text: str, chain_id: int) -> str:
    """The configuration without a chain and its indexers."""
    tables = re.split(r"(?m)^(?=\[)", text)
    return "".join(each for each in tables if not re.search(rf"(?m)^(id|chain) = {chain_id}$", each))


@asynccontextmanager
async def running(folder: Path, command: str = "run", history: str = "") -> AsyncIterator[Running]:
    async with a_world(folder) as world:
        service = a_service(folder, world.base)
        path = folder / "lookout.toml"
        text = path.read_text().replace(EVERY_CHAIN, EVERY_CHAIN.replace("56, ", ""))
        slow = f"probe_timeout_s = {POLICY['probe_timeout_s']}\n"
        text = text.replace(slow, "probe_timeout_s = 20\n")  # so that nobody fails who is only slow
        text = text.replace("[history]\n", f"[history]\n{history}")
        path.write_text(text)
        with a_command(folder, command, "-c", "lookout.toml") as process:
            running = Running(world, service, process, text)

            async def answers() -> bool:
                assert process.poll() is None, service.said
                if command == "run":  # as its readers see it, which is a moment later
                    live = await answer(world.http, service.base + LIVE)
                    if not await answer(world.http, service.base + HISTORY):
                        return False
                else:
                    live = world.document()
                rows = [] if live is None else live["checks"]
                return bool(rows) and all(row["status"] in ("current", "unmonitored") for row in rows)

            await until_async(answers, "all is current", 90)
            yield running
