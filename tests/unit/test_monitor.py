"""Parts of the monitor on their own: recording, a source with a bug."""

import asyncio
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lookout.alerts.policy import NO_ALERTS
from lookout.base.clock import SystemClock
from lookout.config.tables import History
from lookout.core.ledger import Ledger
from lookout.core.model import Check, Found, Peers
from lookout.documents.document import Document, DocumentName
from lookout.monitor.alerts import Alerts
from lookout.monitor.journal import Journal
from lookout.monitor.monitor import Monitor
from lookout.monitor.publisher import Publisher
from lookout.monitor.recorder import LogFile, Recorder
from lookout.monitor.timeline import Timeline
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from lookout.replay.replay import read_log
from lookout.state.log import Event, Started, Stopped, format_event
from lookout.state.pieces import Pieces
from lookout.store.protocol import StoreError, Writer
from tests.builders import LAUNCH, MESSAGING, NOON, PPOI, a_plan
from tests.unit.running_monitor import KeptInMemory, given_settings, some_resources
from tests.wait import until


def test_a_record_that_could_not_be_written_begins_again_with_a_start(tmp_path: Path) -> None:
    path = tmp_path / "late" / "log.jsonl"
    log = LogFile(path, 10_000_000)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            log.append(Started(NOON))
    path.parent.mkdir()
    log.append(Stopped(NOON + 1))
    log.append(Started(NOON + 2))
    log.close()
    with path.open("rb") as lines:
        assert [event for _, event in read_log(lines, [])] == [Started(NOON + 1), Stopped(NOON + 1), Started(NOON + 2)]


def test_a_record_on_a_full_disk_fails_each_time_and_breaks_nothing() -> None:
    log = LogFile(Path("/dev/full"), 10_000_000)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left on device"):
            log.append(Started(NOON))
    log.close()


def test_a_record_grows_into_the_file_before_it_and_each_begins_with_a_start(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log.jsonl", 200)
    for n in range(12):
        log.append(Started(NOON + n) if n % 2 == 0 else Stopped(NOON + n))
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "log.jsonl.1"]
    for path in tmp_path.iterdir():
        assert path.stat().st_size < 400
        assert path.stat().st_mode & 0o777 == 0o600
        with path.open("rb") as lines:
            events = [event for _, event in read_log(lines, [])]
        assert isinstance(events[0], Started)


@pytest.mark.parametrize("cut", [b"", b'{"at":"2026', b"x" * 200_000])
def test_a_record_goes_on_after_a_line_that_a_crash_cut_off(cut: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(format_event(Started(NOON)) + cut)
    log = LogFile(path, 10_000_000)
    log.append(Started(NOON + 1))
    log.close()
    assert path.read_bytes() == format_event(Started(NOON)) + format_event(Started(NOON + 1))


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"[store]\nurl = 1\n", b'{"at":5}\n', b"x" * 100_000])
def test_a_file_that_is_no_log_is_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content)
    log = LogFile(path, 10_000_000)
    with pytest.raises(FileExistsError, match="is no observation log"):
        log.append(Started(NOON))
    log.close()
    assert path.read_bytes() == content


