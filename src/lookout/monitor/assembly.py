"""Builds a monitor from settings, and restarts it in place with other settings. Nothing else puts one together."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Final

from lookout.alerts.sender import Sender, open_sender
from lookout.base.clock import Clock
from lookout.base.concurrency import Caller, DaemonThread
from lookout.config.settings import Settings, Upstreams, upstreams_of
from lookout.core.ledger import Ledger, State
from lookout.core.plan import Plan
from lookout.monitor.alerts import Alerts
from lookout.monitor.comparer import build_comparers
from lookout.monitor.journal import Journal, Timeline
from lookout.monitor.list_readers import build_list_readers
from lookout.monitor.lists import Lists
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import Monitor, OpenSession
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.pinger import Pinger
from lookout.monitor.publisher import GATHER_MS, Publisher
from lookout.monitor.recorder import Recorder
from lookout.monitor.watcher import Watcher
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.session import open_session
from lookout.state.codec import StoredValues, decode_all
from lookout.state.errors import StateError
from lookout.store.protocol import Writer

_CHANCE: Final = SystemRandom()


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a monitor runs on. Tests and simulated worlds replace parts of it, and nothing else."""

    writer: Writer
    store: Caller
    """Makes the writer's calls, one after the other."""
    instruments: Instruments
    clock: Clock
    chance: Random = _CHANCE
    open_session: OpenSession = open_session
    open_thread: Callable[[str], AbstractContextManager[Caller]] = DaemonThread
    """One for each alert target."""
    open_sender: Callable[[str], Sender] = open_sender
    build_upstreams: Callable[[Settings, Mapping[str, SeenBroadcasters]], Upstreams] = upstreams_of
    make_ledger: Callable[[Plan, State | None], Ledger] = Ledger
    recorder: Recorder | None = None
    config: str = ""
    """The path of the configuration file, for messages."""


def build_monitor(settings: Settings, stored: Mapping[str, bytes], machine: Machine) -> Monitor:
    """A monitor of these settings that resumes the stored state; StateError if that cannot be read."""
    clock, instruments = machine.clock, machine.instruments
    plan, description, policy = settings.plan(), settings.description(), settings.alert_policy(machine.config)
    lists, links, counted = settings.transaction_lists(), settings.linked_lists(), settings.counted_lists()
    ledger, values = _resume(plan, stored, machine.make_ledger)
    upstreams = machine.build_upstreams(settings, values.sightings)
    alerts = Alerts(policy, values.alerts, clock, instruments, machine.open_thread, machine.open_sender)
    known = Lists(values.coverages, values.links, values.node_gaps)
    compared_with = {node: indexer for node, (indexer, _) in counted.items()}
    journal = Journal(ledger, Timeline(clock), alerts, machine.recorder, known, compared_with)
    notices = NoticeKeeper(description, plan, values.notices, journal)
    publisher = Publisher(
        plan,
        description,
        settings.history.write_every_s,
        journal,
        notices,
        upstreams.seen,
        values.unclaimed,
        machine.writer,
        machine.store,
        clock,
        instruments,
    )
    comparers = build_comparers(lists, upstreams, clock, instruments.count)
    readers = build_list_readers(links, counted, plan, journal, clock, instruments)
    watcher = Watcher(upstreams, journal, plan.limits, clock, instruments, comparers, readers, machine.chance)
    pinger = Pinger(settings.ping, plan.limits, instruments)
    return Monitor(
        plan, description, upstreams, journal, notices, publisher, watcher, pinger, instruments, machine.open_session
    )


def _resume(
    plan: Plan, stored: Mapping[str, bytes], make: Callable[[Plan, State | None], Ledger]
) -> tuple[Ledger, StoredValues]:
    """StateError if what is stored cannot be read, or its state does not fit this plan."""
    try:
        values = decode_all(stored)
        return make(plan, values.state), values
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
        self._next: asyncio.Future[Callable[[], Monitor]]  # while it runs
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
                self.monitor = self._next.result()()
        finally:
            self._has_begun.set()  # a waiting reload continues

    async def replace(self, settings: Settings) -> None:
        """Replace the monitor by one with these settings. If the state does not fit them, nothing changes:
        StateError."""
        build_monitor(settings, self.monitor.publisher.state_documents(), self._machine)
        self._has_begun.clear()
        self._next.set_result(lambda: self._build(settings, self.monitor.publisher.state_documents()))
        await self._has_begun.wait()

    def _build(self, settings: Settings, stored: Mapping[str, bytes]) -> Monitor:
        """A monitor that is to run; the one before has recorded its end."""
        if self._machine.recorder is not None:
            self._machine.recorder.record_to(settings.monitor.record)
        return build_monitor(settings, stored, self._machine)
