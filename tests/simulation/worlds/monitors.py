"""The real monitor, on virtual time: everything of it but sockets and threads."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, NamedTuple, cast

from lookout.core.plan import Plan
from lookout.monitor.alerts import Alerts
from lookout.monitor.monitor import go_by, rebuilt, run_together
from lookout.monitor.publisher import Publisher
from lookout.monitor.sources import Built
from lookout.monitor.watcher import Watcher
from lookout.protocols.client.session import Session
from lookout.server.mirror import Mirror
from lookout.state.codec import decode_state
from lookout.store.protocol import LostStoreError, StoreBusyError, StoreError, Writer
from tests.simulation.worlds.alert_texts import Noting, Told, VirtualThread
from tests.simulation.worlds.clock import VirtualClock
from tests.simulation.worlds.configured import configured
from tests.simulation.worlds.loop import Process
from tests.simulation.worlds.people import sending_thread, way_to
from tests.simulation.worlds.scene import Ended, Life, Reloaded, Resumed, Scene
from tests.simulation.worlds.script import ORIGIN_AT
from tests.simulation.worlds.stores import Store, messages_in
from tests.simulation.worlds.upstreams import upstreams_of

_LOOK_FOR_THE_STORE_S: Final = 1.0
_CLOSE_S: Final = 2.0
_RESTART_S: Final = 3.0
_WRITE_HISTORY_EVERY_MS: Final = 60_000
_NO_SESSION: Final = cast("Session", None)  # these sources need none
SIGHTINGS: Final = "source/broadcasters"


class Parts(NamedTuple):
    """What a world is built of: the real things, unless a test plants something else."""

    publisher: type[Publisher] = Publisher
    ledger: type[Told] = Told
    watcher: type[Watcher] = Watcher
    alerts: type[Alerts] = Alerts
    writer: Callable[[Writer], Writer] = lambda writer: writer
    mirror: type[Mirror] = Mirror


class Monitor:
    """One machine, and the monitor that is started on it again whenever it ended."""

    def __init__(self, scene: Scene, store: Store, number: int, parts: Parts) -> None:
        self._scene = scene
        self._store = store
        self._number = number
        self._parts = parts
        # Two machines' clocks are never quite the same.
        ahead_ms = scene.chance(f"machine {number}").randrange(-2_000, 2_000) if number else 0
        self.clock = VirtualClock(scene.loop, ORIGIN_AT, ahead_ms)
        self.life: Life | None = None
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._process is None and not self._scene.over:
            self._process = Process(f"monitor {self._number}")
            self._scene.processes.append(self._process)
            self._task = self._scene.loop.spawn(self._process, self._run(self._process), self._process.name)
            self._task.add_done_callback(self._ended_unbegun)

    def _ended_unbegun(self, task: asyncio.Task[None]) -> None:
        """Who is asked to stop before its first step makes none."""
        if task.cancelled() and self._task is task:
            self._gone("stopped")

    def stop(self) -> Process | None:
        """Ask it to end, as a signal does: once. The process that was asked."""
        if self._task is not None:
            self._scene.note(f"monitor {self._number} is asked to stop")
            if self.life is not None:
                self.life.stopping = True
            self._task.cancel()
        return self._process

    def reload(self) -> None:
        """Let it look at its settings anew, as a signal does."""
        if self.life is not None:
            self.life.reload.set()

    def kill(self) -> None:
        if self._process is not None:
            self._scene.note(f"monitor {self._number} is killed")
            self._gone("killed")

    def _gone(self, how: str) -> None:
        if self._process is not None:
            self._process.dead = True
        life, self.life, self._process, self._task = self.life, None, None, None
        if life is not None:
            self._store.release(life)
            self._scene.tell(Ended(life, how))

    async def _run(self, process: Process) -> None:
        """As the command does it: stand by while another has the store, and again after it was lost."""
        how = "stopped"
        try:
            while True:
                self.life = life = self._a_life(process)
                writer = await self._opened(life)
                try:
                    await self._monitor_into(writer, life)
                except LostStoreError:
                    self._scene.note(f"{life.name} lost the store")
                    self._store.release(life)
                    self._scene.tell(Ended(life, "lost"))
        except StoreError:
            how = "failed"
            self._scene.loop.call_later(_RESTART_S, self.start)
        except asyncio.CancelledError:
            pass
        if not self._scene.over:
            self._scene.note(f"monitor {self._number} {how}")
            self._scene.loop.call_soon(self._gone, how)

    def _a_life(self, process: Process) -> Life:
        life = Life(process, self._number, self.clock, configured(self._scene), len(self._scene.lives))
        self._scene.lives.append(life)
        return life

    async def _opened(self, life: Life) -> Writer:
        while True:
            try:
                return self._store.open(life)
            except StoreBusyError:
                await asyncio.sleep(_LOOK_FOR_THE_STORE_S)

    async def _monitor_into(self, writer: Writer, life: Life) -> None:
        scene, parts = self._scene, self._parts
        try:
            if life.reload.is_set():  # while it stood by
                life.reload.clear()
                life.go_by(configured(scene))
            stored = writer.load()
            plan = life.plan
            life.publication = self._store.loaded()
            life.memory = {} if life.publication is None else _kept(life.publication.memory, plan)
            scene.waiting = messages_in(stored)
            scene.tell(Resumed(life, stored))
            ledger = parts.ledger(plan, decode_state(stored), scene, life)
            instruments = Noting(scene, life)
            way = partial(way_to, scene, life)
            alerts = parts.alerts(
                life.telling,
                stored,
                life.clock,
                instruments,
                way,
                open_thread=partial(sending_thread, scene, life),
            )
            publisher = parts.publisher(
                ledger,
                parts.writer(writer),
                life.clock,
                plan.limits,
                _WRITE_HISTORY_EVERY_MS,
                _sightings(life, stored),
                None,
                instruments,
                lambda: nullcontext(VirtualThread(scene, life)),
                alerts,
            )
            built = upstreams_of(scene, life, plan)
            chance = scene.chance(f"watcher {life.serial}")
            watcher = parts.watcher(*built, publisher, _NO_SESSION, life.clock, plan.limits, chance, instruments)
            heed = partial(self._heed, life, built, publisher, watcher, alerts)
            await run_together(publisher, watcher, heed)
        finally:
            await self._close(writer, life)

    async def _heed(self, life: Life, built: Built, publisher: Publisher, watcher: Watcher, alerts: Alerts) -> None:
        """Go by other settings whenever there are."""
        scene = self._scene
        while True:
            await life.reload.wait()
            life.reload.clear()
            old, before = life.settings, life.plan
            life.go_by(configured(scene))
            life.memory = _kept(life.memory, life.plan)
            built = rebuilt(built, old, life.settings, lambda new, _: upstreams_of(scene, life, new.plan()))
            go_by(life.settings, old, built, publisher, watcher, alerts, _NO_SESSION, None)
            scene.note(f"{life.name} goes by other settings")
            scene.tell(Reloaded(life, before))

    async def _close(self, writer: Writer, life: Life) -> None:
        try:
            await asyncio.wait_for(VirtualThread(self._scene, life).call(writer.close), _CLOSE_S)
        except TimeoutError:
            self._scene.note(f"{life.name} could not close the store")


def _kept(memory: Mapping[object, Any], plan: Plan) -> dict[object, Any]:
    """What is no longer watched is forgotten."""
    watched = {*plan.monitored, *(("head", chain_id) for chain_id in plan.chains)}
    return {what: remembered for what, remembered in memory.items() if what in watched}


def _sightings(life: Life, stored: Mapping[str, bytes]) -> Callable[[], dict[str, bytes]]:
    """What a source has to remember: here, how often it was asked to, another one at every third time."""
    life.sightings = stored.get(SIGHTINGS, b"")
    times = begun = int(life.sightings or 0)

    def remembered() -> dict[str, bytes]:
        nonlocal times
        first, times = times == begun, times + 1
        if first or times % 3 == 0:
            life.sightings = b"%d" % times
        return {SIGHTINGS: life.sightings}

    return remembered