@pytest.mark.parametrize("cut", [b"", b"{", b'{"at":"2026-11'])
def test_a_log_whose_first_line_was_cut_off_starts_from_scratch(cut: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(cut)
    log = LogFile(path, 10_000_000)
    log.append(Started(NOON))
    log.close()
    assert path.read_bytes() == format_event(Started(NOON))


class HangingDisk(LogFile):
    """Takes nothing until it works."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 10_000_000)
        self.works = threading.Event()
        self.was_waited_for = False

    def append(self, event: Event) -> None:
        self.was_waited_for = not self.works.wait(60)
        assert not self.was_waited_for
        super().append(event)


def test_a_disk_that_hangs_holds_nobody_up_and_what_was_lost_meanwhile_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    disk = HangingDisk(path)
    recorder = Recorder(disk)
    for n in range(10_005):  # more than find room
        recorder.record(Stopped(NOON + n))
    disk.works.set()
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 10_000, "what found room is written")
    recorder.record(Stopped(NOON + 20_000))
    recorder.close()
    with path.open("rb") as lines:
        *before, start, after = (event for _, event in read_log(lines, []))
    assert (start, after) == (Started(NOON + 20_000), Stopped(NOON + 20_000))
    assert before == [Stopped(NOON + n) for n in range(len(before))]
    assert len(before) < 10_005


def test_the_end_does_not_wait_for_a_disk_that_hangs(tmp_path: Path) -> None:
    disk = HangingDisk(tmp_path / "log.jsonl")
    recorder = Recorder(disk)
    for n in range(10_005):
        recorder.record(Stopped(NOON + n))
    recorder.close()
    assert not disk.was_waited_for
    disk.works.set()


EVERY_SECOND = History(write_every_s=1)


class Buggy:
    """A source whose every second probe dies of a bug."""

    name = "buggy"
    checks: tuple[Check, ...] = (PPOI,)
    probes = 0

    async def probe(self, _session: Session, _now: Now, /) -> Mapping[Check, Found]:
        self.probes += 1
        raise ZeroDivisionError


class Sound:
    name = "sound"
    checks: tuple[Check, ...] = (MESSAGING,)
    probes = 0

    async def probe(self, _session: Session, _now: Now, /) -> Mapping[Check, Found]:
        self.probes += 1
        return {MESSAGING: Peers(self.probes)}


@pytest.mark.clause("M11", "M6", "M5", "H14")
def test_a_source_with_a_bug_is_counted_started_again_and_takes_nobody_with_it() -> None:
    registry = CollectorRegistry()

    async def scenario() -> tuple[Buggy, Sound, KeptInMemory, float]:
        plan = a_plan(limits=replace(LAUNCH, recheck_ms=50, jitter_ms=1, heartbeat_ms=1_000))
        buggy, sound, writer = Buggy(), Sound(), KeptInMemory()
        settings = given_settings(plan, [buggy, sound], history=EVERY_SECOND)
        monitor = asyncio.create_task(Monitor(settings, {}, some_resources(writer, SystemClock(), registry)).run())
        began_s = time.monotonic()
        while (lasted_s := time.monotonic() - began_s) < 2.4 or min(buggy.probes, sound.probes) <= 5:
            assert lasted_s < 60
            await asyncio.sleep(0.1)
        monitor.cancel()
        await asyncio.gather(monitor, return_exceptions=True)
        return buggy, sound, writer, lasted_s

    buggy, sound, writer, lasted_s = asyncio.run(scenario())
    assert registry.get_sample_value("lookout_probe_bugs_total") == buggy.probes > 5
    assert sound.probes > 5
    assert 4 <= len(writer.documents) <= 2 * lasted_s + 3  # gathered to at most two a second
    histories = sum("history" in documents for documents in writer.documents)
    assert 2 <= histories <= lasted_s + 2  # about every second, as set


def a_publisher(writer: Writer, history: History) -> tuple[Journal, Publisher]:
    """One that has just started."""
    resources, plan = some_resources(writer, SystemClock()), a_plan()
    alerts = Alerts(NO_ALERTS, {}, resources.clock, resources.instruments)
    journal = Journal(Ledger(plan), Timeline(resources.clock), alerts, None)
    journal.start()
    return journal, Publisher(given_settings(plan, history=history), journal, alerts, dict, resources)


class Slow(KeptInMemory):
    """A writer that takes its time, and cannot do two things at once."""

    busy = False

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        assert not self.busy
        self.busy = True
        self.began.set()
        time.sleep(0.3)
        super().write(documents, pieces)
        self.busy = False


async def test_a_stop_during_a_write_waits_for_it_and_then_stores_what_is_left() -> None:
    writer = Slow()
    journal, publisher = a_publisher(writer, EVERY_SECOND)
    task = asyncio.create_task(publisher.run())
    await asyncio.to_thread(writer.began.wait)
    journal.observe(MESSAGING, Peers(7))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [b'"peers":7' in documents["live"].body for documents in writer.documents] == [False, True]


class FullAtFirst(KeptInMemory):
    """A writer whose disk is full for the first few writes."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.attempts: list[set[DocumentName]] = []
        self.wrote = threading.Event()

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self.attempts.append(set(documents))
        if len(self.attempts) <= self.failures:
            raise StoreError("disk full")
        super().write(documents, pieces)
        self.wrote.set()


@pytest.mark.clause("H14", "M7")
async def test_a_history_that_could_not_be_stored_is_tried_again_with_the_next_publication() -> None:
    """Not only when the next one is due, which here is in an hour."""
    writer = FullAtFirst(failures=2)
    journal, publisher = a_publisher(writer, History(write_every_s=3_600))
    task = asyncio.create_task(publisher.run())
    assert await asyncio.to_thread(writer.wrote.wait, 30)
    journal.observe(MESSAGING, Peers(7))
    task.cancel()  # and stores the last one
    await asyncio.gather(task, return_exceptions=True)
    live, history = {"live", "live.gzip"}, {"history", "history.gzip"}
    assert writer.attempts == [live | history, live | history, live | history, live]
