"""Two monitors and three servers on one PostgreSQL, and everything that can happen to the one that writes."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.integration.fast import a_config, a_world, run
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.integration.together import a_group
from tests.postgres import Postgres, a_postgres

PLANTED = "xyzzy-planted"
TAKEN_OVER_WITHIN_S = 20  # 10 are promised, of a machine that is not busy
BUCKET_S = 2
AUDIT = """
CREATE TABLE audit (n bigserial, epoch bigint, name text, etag text, generated_at bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit (epoch, name, etag, generated_at) VALUES (NEW.epoch, NEW.name, NEW.etag, NEW.generated_at);
    RETURN NEW;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON lookout.documents FOR EACH ROW EXECUTE FUNCTION note();
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with a_postgres() as server:
        yield server


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
        ((epoch,),) = self.server.ask(self.database, "SELECT epoch FROM lookout.writer")
        return int(epoch)

    def writing(self) -> str:
        """Which monitor holds the store."""
        ((holder,),) = self.server.ask(self.database, "SELECT holder FROM lookout.writer")
        (name,) = (name for name, process in self.monitors.items() if str(process.pid) == holder.split()[-1])
        return str(name)

    async def until_published(self, after: str, what: str) -> float:
        """Wait until all servers tell of a publication made after this instant; how long it took."""
        begun = time.monotonic()
        while any(report["generatedAt"] <= after for report in self.readers.reports.values()):
            assert time.monotonic() - begun < TAKEN_OVER_WITHIN_S, f"no takeover: {what}"
            await asyncio.sleep(0.05)
        return time.monotonic() - begun

    async def until_epoch(self, after: int, what: str) -> float:
        begun = time.monotonic()
        while True:
            with suppress(Exception):  # while it is restarted it does not answer
                if self.epoch() > after:
                    return time.monotonic() - begun
            assert time.monotonic() - begun < TAKEN_OVER_WITHIN_S, f"no takeover: {what}"
            await asyncio.sleep(0.05)

    async def until_standing_by(self, name: str, folder: Path) -> None:
        begun, said = time.monotonic(), folder / name / "said.log"
        while "waiting for the other monitor to end" not in said.read_text().rpartition('"stopped"')[2]:
            assert time.monotonic() - begun < TAKEN_OVER_WITHIN_S, said.read_text()
            await asyncio.sleep(0.05)


@asynccontextmanager
async def deployed(server: Postgres, folder: Path, upstreams: str) -> AsyncIterator[Deployment]:
    database = server.a_database()
    url = server.url(database, password=PLANTED)
    ports = [a_free_port() for _ in range(3)]
    with ExitStack() as processes:
        monitors: dict[str, subprocess.Popen[bytes]] = {}

        def place(name: str, port: int) -> Path:
            (folder / name).mkdir()
            config = a_config(upstreams).replace("sqlite:lookout.db", url)
            config = config.replace(
                "[admin]", f'[server]\nlisten = "127.0.0.1:{port}"\nrate_limit_per_minute = 0\n[admin]'
            )
            config += f"bucket_s = {BUCKET_S}\nretention_days = 1\ncounts_from_s = 0.5\nhold_s = 5\n"
            (folder / name / "lookout.toml").write_text(config)
            return folder / name

        def start(name: str) -> None:
            where = folder / name if (folder / name).exists() else place(name, 0)
            monitors[name] = processes.enter_context(a_group(where, "monitor", "-c", "lookout.toml"))

        start("a")
        for n, port in enumerate(ports):
            processes.enter_context(a_group(place(f"server{n}", port), "serve", "-c", "lookout.toml"))
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            readers = Readers(ports, http)
            asking = asyncio.create_task(readers.ask_all_the_time())
            try:
                deployment = Deployment(server, database, monitors, readers, start)
                until = time.monotonic() + 40
                while len(readers.reports) < 3 or not readers.success:
                    assert not asking.done(), asking.exception()
                    assert time.monotonic() < until, "no report from every server"
                    await asyncio.sleep(0.1)
                server.ask(database, AUDIT)
                yield deployment
            finally:
                asking.cancel()
                with suppress(asyncio.CancelledError):
                    await asking


@pytest.mark.clause("M7", "H16", "A11")
def test_whatever_happens_to_the_writer_there_is_one_and_soon_again(server: Postgres, tmp_path: Path) -> None:
    took: dict[str, float] = {}

    async def takeover(of: Deployment, what: str, harm: Callable[[], object]) -> None:
        """Do harm to the writer; there has to be another epoch and a publication in it, soon."""
        epoch, newest = of.epoch(), of.readers.newest
        harm()
        took[f"{what}, epoch"] = await of.until_epoch(epoch, what)
        took[what] = took[f"{what}, epoch"] + await of.until_published(newest, what)

    async def scenario() -> None:
        async with a_world(tmp_path) as world, deployed(server, tmp_path, world.base) as of:
            monitors = of.monitors
            of.start("b")
            await of.until_standing_by("b", tmp_path)
            assert of.writing() == "a"

            await takeover(of, "kill -9", monitors["a"].kill)
            assert of.writing() == "b"
            of.start("a")
            await of.until_standing_by("a", tmp_path)

            frozen = monitors["b"]
            await takeover(of, "freeze", lambda: os.kill(frozen.pid, signal.SIGSTOP))
            assert of.writing() == "a"
            epoch = of.epoch()
            os.kill(frozen.pid, signal.SIGCONT)
            await of.until_standing_by("b", tmp_path)
            assert (of.writing(), of.epoch()) == ("a", epoch)

            await takeover(of, "end of session", lambda: server.end_session(of.database))
            await takeover(of, "restart of PostgreSQL", restart)
            await asyncio.sleep(2 * BUCKET_S)
            await of.until_published(of.readers.newest, "the last")
            for process in monitors.values():
                process.send_signal(signal.SIGTERM)
            for process in monitors.values():
                assert process.wait(10) == 0
            await asyncio.sleep(1.5)
            assert of.readers.wrong == []
            assert len({json.dumps(report) for report in of.readers.reports.values()}) == 1
            assert max(n for _, _, n in of.readers.buckets) >= 5
            proven(of)

    def restart() -> None:
        server.stop()
        server.start()

    run(scenario())
    said = {path: path.read_text() for path in tmp_path.glob("*/said.log")}
    assert len(said) == 5
    assert not [path for path, text in said.items() if PLANTED in text or "Traceback" in text]
    print({what: round(seconds, 1) for what, seconds in took.items()})  # noqa: T201  -s shows them


def proven(of: Deployment) -> None:
    """At most one writer ever, by the database's own record: no two times of writing overlap, and no epoch wrote after
    the next one had begun to."""
    spans = of.server.ask(
        of.database,
        "SELECT epoch, writes, first_write_at, last_write_at, taken_at FROM"
        " (SELECT * FROM lookout.former_writers UNION ALL SELECT * FROM lookout.writer) w ORDER BY epoch",
    )
    assert [epoch for epoch, *_ in spans] == list(range(len(spans)))
    wrote = [span for span in spans if span[1]]
    assert len(wrote) >= 5
    for (*_, last_write_at, _), (_, _, _, _, taken_at) in pairwise(wrote):
        assert last_write_at < taken_at
    audit = of.server.ask(of.database, "SELECT epoch, name, etag, generated_at FROM audit ORDER BY n")
    epochs = [epoch for epoch, *_ in audit]
    assert epochs == sorted(epochs)
    instants = [generated_at for _, name, _, generated_at in audit if name == "live"]
    assert instants == sorted(instants)
    assert {etag for _, name, etag, _ in audit if name == "live"} & of.readers.bodies.keys()


def test_while_the_database_is_away_nothing_is_forgotten(server: Postgres, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_world(tmp_path) as world, deployed(server, tmp_path, world.base) as of:
            server.stop()
            await asyncio.sleep(2 * BUCKET_S + 1)
            newest = of.readers.newest
            server.start()
            await of.until_published(newest, "after the database was away")
            await asyncio.sleep(1)
            assert of.readers.wrong == []
            # Nobody else was there: the buckets of the time in between were filled, not skipped.
            reached = max(n for _, _, n in of.readers.buckets)
            row = [of.readers.buckets["messaging", None, n] for n in range(reached + 1)]
            assert "-" not in row[1:], row
            assert of.writing() == "a"

    run(scenario())
    said = (tmp_path / "a" / "said.log").read_text()
    assert said.count("not stored; trying again with every publication") == 1
    assert "stored again" in said
    assert "standing by" not in said
