"""The real monitor, on virtual time: everything of it but sockets and threads."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, cast

from campaign.worlds.clock import VirtualClock
from campaign.worlds.loop import Process
from campaign.worlds.scene import Ended, Life, Resumed, Scene
from campaign.worlds.script import ORIGIN_AT, Script
from campaign.worlds.stores import Store
from campaign.worlds.told import Noting, Told, VirtualThread
from campaign.worlds.upstreams import upstreams_of
from lookout.api.mirror import Mirror
from lookout.core.pieces import decode_state
from lookout.core.plan import Plan
from lookout.monitor.publishing import Publisher
from lookout.monitor.running import run_together
from lookout.monitor.watching import Watcher
from lookout.sim.layout import ChainLayout
from lookout.sources.fetching import Session
from lookout.store.protocol import LostStoreError, StoreBusyError, StoreError, Writer
from tests.simulation.worlds import plan_of

_LOOK_FOR_THE_STORE_S: Final = 1.0
_CLOSE_S: Final = 2.0
_RESTART_S: Final = 3.0
_WRITE_HISTORY_EVERY_MS: Final = 60_000
SIGHTINGS: Final = "source/broadcasters"


class Parts(NamedTuple):
    """What a world is built of: the real things, unless a test plants something else."""

    publisher: type[Publisher] = Publisher
    ledger: type[Told] = Told
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

    def stop(self) -> Process | None:
        """Ask it to end, as a signal does: once. The process that was asked."""
        if self._task is not None:
            self._scene.note(f"monitor {self._number} is asked to stop")
            if self.life is not None:
                self.life.stopping = True
            self._task.cancel()
        return self._process

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
        life = Life(process, self._number, self.clock, _plan(self._scene), len(self._scene.lives))
        self._scene.lives.append(life)
        return life

    async def _opened(self, life: Life) -> Writer:
        while True:
            try:
                return self._store.open(life)
            except StoreBusyError:
                await asyncio.sleep(_LOOK_FOR_THE_STORE_S)

    async def _monitor_into(self, writer: Writer, life: Life) -> None:
        scene, parts, plan = self._scene, self._parts, life.plan
        try:
            stored = writer.load()
            life.publication = self._store.loaded()
            life.memory = {} if life.publication is None else _kept(life.publication.memory, plan)
            scene.tell(Resumed(life, stored))
            ledger = parts.ledger(plan, decode_state(stored), scene, life)
            instruments = Noting(scene, life)
            publisher = parts.publisher(
                ledger,
                parts.writer(writer),
                life.clock,
                plan.limits,
                _WRITE_HISTORY_EVERY_MS,
                _sightings(life, stored),
                None,
                instruments,
                partial(VirtualThread, scene, life),
            )
            sources, endpoints = upstreams_of(scene, life, plan)
            no_session = cast("Session", None)  # these sources need none
            chance = scene.chance(f"watcher {life.serial}")
            watcher = Watcher(sources, endpoints, publisher, no_session, life.clock, plan.limits, chance, instruments)
            await run_together(publisher, watcher)
        finally:
            await self._close(writer, life)

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
    """What a source has to remember: here, how often it was asked to, told at every third time."""
    life.sightings = stored.get(SIGHTINGS, b"")
    times = begun = int(life.sightings or 0)

    def changed() -> dict[str, bytes]:
        nonlocal times
        first, times = times == begun, times + 1
        if times % 3 and not first:  # what a start does not tell again is forgotten
            return {}
        life.sightings = b"%d" % times
        return {SIGHTINGS: life.sightings}

    return changed


def _plan(scene: Scene) -> Plan:
    """Everything there is, but for what the configuration is without just now."""
    script: Script = scene.script
    gone = {fault.of for fault in script.faults if fault.kind == "without" and scene.active("without", fault.of)}
    return plan_of(tuple(_without(chain, gone) for chain in script.layout if f"chain/{chain.chain_id}" not in gone))


def _without(chain: ChainLayout, gone: set[str]) -> ChainLayout:
    return chain._replace(
        indexer=f"indexer/{chain.chain_id}" not in gone,
        ppoi="ppoi" not in gone,
        members=0 if "broadcasters" in gone else chain.members,
    )
