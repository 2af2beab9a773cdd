"""``lookout run`` and its relatives as real processes, in a process group of their own; and a whole deployment."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.commands import said
from tests.integration.fast import a_config
from tests.integration.served import a_free_port

PLANTED = "xyzzy-planted"
TAKEN_OVER_WITHIN_S = 90  # 10 are promised, of a machine that is not busy
BUCKET_S = 2


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
        return said(self.folder)


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


async def answer(http: aiohttp.ClientSession, url: str) -> Any:
    """The document at a URL, or None if there is no good answer."""
    try:
        async with http.get(url) as got:
            return json.loads(await got.read()) if got.status == 200 else None
    except aiohttp.ClientConnectionError:
        return None


def a_place(folder: Path, upstreams: str, url: str, port: int) -> Path:
    """Make a folder with the configuration of a monitor, or of a server on this port, that uses a database."""
    folder.mkdir()
    config = a_config(upstreams).replace("sqlite:lookout.db", url)
    config = config.replace("[admin]", f'[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = 0\n[admin]')
    config += f"bucket_s = {BUCKET_S}\nretention_days = 1\ncounts_from_s = 0.5\nhold_s = 5\n"
    (folder / "lookout.toml").write_text(config)
    return folder
