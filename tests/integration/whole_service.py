"""``lookout run`` and its relatives as real processes, in a process group of their own; and a whole deployment."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psycopg

from tests.commands import a_command, said
from tests.integration.fast import a_config
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.postgres import Postgres
from tests.wait import until_async

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


@dataclass
class Readers:
    """What those who ask all servers all the time have seen; what must never be is in ``wrong``."""

    ports: list[int]
    http: aiohttp.ClientSession
    wrong: list[str] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)  # by ETag
    reports: dict[int, Any] = field(default_factory=dict)  # the last of each server
    buckets: dict[tuple[str, int | None, int], str] = field(default_factory=dict)  # those that ended
    first: str = ""
    success: dict[tuple[int, str, int | None], str] = field(default_factory=dict)

    async def ask_all_the_time(self) -> None:
        while True:
            for port in self.ports:
                await self._ask(port)
            await asyncio.sleep(0.1)

    async def _ask(self, port: int) -> None:
        for path in (LIVE, HISTORY):
            try:
                async with self.http.get(f"http://127.0.0.1:{port}{path}") as got:
                    code, etag, body = got.status, got.headers.get("ETag", ""), await got.read()
            except aiohttp.ClientConnectionError:
                if port in self.reports:
                    self.wrong.append(f"{port} does not answer")
                continue
            if code != 200:
                if path == LIVE and port in self.reports:
                    self.wrong.append(f"{port} answered {code}")
                continue
            if self.bodies.setdefault(etag, body) != body:
                self.wrong.append(f"two bodies with the ETag {etag}")
            document = json.loads(body)
            if path == LIVE:
                self._see_live(port, document)
            else:
                self._see_history(document)

    def _see_live(self, port: int, document: Any) -> None:
        before = self.reports.get(port)
        if before is not None and document["generatedAt"] < before["generatedAt"]:
            self.wrong.append(f"generatedAt went back from {before['generatedAt']} to {document['generatedAt']}")
        self.reports[port] = document
        for row in document["checks"]:
            check, at = (port, row["service"], row["chainId"]), row["lastSuccessAt"]
            if check in self.success and (at is None or at < self.success[check]):
                self.wrong.append(f"{check} had the lastSuccessAt {self.success[check]} and has {at}")
            if at is not None:
                self.success[check] = at

    def _see_history(self, document: Any) -> None:
        self.first = self.first or document["from"]
        if document["from"] != self.first:
            self.wrong.append(f"the history begins at {document['from']} now")
        for row in document["rows"]:
            for n, character in enumerate(row["buckets"][:-1]):
                bucket = (row["service"], row["chainId"], n)
                if self.buckets.setdefault(bucket, character) != character:
                    self.wrong.append(f"{bucket} was {self.buckets[bucket]} and is {character}")

    @property
    def newest(self) -> str:
        return max((str(report["generatedAt"]) for report in self.reports.values()), default="")


@dataclass
class Deployment:
    """Two monitors, the servers' readers, and the database that they meet in."""

    server: Postgres
    database: str
    monitors: dict[str, subprocess.Popen[bytes]]
    readers: Readers
    start: Callable[[str], None]

    def epoch(self) -> int:
        ((epoch,),) = self.server.ask(self.database, "SELECT epoch FROM lookout.lease")
        return int(epoch)

    def writing(self) -> str:
        """Which monitor holds the store."""
        ((holder,),) = self.server.ask(self.database, "SELECT holder FROM lookout.lease")
        (name,) = (name for name, process in self.monitors.items() if str(process.pid) == holder.split()[-1])
        return str(name)

    async def until_published(self, after: str, what: str) -> None:
        """Wait until all servers have a publication made after this instant."""

        def all_have_it() -> bool:
            return all(report["generatedAt"] > after for report in self.readers.reports.values())

        await until_async(all_have_it, f"a takeover: {what}", TAKEN_OVER_WITHIN_S)

    async def until_epoch(self, after: int, what: str) -> None:
        """Wait until a later epoch has written."""
        has_written = "SELECT FROM lookout.lease WHERE epoch > %s AND writes > 0"

        def it_has() -> bool:
            try:
                return bool(self.server.ask(self.database, has_written, after))
            except psycopg.OperationalError:  # while it is restarted it does not answer
                return False

        await until_async(it_has, f"a takeover: {what}", TAKEN_OVER_WITHIN_S)

    async def until_standing_by(self, name: str, folder: Path) -> None:
        said = folder / name / "said.log"

        def it_does() -> bool:
            return "waiting for the other monitor to end" in said.read_text().rpartition('"stopped"')[2]

        await until_async(it_does, f"{name} stands by", TAKEN_OVER_WITHIN_S)


def a_place(folder: Path, upstreams: str, url: str, port: int) -> Path:
    """Make a folder with the configuration of a monitor, or of a server on this port, that uses a database."""
    folder.mkdir()
    config = a_config(upstreams).replace("sqlite:lookout.db", url)
    config = config.replace("[admin]", f'[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = 0\n[admin]')
    config += f"bucket_s = {BUCKET_S}\nretention_days = 1\ncounts_from_s = 0.5\nhold_s = 5\n"
    (folder / "lookout.toml").write_text(config)
    return folder


@asynccontextmanager
async def deployed(server: Postgres, folder: Path, upstreams: str) -> AsyncIterator[Deployment]:
    database = server.a_database()
    url = server.url(database, password=PLANTED)
    ports = [a_free_port() for _ in range(2)]
    with ExitStack() as processes:
        monitors: dict[str, subprocess.Popen[bytes]] = {}

        def start(name: str) -> None:
            where = folder / name if (folder / name).exists() else a_place(folder / name, upstreams, url, 0)
            monitors[name] = processes.enter_context(a_command(where, "monitor", "-c", "lookout.toml"))

        start("a")
        for n, port in enumerate(ports):
            where = a_place(folder / f"server{n}", upstreams, url, port)
            processes.enter_context(a_command(where, "serve", "-c", "lookout.toml"))
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as http:
            readers = Readers(ports, http)
            asking = asyncio.create_task(readers.ask_all_the_time())
            try:
                deployment = Deployment(server, database, monitors, readers, start)

                def all_tell() -> bool:
                    assert not asking.done(), asking.exception()
                    return len(readers.reports) == len(ports) and bool(readers.success)

                await until_async(all_tell, "a report from every server", 40)
                yield deployment
            finally:
                asking.cancel()
                with suppress(asyncio.CancelledError):
                    await asking
