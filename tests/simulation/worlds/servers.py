"""Servers with the real poller, a cache in front of each, and the real reader behind that."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final, NamedTuple

from lookout.config.tables import ServerSettings
from lookout.documents.api import paths
from lookout.documents.document import Document, DocumentName
from lookout.server.assembly import Machine, build_server
from lookout.server.poller import Poller
from lookout.store.protocol import Reader, StoreError
from lookout_reader import poll_async
from lookout_reader.feed import Answer, NoAnswer
from tests.simulation.worlds.clock import VirtualClock
from tests.simulation.worlds.loop import Process
from tests.simulation.worlds.scene import Looked, Scene, Served, Shown
from tests.simulation.worlds.script import ORIGIN_AT
from tests.simulation.worlds.stores import Store

PROTOCOL: Final = "protocol"
UNREADABLE_MS: Final = 300_000
NAMES: Final[tuple[DocumentName, DocumentName]] = ("live", "history")
_LIVE_PATH, _HISTORY_PATH = paths(PROTOCOL)


class ObservedReader:
    """The server's side of the store, which emits what it gave; a call may be made to hang."""

    def __init__(self, real: Reader, scene: Scene, server: int, life: int) -> None:
        self._real = real
        self._scene = scene
        self._server = server
        self._life = life
        self.killed = False
        self.hanging: threading.Event | None = None
        self.hangs_in: DocumentName = "live"
        self.hangs = threading.Event()

    def changed(self) -> bool:
        return self._real.changed()

    def read(self, name: DocumentName) -> Document | None:
        if self.hanging is not None and name == self.hangs_in:
            self.hangs.set()
            self.hanging.wait()
        if self.killed:
            raise StoreError("killed")
        try:
            document = self._real.read(name)
        except StoreError:
            self._scene.emit(Looked(self._server, self._life, name, None))
            raise
        self._scene.emit(Looked(self._server, self._life, name, document))
        return document

    def close(self) -> None:
        self._real.close()


class Server:
    """A server process; it is started again when it was stopped."""

    def __init__(self, scene: Scene, store: Store, number: int) -> None:
        self._scene = scene
        self._store = store
        self._number = number
        self._lives = 0
        self._process: Process | None = None
        self._reader: ObservedReader | None = None
        self._thread: threading.Thread | None = None
        self.poller: Poller | None = None

    def start(self) -> None:
        if self._process is None and not self._scene.over:
            self._lives += 1
            self._process = Process(f"server {self._number}.{self._lives}")
            self._scene.processes.append(self._process)
            self._scene.loop.spawn(self._process, self._run(), self._process.name)

    def kill(self) -> None:
        if self._process is None:
            return
        self._process.dead = True
        self._process, self.poller = None, None
        if self._reader is not None:
            self._reader.killed = True
            if self._reader.hanging is not None:
                self._reader.hanging.set()
            if self._thread is not None:
                self._thread.join()
            self._reader.close()

    async def _run(self) -> None:
        scene = self._scene
        chance = scene.chance(f"server {self._number}.{self._lives}")
        every_s = chance.choice((0.25, 1.0, 2.5))
        clock = VirtualClock(scene.loop, ORIGIN_AT)
        self._reader = reader = ObservedReader(self._store.reader(self._number), scene, self._number, self._lives)
        machine = Machine(clock=clock, open_reader=lambda *_: reader)
        self.poller = poller = build_server(ServerSettings(protocol=PROTOCOL), Path(), machine).poller
        served: Mapping[str, object] | None = None
        while True:
            if hang := scene.active("read-hangs", str(self._number)):
                reader.hangs_in = NAMES[hang.size]
                await self._look_and_hang(poller, reader, hang.at_ms + hang.lasts_ms)
            else:
                poller.poll()
                poller.check_time()
            if poller.resources is not served:
                served = poller.resources
                self._emit_served(poller)
            await asyncio.sleep(every_s)

    async def _look_and_hang(self, poller: Poller, reader: ObservedReader, until_ms: int) -> None:
        """The look is made by a thread, which stands still until the hang is over; only one of the two ever runs."""
        scene = self._scene
        reader.hanging, reader.hangs = threading.Event(), threading.Event()
        self._thread = thread = threading.Thread(target=self._look, args=(poller, reader.hangs), daemon=True)
        thread.start()
        reader.hangs.wait()
        served = poller.resources
        while scene.ms < until_ms and thread.is_alive():
            await asyncio.sleep(min(1.0, (until_ms - scene.ms) / 1000))
            poller.check_time()
            if poller.resources is not served:
                served = poller.resources
                self._emit_served(poller)
        reader.hanging.set()
        thread.join()
        reader.hanging = None

    @staticmethod
    def _look(poller: Poller, done: threading.Event) -> None:
        try:
            poller.poll()
        finally:
            done.set()

    def _emit_served(self, poller: Poller) -> None:
        for name, path in zip(NAMES, poller.site.paths, strict=True):
            resource = poller.resources[path]
            etag = resource.plain.etag or None
            self._scene.note(f"server {self._number}.{self._lives} serves {name} {etag}")
            self._scene.emit(Served(self._number, self._lives, name, etag, resource.plain.found.body))


