"""The record: what is written when, and that one file of it is one process's alone."""

import threading
from collections.abc import Callable
from contextlib import closing, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from itertools import pairwise
from pathlib import Path

import pytest

from lookout.config.tables import MonitorTable
from lookout.monitor.recorder import LogFile, Record, Recorder
from lookout.replay.replay import read_log
from lookout.state.log import Event, Started, Stopped, format_event
from tests.builders import NOON
from tests.logs import capture_logs
from tests.wait import until


def events_in(path: Path) -> list[Event]:
    if not path.exists():
        return []
    with path.open("rb") as lines:
        return [event for _, event in read_log(lines, [])]


class HangingDisk(LogFile):
    """Takes nothing until it works."""

    def __init__(self, path: Path, max_bytes: int = 10_000_000) -> None:
        super().__init__(path, max_bytes)
        self.works = threading.Event()
        self.is_asked = threading.Event()

    def append(self, event: Event) -> None:
        self.is_asked.set()
        assert self.works.wait(60)
        super().append(event)


def test_a_record_that_could_not_be_written_begins_again_with_a_start(tmp_path: Path) -> None:
    path = tmp_path / "late" / "log.jsonl"
    with closing(LogFile(path, 10_000_000)) as file:
        for _ in range(2):
            with pytest.raises(FileNotFoundError):
                file.append(Started(NOON))
        path.parent.mkdir()
        file.append(Stopped(NOON + 1))
        file.append(Started(NOON + 2))
    assert events_in(path) == [Started(NOON + 1), Stopped(NOON + 1), Started(NOON + 2)]


def test_a_record_on_a_full_disk_is_tried_with_every_event_and_reported_once() -> None:
    with capture_logs() as logged:
        recorder = Recorder(LogFile(Path("/dev/full"), 10_000_000))
        for n in range(3):
            recorder.record(Started(NOON + n))
        recorder.close()
    assert [(line["event"], line["error"]) for line in logged] == [
        ("not recorded; trying again with every event", "No space left on device")
    ]


def test_a_full_file_is_renamed_and_both_files_begin_with_a_start(tmp_path: Path) -> None:
    with closing(LogFile(tmp_path / "log.jsonl", 200)) as file:
        for n in range(12):
            file.append(Started(NOON + n) if n % 2 == 0 else Stopped(NOON + n))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "log.jsonl.1"]
    for path in tmp_path.iterdir():
        assert path.stat().st_size < 400
        assert path.stat().st_mode & 0o777 == 0o600
        assert isinstance(events_in(path)[0], Started)


@pytest.mark.parametrize("before", [b"", format_event(Started(NOON))], ids=["its first line", "a later line"])
@pytest.mark.parametrize("cut", [b"", b"{", b'{"at":"2026', b'{"at":"2026' + b"x" * 60_000])
def test_a_record_goes_on_after_a_line_that_a_crash_cut_off(before: bytes, cut: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(before + cut)
    with closing(LogFile(path, 10_000_000)) as file:
        file.append(Started(NOON + 1))
    assert path.read_bytes() == before + format_event(Started(NOON + 1))


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"[store]\nurl = 1\n", b'{"at":5}\n', b"x" * 100_000])
def test_a_file_that_is_no_log_is_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content)
    with closing(LogFile(path, 10_000_000)) as file, pytest.raises(FileExistsError, match="is no observation log"):
        file.append(Started(NOON))
    assert path.read_bytes() == content


def test_a_disk_that_hangs_delays_no_caller_and_lost_events_are_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    disk = HangingDisk(path)
    recorder = Recorder(disk)
    recorder.record(Stopped(NOON))
    assert disk.is_asked.wait(60)
    for n in range(1, 10_005):  # more than find room
        recorder.record(Stopped(NOON + n))
    disk.works.set()
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 10_000, "what found room is written")
    recorder.record(Stopped(NOON + 20_000))
    recorder.close()
    *before, start, after = events_in(path)
    assert (start, after) == (Started(NOON + 20_000), Stopped(NOON + 20_000))
    assert before == [Stopped(NOON + n) for n in range(len(before))]
    assert len(before) < 10_005


