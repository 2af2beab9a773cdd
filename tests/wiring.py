"""A monitor put together for tests: as ``build_monitor`` does it, but for what a test replaces."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from lookout.alerts.sender import Sender, open_sender
from lookout.base.clock import Clock
from lookout.base.concurrency import Caller, DaemonThread
from lookout.config.settings import Settings, Upstreams, seen_by, upstreams_of
from lookout.core.ledger import Ledger
from lookout.monitor.alerts import Alerts
from lookout.monitor.comparer import build_comparers
from lookout.monitor.journal import Journal, Timeline
from lookout.monitor.list_readers import build_list_readers
from lookout.monitor.lists import Lists
from lookout.monitor.metrics import Instruments
from lookout.monitor.monitor import Monitor, Succession, resume_ledger
from lookout.monitor.notice_keeper import NoticeKeeper
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import Record, Recorder
from lookout.monitor.watcher import Watcher
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.session import Session, open_session
from lookout.state.codec import decode_coverages, decode_links, decode_node_gaps, decode_sightings
from lookout.store.protocol import Writer

Build = Callable[[Settings, Mapping[str, SeenBroadcasters]], Upstreams]


@dataclass(frozen=True)
class Wiring:
    """What the monitors of one process are made of."""

    writer: Writer
    clock: Clock
    instruments: Instruments
    store: Caller = field(default_factory=lambda: DaemonThread("store").__enter__())
    build_sources: Build = upstreams_of
    seen: Callable[[], Mapping[str, SeenBroadcasters]] | None = None
    chance: Random | None = None
    session: Session | None = None
    open_thread: Callable[[str], AbstractContextManager[Caller]] = DaemonThread
    open_sender: Callable[[str], Sender] = open_sender
    ledger: Callable[..., Ledger] = Ledger

    def build(self, settings: Settings, stored: Mapping[str, bytes], recorder: Recorder | None = None) -> Monitor:
        plan, description = settings.plan(), settings.description()
        clock, instruments = self.clock, self.instruments
        upstreams = self.build_sources(settings, decode_sightings(stored))
        alerts = Alerts(settings.alert_policy(), stored, clock, instruments, self.open_thread, self.open_sender)
        ledger = resume_ledger(plan, stored, self.ledger)
        known = Lists(decode_coverages(stored), decode_links(stored), decode_node_gaps(stored))
        counted = settings.counted_lists()
        beside = {node: indexer for node, (indexer, _) in counted.items()}
        journal = Journal(ledger, Timeline(clock), alerts, recorder, known, beside)
        notices = NoticeKeeper(description, plan, stored, journal)
        seen = self.seen or partial(seen_by, upstreams.sources)
        publisher = Publisher(
            plan,
            description,
            settings.history.write_every_s,
            *(journal, notices, seen, self.writer, self.store, clock, instruments),
        )
        lists = settings.transaction_lists()
        comparers = build_comparers(lists, upstreams, clock, journal.hear_position, instruments.count)
        readers = build_list_readers(settings.linked_lists(), counted, plan, journal, clock, instruments)
        watcher = Watcher(
            upstreams, journal, plan.limits, clock, instruments, comparers, readers, self.chance or Random(1)
        )
        opened: Any = open_session if self.session is None else lambda _: nullcontext(self.session)
        ping = settings.ping
        return Monitor(plan, description, ping, upstreams, journal, notices, publisher, watcher, instruments, opened)

    def succeed(self, settings: Settings, stored: Mapping[str, bytes] = {}, record: Any = None) -> Succession:
        """The monitors of one process. A record that is no real one takes what is recorded under all settings."""
        kept = record if isinstance(record, Record) else _Kept(record)
        return Succession(self.build, settings, stored, kept)


class _Kept(Record):
    """A record whose recorder is never another."""

    def __init__(self, recorder: Any) -> None:
        super().__init__(Path())
        self.recorder = recorder

    def open(self, *_: object, **__: object) -> Recorder | None:
        return self.recorder


def wire(writer: Writer, clock: Clock, registry: CollectorRegistry | None = None, **more: Any) -> Wiring:
    return Wiring(writer, clock, Instruments(registry or CollectorRegistry(), clock), **more)