class _Copy(NamedTuple):
    etag: str
    body: bytes
    kept_ms: int


class Cache:
    """A shared cache as the edge is (E3): fresh, then served while a new one is fetched, then a last resort."""

    # By path: s-maxage, and stale-while-revalidate; stale-if-error is the same for both.
    _FRESH: Final = {_LIVE_PATH: (30_000, 30_000), _HISTORY_PATH: (120_000, 60_000)}
    _IF_ERROR_MS: Final = 300_000

    def __init__(self, scene: Scene, server: Server, number: int) -> None:
        self._scene = scene
        self._server = server
        self._number = str(number)
        self._copies: dict[str, _Copy] = {}

    async def fetch(self, url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
        await asyncio.sleep(0.05)
        path = url.removeprefix("http://lookout")
        fresh_ms, revalidate_ms = self._FRESH[path]
        copy = self._copies.get(path)
        age_ms = 0 if copy is None else self._scene.ms - copy.kept_ms
        if copy is None or age_ms > fresh_ms:
            code = self._ask(path)
            if code == 200 and not (copy is not None and age_ms <= fresh_ms + revalidate_ms):
                copy = self._copies[path]
            elif code != 200 and (copy is None or age_ms > fresh_ms + self._IF_ERROR_MS):
                return NoAnswer() if code is None else Answer(code, b"{}")
        if copy is None:
            return NoAnswer()
        if headers.get("If-None-Match") == copy.etag:
            return Answer(304, etag=copy.etag)
        return Answer(200, copy.body, etag=copy.etag)

    def _ask(self, path: str) -> int | None:
        """Ask the server; None if it cannot be reached."""
        poller = self._server.poller
        if poller is None or self._scene.active("offline", self._number):
            return None
        served = poller.resources[path].plain
        if served.etag:
            self._copies[path] = _Copy(served.etag, served.found.body, self._scene.ms)
        return served.found.http_code


async def read_along(scene: Scene, cache: Cache, number: int) -> None:
    """What a wallet does: ask politely, and show what it knows."""
    chance = scene.chance(f"reader {number}")
    clock = VirtualClock(scene.loop, ORIGIN_AT, chance.randrange(-20_000, 20_000))
    tick_s = chance.choice((1.0, 5.0, 11.0))
    updates = poll_async(
        "http://lookout",
        PROTOCOL,
        live=chance.choice((15.0, 30.0, 60.0)),
        fetch=cache.fetch,
        now=clock.now,
        monotonic=scene.loop.time,
        chance=chance.random,
        sleep=lambda _: asyncio.sleep(tick_s),
    )
    async with aclosing(updates) as each:
        async for update in each:
            scene.emit(Shown(number, clock.ahead_ms(), update))
