"""A source with a bug, and a store that is slow or fails."""

import asyncio
import threading
import time
from collections.abc import Mapping

import pytest

from lookout.base.clock import SystemClock
from lookout.config.tables import HistoryTable
from lookout.core.model import Peers
from lookout.documents.document import Document, DocumentName
from lookout.monitor.assembly import build_monitor
from lookout.monitor.journal import Journal
from lookout.monitor.publisher import Publisher
from lookout.store.protocol import StoreError, Writer
from tests.builders import MESSAGING, a_plan
from tests.logs import capture_logs
from tests.unit.running_monitor import KeptInMemory, given, given_settings, running
from tests.wait import until_async

EVERY_SECOND = HistoryTable(write_every_s=1)


def a_publisher(writer: Writer, history: HistoryTable) -> tuple[Journal, Publisher]:
    """One that has just started, of a monitor that asks nothing."""
    monitor = build_monitor(given_settings(a_plan(), history=history), {}, given(writer, SystemClock()))
    monitor.journal.start()
    return monitor.journal, monitor.publisher


class Slow(KeptInMemory):
    """A writer that takes its time, and cannot do two things at once."""

    busy = False

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        assert not self.busy
        self.busy = True
        self.began.set()
        time.sleep(0.3)
        super().write(documents, state)
        self.busy = False


async def test_a_stop_during_a_write_waits_for_it_and_then_stores_what_is_left() -> None:
    writer = Slow()
    journal, publisher = a_publisher(writer, EVERY_SECOND)
    async with running(publisher.run()):
        await asyncio.to_thread(writer.began.wait)
        journal.record_probe(MESSAGING, Peers(7))
    assert [b'"peers":7' in documents["live"].body for documents in writer.documents] == [False, True]


class FullAtFirst(KeptInMemory):
    """A writer whose disk is full for the first few writes."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.attempts = 0

    def write(self, documents: Mapping[DocumentName, Document], state: Mapping[str, bytes]) -> None:
        self.attempts += 1
        if self.attempts <= self.failures:
            raise StoreError("disk full")
        super().write(documents, state)


@pytest.mark.clause("H14", "M7")
async def test_a_history_that_could_not_be_stored_is_tried_again_with_the_next_publication() -> None:
    """Not only when the next one is due, which here is in an hour."""
    writer = FullAtFirst(failures=2)
    journal, publisher = a_publisher(writer, HistoryTable(write_every_s=3_600))
    with capture_logs() as logs:
        async with running(publisher.run()):  # and stores the last one when it ends
            await until_async(lambda: any(line["event"] == "stored again" for line in logs), "the store works")
            journal.record_probe(MESSAGING, Peers(7))
    live, history = {"live", "live.gzip"}, {"history", "history.gzip", "about"}
    assert (writer.attempts, [set(new) for new in writer.documents]) == (4, [live | history, live])
