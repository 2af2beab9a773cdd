"""Builds a monitor from settings, and restarts it in place with other settings. Nothing else puts one together."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Final

from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread, Worker
from lookout.config.settings import Settings, Upstreams, around_of, upstreams_of
from lookout.core.ledger import Ledger, State
from lookout.core.plan import Plan
from lookout.features.feature import Feature, Host
from lookout.features.registry import FEATURES, Kept, decode_all
from lookout.monitor.journal import Journal, Timeline
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import Monitor, OpenSession
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import GATHER_MS, Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.watcher import Watcher
from lookout.protocols.client.session import open_session
from lookout.state.errors import StateError
from lookout.store.protocol import Writer

_CHANCE: Final = SystemRandom()


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a monitor runs on. Tests and simulated worlds replace parts of it, and nothing else."""

    writer: Writer
    store: Worker
    """Makes the writer's calls, one after the other."""
    instruments: Instruments
    clock: Clock
    chance: Random = _CHANCE
    open_session: OpenSession = open_session
    open_thread: Callable[[str], AbstractContextManager[Worker]] = DaemonThread
    """Of a name, for slow calls: a target of alerts keeps one, each report of a witness gets one of its own."""
    features: tuple[type[Feature], ...] = FEATURES
    build_upstreams: Callable[[Settings], Upstreams] = upstreams_of
    make_ledger: Callable[[Plan, State | None], Ledger] = Ledger
    recorder: Recorder | None = None
    config: str = ""
    """The path of the configuration file, for messages."""


def build_monitor(settings: Settings, stored: Mapping[str, bytes], machine: Machine) -> Monitor:
    """A monitor of these settings that resumes the stored state; StateError if that cannot be read."""
    clock, instruments = machine.clock, machine.instruments
    plan, description = settings.plan(), settings.description()
    ledger, kept = _resume(plan, stored, machine)
    upstreams = machine.build_upstreams(settings)
    upstreams.resume(kept.sightings)
    journal = Journal(ledger, Timeline(clock), machine.recorder)
    notices = NoticeKeeper(description, plan, kept.notices, journal)
    watcher = Watcher(upstreams, journal, plan.limits, clock, instruments, machine.chance)
    host = Host(
        around=around_of(settings, upstreams, machine.config),
        ledger=ledger,
        clock=clock,
        open_thread=machine.open_thread,
        now=journal.now,
        heights=watcher.heights,
        set_gaps=journal.set_gaps,
        causes=journal.causes,
        find_silenced=notices.find_silenced,
        judge=instruments.board.judge,
        describe_endpoints=instruments.board.describe_endpoints,
        publish_soon=journal.changed.set,
        record=journal.record,
        note=instruments.board.note,
        count=instruments.count,
        set_samples=instruments.set_samples,
    )
    journal.features = tuple(
        feature.build(settings.table_of(feature), kept.of_features[feature], host) for feature in machine.features
    )
    for feature in journal.features:
        ledger.combine = ledger.combine or feature.combiner()
    publisher = Publisher(
        plan,
        description,
        settings.history.write_every_s,
        journal,
        notices,
        upstreams.seen,
        kept.unclaimed,
        machine.writer,
        machine.store,
        clock,
        instruments,
    )
    pinger = Pinger(settings.ping, plan.limits, instruments)
    return Monitor(
        plan, description, upstreams, journal, notices, publisher, watcher, pinger, instruments, machine.open_session
    )


def _resume(plan: Plan, stored: Mapping[str, bytes], machine: Machine) -> tuple[Ledger, Kept]:
    """StateError if what is stored cannot be read, or its state does not fit this plan."""
    try:
        kept = decode_all(stored, machine.features)
        return machine.make_ledger(plan, kept.state), kept
    except StateError as error:
        raise StateError(f"the store is damaged: {error}; restore a backup, or begin a new store") from None
    except ValueError as error:
        raise StateError(f"{error}; set history.bucket_s back, or choose another file in store.url") from None


class Succession:
    """Runs a monitor and, after each reload, the next one, which resumes the state of the last. Probes under way are
    dropped, and do not count."""

    def __init__(self, settings: Settings, stored: Mapping[str, bytes], machine: Machine) -> None:
        """StateError if the stored state cannot be read."""
        self._machine = machine
        self.monitor = self._build(settings, stored)
        self._next: asyncio.Future[Settings]  # while it runs
        self._has_begun = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled. LostStoreError if the store is another monitor's now."""
        try:
            while True:
                self._next = asyncio.get_running_loop().create_future()
                running = asyncio.create_task(self.monitor.run(), name="monitor")
                self._has_begun.set()
                try:
                    await asyncio.wait((running, self._next), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                if not running.cancelled():
                    running.result()
                await asyncio.sleep(GATHER_MS / 1000)  # after the last publication (M5)
                self.monitor = self._build(self._next.result(), self.monitor.publisher.state_documents())
        finally:
            self._has_begun.set()  # a waiting reload continues

    async def replace(self, settings: Settings) -> None:
        """Replace the monitor by one with these settings. If the state does not fit them, nothing changes:
        StateError."""
        build_monitor(settings, self.monitor.publisher.state_documents(), self._machine)  # the state may not fit
        self._has_begun.clear()
        self._next.set_result(settings)
        await self._has_begun.wait()

    def _build(self, settings: Settings, stored: Mapping[str, bytes]) -> Monitor:
        """A monitor that is to run; the one before has recorded its end."""
        if self._machine.recorder is not None:
            self._machine.recorder.record_to(settings.monitor.record)
        return build_monitor(settings, stored, self._machine)
