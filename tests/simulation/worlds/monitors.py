"""The real monitor, on virtual time: everything of it but sockets and threads."""

import asyncio
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, cast

from lookout.base.concurrency import Worker
from lookout.monitor.assembly import Machine, Succession
from lookout.protocols.client.session import Session
from lookout.store.protocol import LostStoreError, StoreBusyError, StoreError, Writer
from tests.alerting import with_sender
from tests.simulation.worlds.clock import VirtualClock
from tests.simulation.worlds.loop import Process
from tests.simulation.worlds.observed_parts import ObservedInstruments, ObservedLedger, VirtualThread, forget_unwatched
from tests.simulation.worlds.scene import Ended, Life, Resumed, Scene
from tests.simulation.worlds.script import ORIGIN_AT
from tests.simulation.worlds.settings import build_settings
from tests.simulation.worlds.stores import Store, messages_in
from tests.simulation.worlds.targets import open_sender, sending_thread
from tests.simulation.worlds.upstreams import build_upstreams

_LOOK_FOR_THE_STORE_S: Final = 1.0
_CLOSE_S: Final = 2.0
_RESTART_S: Final = 3.0
_NO_SESSION: Final = Session(cast("Any", None), 0)  # these sources need none


class Host:
    """One machine, and the monitor that is started on it again whenever it ended."""

    def __init__(self, scene: Scene, store: Store, number: int) -> None:
        self._scene = scene
        self._store = store
        self._number = number
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
        """Let it read its settings again, as a signal does."""
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
            self._scene.emit(Ended(life, how))

    async def _run(self, process: Process) -> None:
        """As the command does it: stand by while another has the store, and again after it was lost."""
        how = "stopped"
        try:
            while True:
                self.life = life = self._a_life(process)
                writer = await self._open_store(life)
                try:
                    await self._monitor_into(writer, life)
                except LostStoreError:
                    self._scene.note(f"{life.name} lost the store")
                    self._store.release(life)
                    self._scene.emit(Ended(life, "lost"))
        except StoreError:
            how = "failed"
            self._scene.loop.call_later(_RESTART_S, self.start)
        except asyncio.CancelledError:
            pass
        if not self._scene.over:
            self._scene.note(f"monitor {self._number} {how}")
            self._scene.loop.call_soon(self._gone, how)

    def _a_life(self, process: Process) -> Life:
        life = Life(process, self._number, self.clock, build_settings(self._scene), len(self._scene.lives))
        self._scene.lives.append(life)
        return life

    async def _open_store(self, life: Life) -> Writer:
        while True:
            try:
                return self._store.open(life)
            except StoreBusyError:
                await asyncio.sleep(_LOOK_FOR_THE_STORE_S)

    async def _monitor_into(self, writer: Writer, life: Life) -> None:
        scene = self._scene
        reloading = None
        try:
            if life.reload.is_set():  # while it stood by
                life.reload.clear()
                life.apply_settings(build_settings(scene))
            stored = writer.load()
            life.publication = self._store.loaded()
            life.memory = {} if life.publication is None else forget_unwatched(life.publication.memory, life.plan)
            scene.waiting = messages_in(stored)
            scene.emit(Resumed(life, stored))
            thread = VirtualThread(scene, life)
            succession = Succession(life.settings, stored, self._machine(writer, thread, life))
            reloading = asyncio.create_task(self._accept_reloads(life, succession))
            await succession.run()
        finally:
            if reloading is not None:
                reloading.cancel()
            await self._close(writer, life)

    def _machine(self, writer: Writer, store: Worker, life: Life) -> Machine:
        """A world sees into the real monitor through its ledger, its instruments, its senders and its threads."""
        scene = self._scene
        return Machine(
            writer=writer,
            store=store,
            instruments=ObservedInstruments(scene, life),
            clock=life.clock,
            chance=scene.chance(f"watcher {life.serial}"),
            open_session=lambda _: nullcontext(_NO_SESSION),
            open_thread=partial(sending_thread, scene, life),
            features=with_sender(partial(open_sender, scene, life)),
            build_upstreams=partial(build_upstreams, scene, life),
            make_ledger=partial(ObservedLedger, scene=scene, life=life),
        )

    async def _accept_reloads(self, life: Life, succession: Succession) -> None:
        scene = self._scene
        while True:
            await life.reload.wait()
            life.reload.clear()
            life.next_settings, life.stopping = build_settings(scene), True
            await succession.replace(life.next_settings)
            scene.note(f"{life.name} uses other settings")

    async def _close(self, writer: Writer, life: Life) -> None:
        try:
            async with asyncio.timeout(_CLOSE_S):
                await VirtualThread(self._scene, life).call(writer.close)
        except TimeoutError:
            self._scene.note(f"{life.name} could not close the store")
