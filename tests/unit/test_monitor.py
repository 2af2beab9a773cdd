"""Parts of the monitor on their own: recording, a source with a bug."""

import asyncio
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from lookout.alerts.policy import NO_ALERTS
from lookout.base.clock import SystemClock
from lookout.config.tables import History
from lookout.core.ledger import Ledger
from lookout.core.model import Peers
from lookout.documents.document import Document, DocumentName
from lookout.monitor.alerts import Alerts
from lookout.monitor.journal import Journal
from lookout.monitor.publisher import GATHER_MS, Publisher
from lookout.monitor.recorder import LogFile, Recorder
from lookout.monitor.timeline import Timeline
from lookout.replay.replay import read_log
from lookout.state.log import Event, Started, Stopped, format_event
from lookout.state.pieces import Pieces
from lookout.store.protocol import StoreError, Writer
from tests.builders import LAUNCH, MESSAGING, NOON, PPOI, a_plan
from tests.unit.running_monitor import Asked, KeptInMemory, given_settings, lived, running, some_resources
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


@pytest.mark.clause("M11", "M6", "M5", "H14")
def test_a_source_with_a_bug_is_counted_started_again_and_takes_nobody_with_it() -> None:
    registry = CollectorRegistry()
    plan = a_plan(limits=replace(LAUNCH, recheck_ms=200, jitter_ms=1, heartbeat_ms=1_000))
    buggy, sound = Asked(PPOI, ZeroDivisionError(), takes_s=0), Asked(MESSAGING, Peers(1), takes_s=0)
    with capture_logs():  # to format so many tracebacks takes long
        written = lived(130, plan, [buggy, sound], [], registry=registry).written
    assert registry.get_sample_value("lookout_probe_bugs_total") == len(buggy.asked) > 500
    assert len(sound.asked) > 500
    assert {later - earlier for (earlier, _), (later, _) in pairwise(written)} == {GATHER_MS}  # though more changed
    histories = [at for at, documents in written if "history" in documents]
    assert {later - earlier for earlier, later in pairwise(histories)} == {History().write_every_s * 1_000}


def a_publisher(writer: Writer, history: History) -> tuple[Journal, Publisher]:
    """One that has just started."""
    resources, plan = some_resources(writer, SystemClock()), a_plan()
    alerts = Alerts(NO_ALERTS, {}, resources)
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
    async with running(publisher.run()):
        await asyncio.to_thread(writer.began.wait)
        journal.observe(MESSAGING, Peers(7))
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
    async with running(publisher.run()):  # and stores the last one when it ends
        assert await asyncio.to_thread(writer.wrote.wait, 30)
        journal.observe(MESSAGING, Peers(7))
    live, history = {"live", "live.gzip"}, {"history", "history.gzip"}
    assert writer.attempts == [live | history, live | history, live | history, live]
