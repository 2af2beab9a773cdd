"""The monitor in this process and the server in processes of its own: load on one never delays the other."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path
from typing import Final

import msgspec

from lookout.app.monitor import monitor
from lookout.app.process import WRONG_USE
from lookout.app.reloader import Reloader
from lookout.app.server_process import BESIDE_MONITOR, command_line, small_environment
from lookout.base.logger import get_logger
from lookout.base.sockets import ListenError, is_unix, listen_for
from lookout.config.settings import Settings
from lookout.config.tables import ServerSettings

_TO_END_S: Final = 8.0  # answers that were begun have five
_FIRST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0

log = get_logger("run")


class ServerEndedError(Exception):
    """The server cannot be run, and has said why."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"the server ended with exit code {exit_code}")
        self.exit_code = exit_code


async def monitor_and_serve(settings: Settings, folder: Path, reloader: Reloader | None = None) -> None:
    """Both, until this is cancelled, the monitor ends or the server cannot be run. Paths in the settings are relative
    to ``folder``. A server that dies is started again: that is nothing that the monitor should suffer from. With a
    reloader, whose settings these are, the monitor uses those in force, and so does a server started later.
    ListenError, before anything is probed or stored, if an address cannot be listened on."""
    _check_addresses(settings)
    monitoring = asyncio.create_task(monitor(settings, folder, reloader), name="monitor")
    in_force = settings.for_server if reloader is None else reloader.for_server
    serving = asyncio.create_task(_keep_serving(in_force, folder), name="serve")
    try:
        done, _ = await asyncio.wait((monitoring, serving), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        monitoring.cancel()
        serving.cancel()
        await asyncio.gather(monitoring, serving, return_exceptions=True)


def _check_addresses(settings: Settings) -> None:
    """For here alone: a monitor and a server on machines of their own may have the same ones. The server looks again
    when it begins, but by then the monitor probes and writes."""
    ours = {
        "server.listen": settings.server.listen,
        "admin.monitor": settings.admin.monitor,
        "admin.server": settings.admin.server,
    }
    listened = {key: address for key, address in ours.items() if address}
    for key, address in listened.items():
        # Until the store is ours, the monitor that has it may listen where ours is to.
        if key != "admin.monitor" and not is_unix(address):
            listen_for(key, address).close()
    for (other, taken), (key, address) in combinations(listened.items(), 2):
        if taken == address and not taken.endswith(":0"):
            raise ListenError(f"{key}: has to be another address than {other}: lookout run listens on both")


async def _keep_serving(in_force: Callable[[], ServerSettings], folder: Path) -> None:
    wait_s = _FIRST_WAIT_S
    while True:
        began_s = asyncio.get_running_loop().time()
        async with _a_server(in_force(), folder) as server:
            code = await server.wait()
        if code == WRONG_USE:
            raise ServerEndedError(code)
        if asyncio.get_running_loop().time() - began_s > _LONGEST_WAIT_S:
            wait_s = _FIRST_WAIT_S
        log.error("the server ended; starting it again", by=_ending(code), after_s=wait_s)
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _LONGEST_WAIT_S)


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


@asynccontextmanager
async def _a_server(settings: ServerSettings, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    server = await asyncio.create_subprocess_exec(
        *command_line(BESIDE_MONITOR, str(folder)), stdin=asyncio.subprocess.PIPE, env=small_environment(settings)
    )
    try:
        if server.stdin is not None:
            server.stdin.write(msgspec.json.encode(settings) + b"\n")  # and stays open for as long as we live
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
