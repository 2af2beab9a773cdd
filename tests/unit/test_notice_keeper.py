"""Notes and silences in a running monitor: stored before they are acknowledged, and published at once."""

import asyncio
import json
import threading
from collections.abc import Mapping
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from lookout.base.clock import SystemClock
from lookout.core.notices import NoticeDraft, NoticeError
from lookout.documents.document import Document, DocumentName
from lookout.features.alerts.settings import AlertRule
from lookout.monitor.assembly import Succession, build_monitor
from lookout.monitor.monitor import Monitor
from lookout.monitor.notice_keeper import NotStoredError
from lookout.state.codec import decode_notices
from lookout.store.protocol import LostStoreError, StoreError
from tests.alerting import sending_into
from tests.builders import LAUNCH, MESSAGING, a_plan
from tests.unit.running_monitor import (
    NO_SESSION,
    Asked,
    FastClock,
    FastLoop,
    InLine,
    KeptInMemory,
    given,
    given_settings,
    lived,
    running,
)

NOTE = NoticeDraft("note", "Planned maintenance")


class Switched(KeptInMemory):
    """A store that takes what it is given only while it works."""

    def __init__(self) -> None:
        super().__init__()
        self.problem: StoreError | None = None
        self.refused = threading.Event()

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        if self.problem is not None:
            self.refused.set()
            raise self.problem
        super().write(documents, state)


def a_monitor(writer: Switched) -> Monitor:
    return build_monitor(given_settings(a_plan()), writer.state, given(writer, SystemClock()))


async def test_a_notice_is_acknowledged_once_it_is_stored_and_is_there_after_a_restart() -> None:
    writer = Switched()
    monitor = a_monitor(writer)
    async with running(monitor.run()):
        added = await monitor.notices.add(NOTE)
        assert decode_notices(writer.others).declared == (added,)
        assert b"Planned maintenance" in writer.documents[-1]["about"].body
    again = a_monitor(writer)
    async with running(again.run()):
        assert again.notices.current.list_valid(added.added_at) == (added,)
        await again.notices.end("note", added.id)
        assert decode_notices(writer.others).declared == ()
        assert b"Planned maintenance" not in writer.documents[-1]["about"].body


async def test_while_the_store_fails_nothing_is_acknowledged() -> None:
    writer = Switched()
    monitor = a_monitor(writer)
    async with running(monitor.run()):
        writer.problem = StoreError("disk full")
        adding = asyncio.create_task(monitor.notices.add(NOTE))
        assert await asyncio.to_thread(writer.refused.wait, 30)
        assert not adding.done()
        writer.problem = None
        added = await asyncio.wait_for(adding, 30)
        assert decode_notices(writer.others).declared == (added,)


async def test_one_who_waits_hears_that_the_store_was_lost() -> None:
    writer = Switched()
    monitor = a_monitor(writer)
    async with running(monitor.run()):
        await monitor.notices.add(NOTE)  # it runs
        writer.problem = LostStoreError("another monitor took over")
        with pytest.raises(NotStoredError, match="the monitor ended, or lost its store, before this was stored"):
            await monitor.notices.add(NOTE)


class NeverTakesNotices(Switched):
    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        if "notices" in state:
            raise StoreError("disk full")
        super().write(documents, state)


def test_one_who_waits_too_long_hears_what_holds_and_what_does_not() -> None:
    in_line = lambda _: nullcontext(InLine())  # noqa: E731
    machine = given(
        NeverTakesNotices(),
        FastClock(),
        store=InLine(),
        open_session=lambda _: nullcontext(NO_SESSION),
        open_thread=in_line,
    )

    async def live() -> None:
        monitor = build_monitor(given_settings(a_plan()), {}, machine)
        async with running(monitor.run()):
            with pytest.raises(NotStoredError) as refused:
                await monitor.notices.add(NOTE)
            told = (
                "the store did not take it within 10 s: it is in force, but not stored yet; it is lost if the monitor"
            )
            assert str(refused.value) == f"{told} ends before the store works again"
            assert [each.text for each in monitor.notices.current.list_valid(machine.clock.now())] == [NOTE.text]

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        runner.run(live())


def test_a_note_is_published_at_once_without_waiting_for_a_history_and_stays_when_it_is_over() -> None:
    tasks = []

    def add(succession: Succession) -> None:
        tasks.append(asyncio.ensure_future(succession.monitor.notices.add(replace(NOTE, for_="60s"))))

    plan = a_plan(limits=replace(LAUNCH, heartbeat_ms=10_000))
    written = lived(120, plan, [], [], (15, add)).written
    shown = [(at, json.loads(documents["about"].body)["notes"]) for at, documents in written if "about" in documents]
    began = next(at for at, notes in shown if notes)
    assert 15_000 <= began < 16_000
    assert shown[-1][1], "for 14 days, beside the incidents of its time"
    histories = [at for at, documents in written if "history" in documents]
    assert began not in histories


async def test_a_chain_that_a_reload_removes_keeps_its_note() -> None:
    writer = Switched()
    succession = Succession(given_settings(a_plan(chains=(1, 56))), {}, given(writer, SystemClock()))
    async with running(succession.run()):
        before = succession.monitor.notices
        added = await before.add(replace(NOTE, services=("indexer",)))
        await succession.replace(given_settings(a_plan()))
        assert succession.monitor.notices.current.list_valid(added.added_at) == (added,)
        with pytest.raises(NoticeError, match="there is no service 'squid'"):
            await succession.monitor.notices.add(replace(NOTE, services=("squid",)))
        with pytest.raises(NotStoredError, match="the monitor ended"):  # asked of the one that was replaced
            await before.add(NOTE)


def test_no_alert_begins_for_what_is_silenced_until_the_silence_is_over() -> None:
    tasks, sent = [], list[str]()
    rules = (AlertRule(name="down", from_="unavailable", targets=("ops",)),)

    def silence(succession: Succession) -> None:
        draft = NoticeDraft("silence", for_="600s")
        tasks.append(asyncio.ensure_future(succession.monitor.notices.add(draft)))

    def note_alerts(_succession: Succession) -> None:
        during.extend(sent)

    during: list[str] = []
    happenings = ((1.0, silence), (590.0, note_alerts))
    lived(900, a_plan(MESSAGING), [Asked(MESSAGING)], [], *happenings, **sending_into(sent, *rules))
    assert during == []
    assert len(sent) == 1
