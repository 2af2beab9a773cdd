"""The monitor in this process and the server in processes of its own: load on one never delays the other."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from lookout.settings import Settings
from lookout.wiring.monitor import monitor

_TO_END_S: Final = 5.0

log = structlog.get_logger("run")


class ServerEndedError(Exception):
    """The server ended by itself, and has said why."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the server ended with exit code {exit_code}")
        self.exit_code = exit_code


async def monitor_and_serve(settings: Settings, folder: Path, config: Path) -> None:
    """Both, until this is cancelled or one of them ends, which ends the other. ``config`` is the file that the settings
    were read from, and ``folder`` where it lies."""
    async with _a_server(config) as server:
        monitoring = asyncio.create_task(monitor(settings, folder), name="monitor")
        serving = asyncio.create_task(server.wait(), name="serve")
        try:
            await asyncio.wait((monitoring, serving), return_when=asyncio.FIRST_COMPLETED)
            if not monitoring.done():
                raise ServerEndedError(_told(serving.result()))
            monitoring.result()
        finally:
            monitoring.cancel()
            serving.cancel()
            await asyncio.gather(monitoring, serving, return_exceptions=True)


def _told(returncode: int) -> int:
    """The exit code to end with. What ends with an error has said why; who was killed, or asked to end, has not."""
    if returncode > 0:
        return returncode
    by = signal.Signals(-returncode).name if returncode else "request"
    log.error("the server ended", by=by)
    return 1


@asynccontextmanager
async def _a_server(config: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    command = (sys.executable, "-m", "lookout", "serve", "--end-with-parent", "-c", str(config))
    server = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
    try:
        yield server
    finally:
        await _end(server)


async def _end(server: asyncio.subprocess.Process) -> None:
    if server.returncode is not None:
        return
    server.terminate()
    try:
        await asyncio.wait_for(server.wait(), _TO_END_S)
    except TimeoutError:
        server.kill()
        await server.wait()
