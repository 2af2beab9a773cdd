"""``lookout run`` and its relatives as real processes, in a process group of their own."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.integration.fast import LOOKOUT, a_config
from tests.integration.served import a_free_port


@dataclass
class Service:
    """The addresses of a service, and what it says."""

    folder: Path
    port: int
    monitor_admin: str
    server_admin: str

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        return (self.folder / "said.log").read_text()


def a_service(folder: Path, upstreams: str) -> Service:
    """Write the configuration of a service that watches these upstreams, without a rate limit."""
    service = Service(folder, a_free_port(), f"127.0.0.1:{a_free_port()}", f"127.0.0.1:{a_free_port()}")
    config = a_config(upstreams).replace(
        '[admin]\nmonitor = ""\nserver = ""\n',
        f'[admin]\nmonitor = "{service.monitor_admin}"\nserver = "{service.server_admin}"\n'
        f'[server]\nlisten = "127.0.0.1:{service.port}"\nrate_limit_per_minute = 0\n',
    )
    (folder / "lookout.toml").write_text(config)
    return service


@contextmanager
def a_group(folder: Path, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command meanwhile, in a process group of its own; what it says is in ``said.log``."""
    with (folder / "said.log").open("ab") as said:
        process = subprocess.Popen(
            [LOOKOUT, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            for pid in living(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.wait()


def living(group: int) -> dict[int, str]:
    """The processes of a group that have not ended, with their commands."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(of) == group and state not in "ZX":
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                continue
    return found


async def until(holds: Callable[[], Awaitable[bool]], what: str, within_s: float = 30) -> float:
    """Wait for something; how long it took."""
    begun = time.monotonic()
    while not await holds():
        assert time.monotonic() < begun + within_s, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.05)
    return time.monotonic() - begun


async def answer(http: aiohttp.ClientSession, url: str) -> Any:
    """The document at a URL, or None if there is no good answer."""
    try:
        async with http.get(url) as got:
            return json.loads(await got.read()) if got.status == 200 else None
    except aiohttp.ClientConnectionError:
        return None