def test_the_end_does_not_wait_for_a_disk_that_hangs(tmp_path: Path) -> None:
    disk = HangingDisk(tmp_path / "log.jsonl")
    recorder = Recorder(disk)
    for n in range(10_005):
        recorder.record(Stopped(NOON + n))
    recorder.close()
    assert not (tmp_path / "log.jsonl").exists() or events_in(tmp_path / "log.jsonl") == []
    disk.works.set()


def test_a_file_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first, second = LogFile(path, 10_000_000), LogFile(path, 10_000_000)
    first.append(Started(NOON))
    with pytest.raises(BlockingIOError, match="another process records to it"):
        second.append(Stopped(NOON + 1))
    first.close()
    second.append(Stopped(NOON + 2))
    second.close()
    assert events_in(path) == [Started(NOON), Started(NOON + 2), Stopped(NOON + 2)]


def test_after_a_file_was_moved_away_a_new_one_begins(tmp_path: Path) -> None:
    path, moved = tmp_path / "log.jsonl", tmp_path / "moved"
    with closing(LogFile(path, 10_000_000)) as file:
        file.append(Started(NOON))
        path.rename(moved)
        file.append(Stopped(NOON + 1))
        assert is_taken(path)
    assert events_in(moved) == [Started(NOON)]
    assert events_in(path) == [Started(NOON + 1), Stopped(NOON + 1)]


def test_two_writers_of_one_file_never_mix_their_lines(tmp_path: Path) -> None:
    """Both writers close the file now and then, and the file is often full: every turn begins with a start."""
    path = tmp_path / "log.jsonl"

    def write(mine: range) -> None:
        file = LogFile(path, 300)
        for n in mine:
            with suppress(BlockingIOError):
                file.append(Stopped(NOON + n))
            if n % 7 == 0:
                file.close()
                file.mark_gap()
        file.close()

    writers = [threading.Thread(target=write, args=(range(n, 6_000, 2),)) for n in (0, 1)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for name in ("log.jsonl", "log.jsonl.1"):
        events = events_in(tmp_path / name)
        assert isinstance(events[0], Started)
        for before, after in pairwise(events):
            assert isinstance(after, Started) or (before.at - after.at) % 2 == 0


def a_record(folder: Path, name: str, file_at: Callable[[Path, int], LogFile] = LogFile) -> Record:
    """One that records to a file already."""
    record = Record(folder, file_at)
    recorder = record.open(MonitorTable(name))
    assert recorder is not None
    record.use(recorder)
    recorder.record(Started(NOON))
    return record


def change(record: Record, settings: MonitorTable, at: int) -> None:
    """As a reload does it."""
    before, recorder = record.recorder, record.open(settings)
    if before is not None:
        before.record(Stopped(at))
    if recorder is not None:
        recorder.record(Started(at))
    record.use(recorder)


def test_a_file_that_stays_is_recorded_to_without_a_break(tmp_path: Path) -> None:
    record = a_record(tmp_path, "log.jsonl")
    for settings in (MonitorTable("log.jsonl", record_max_mb=1), MonitorTable("./log.jsonl")):
        change(record, settings, NOON + 1)
    record.close()
    again = [Stopped(NOON + 1), Started(NOON + 1)]
    assert events_in(tmp_path / "log.jsonl") == [Started(NOON), *again, *again]


def test_a_reload_can_return_to_the_file_of_an_earlier_reload(tmp_path: Path) -> None:
    record = a_record(tmp_path, "first")
    change(record, MonitorTable("second"), NOON + 1)
    until(lambda: len(events_in(tmp_path / "first")) == 2, "the first file is written")
    until(lambda: not is_taken(tmp_path / "first"), "the first file is let go")
    change(record, MonitorTable("first"), NOON + 2)
    change(record, MonitorTable(), NOON + 3)
    record.close()
    until(lambda: len(events_in(tmp_path / "first")) == 4, "the first file is written")
    assert events_in(tmp_path / "first") == [Started(NOON), Stopped(NOON + 1), Started(NOON + 2), Stopped(NOON + 3)]
    assert events_in(tmp_path / "second") == [Started(NOON + 1), Stopped(NOON + 2)]


def is_taken(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return True
    return False
