"""The record: what is written when, what a moved or a damaged file becomes, and that it is one process's alone."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from lookout.core.heads import Reading
from lookout.core.model import Blocks, Check, Gaps, Row, Status, unobserved
from lookout.monitor.recorder import Recorder
from lookout.replay.replay import Replay, read_log, run_log
from lookout.state.log import Compared, Event, HeadRead, Started, Stopped, Viewed, format_event
from tests.builders import INDEXER, NOON, PPOI, a_plan, an_observation
from tests.logs import capture_logs
from tests.wait import until

HEAD = HeadRead(NOON, 1, Reading(NOON, 100, NOON))


def events_in(path: Path) -> list[Event]:
    if not path.exists():
        return []
    with path.open("rb") as lines:
        return [event for _, event in read_log(lines, [])]


@contextmanager
def recording(path: Path) -> Iterator[Callable[[Event], None]]:
    with closing(Recorder(path.parent)) as recorder:
        recorder.record_to(path.name)
        yield recorder.record


def until_recorded(path: Path, events: Sequence[Event]) -> None:
    until(lambda: events_in(path) == list(events), f"{path.name} has its events")


def replayed_status(path: Path, check: Check) -> Status:
    replay = Replay(a_plan())
    with path.open("rb") as lines:
        run_log(read_log(lines, []), replay)
    return next(row.status for row in replay.ledger.published_rows if row.check == check)


@pytest.mark.clause("S18", "S21")
def test_a_row_that_was_published_as_degraded_replays_as_degraded_from_the_file_after_a_rotation(
    tmp_path: Path,
) -> None:
    path, rotated = tmp_path / "log.jsonl", tmp_path / "log.jsonl.1"
    first: list[Event] = [Started(NOON), Compared(NOON, INDEXER, Gaps(3)), Compared(NOON, PPOI, Gaps(gap=4)), HEAD]
    more: list[Event] = [Compared(NOON + 1, INDEXER, Gaps(1)), an_observation(Blocks(100), at=NOON + 2, check=INDEXER)]
    then: list[Event] = [HeadRead(NOON + 3, 1, HEAD.reading), an_observation(Blocks(100), at=NOON + 4, check=INDEXER)]
    with recording(path) as record:
        for event in (*first, *more):
            record(event)
        until_recorded(path, [*first, *more])
        path.rename(rotated)
        for event in then:
            record(event)
    known = [Compared(NOON + 3, INDEXER, Gaps(1)), Compared(NOON + 3, PPOI, Gaps(gap=4))]
    assert events_in(path) == [Started(NOON + 3), *known, *then]
    assert replayed_status(rotated, INDEXER) == replayed_status(path, INDEXER) == "degraded"


@pytest.mark.clause("W9")
def test_a_new_file_begins_with_what_each_witness_is_known_to_see(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    views = [Viewed(NOON, name, unobserved(check)) for name in ("Singapore", "Lima") for check in (INDEXER, PPOI)]
    newer = Viewed(NOON + 1, "Lima", Row(PPOI, "current", "synced", NOON, NOON, NOON + 1))
    first: list[Event] = [Started(NOON), *views, newer]
    with recording(path) as record:
        for event in first:
            record(event)
        until_recorded(path, first)
        path.rename(tmp_path / "log.jsonl.1")
        record(Stopped(NOON + 2))
    known = [replace(view, at=NOON + 2) for view in (*views[:3], newer)]
    assert events_in(path) == [Started(NOON + 2), *known, Stopped(NOON + 2)]


def test_what_was_known_before_a_start_is_not_inserted_after_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    before: list[Event] = [Started(NOON), Compared(NOON, INDEXER, Gaps(1)), Stopped(NOON), Started(NOON + 1)]
    with recording(path) as record:
        for event in before:
            record(event)
        until_recorded(path, before)
        path.unlink()
        record(Stopped(NOON + 2))
    assert events_in(path) == [Started(NOON + 2), Stopped(NOON + 2)]


def test_a_record_that_could_not_be_written_begins_again_with_a_start(tmp_path: Path) -> None:
    path = tmp_path / "late" / "log.jsonl"
    with capture_logs() as logged, recording(path) as record:
        record(Started(NOON))
        record(Compared(NOON, INDEXER, Gaps(1)))
        until(lambda: bool(logged), "it failed")
        path.parent.mkdir()
        record(Stopped(NOON + 1))
        record(Started(NOON + 2))
    recorded = events_in(path)
    assert recorded[:1] in ([Started(NOON)], [Started(NOON + 1)])  # the folder may be there in time for the comparison
    assert recorded[1:] == [
        Compared(recorded[0].at, INDEXER, Gaps(1)),
        Stopped(NOON + 1),
        Started(NOON + 2),
    ]
    assert [line["error"] for line in logged] == ["No such file or directory"]


def test_a_record_on_a_full_disk_is_tried_with_every_event_and_reported_once() -> None:
    with capture_logs() as logged, recording(Path("/dev/full")) as record:
        for n in range(3):
            record(Started(NOON + n))
    assert [(line["event"], line["error"]) for line in logged] == [
        ("not recorded; trying again with every event", "No space left on device")
    ]


@pytest.mark.parametrize("before", [b"", format_event(Started(NOON))], ids=["its first line", "a later line"])
@pytest.mark.parametrize("cut", [b"", b"{", b'{"at":"2026', b'{"at":"2026' + b"x" * 60_000])
def test_a_record_goes_on_after_a_line_that_a_crash_cut_off(before: bytes, cut: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(before + cut)
    with recording(path) as record:
        record(Started(NOON + 1))
    assert path.read_bytes() == before + format_event(Started(NOON + 1))


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"[store]\nurl = 1\n", b'{"at":5}\n', b"x" * 100_000])
def test_a_file_that_is_not_a_log_is_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content)
    with capture_logs() as logged, recording(path) as record:
        record(Started(NOON))
    assert path.read_bytes() == content
    assert logged[0]["error"] == "is not an observation log; choose another file in monitor.record"


def test_a_disk_that_hangs_delays_no_caller_and_after_lost_events_the_log_begins_again(tmp_path: Path) -> None:
    """A pipe takes no more than fits into it until it is read."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    drained, many = bytearray(), 50_000  # more than find room
    with capture_logs() as logged, recording(pipe) as record:
        for n in range(many):
            record(Stopped(NOON + n))
        record(Compared(NOON + many, INDEXER, Gaps(1)))
        reading = os.open(pipe, os.O_RDONLY)
        reader = threading.Thread(target=read_into, args=(drained, reading))
        reader.start()
        until(lambda: drained.count(b"\n") > 10_000, "what found room is written")
        record(Stopped(NOON + many + 1))
    reader.join()
    os.close(reading)
    log = tmp_path / "log.jsonl"
    log.write_bytes(drained)
    *before, start, known, after = events_in(log)
    at = NOON + many + 1
    assert [start, known, after] == [Started(at), Compared(at, INDEXER, Gaps(1)), Stopped(at)]
    assert len(before) < many
    for event, following in pairwise(before):  # whatever is lost, a start is in its place
        assert isinstance(following, Started) or following.at - event.at == isinstance(event, Stopped)
    assert {line["event"] for line in logged} == {"not recorded: the disk does not keep up, or hangs"}


def read_into(drained: bytearray, file: int) -> None:
    while read := os.read(file, 65_536):
        drained += read


def test_the_end_does_not_wait_for_a_disk_that_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with capture_logs() as logged, recording(tmp_path / "pipe") as record:
        for n in range(5_000):
            record(Stopped(NOON + n))
    assert [line["event"] for line in logged] == ["the end of the record was not written: the disk hangs"]
    reading = os.open(tmp_path / "pipe", os.O_RDONLY)
    threading.Thread(target=read_into, args=(bytearray(), reading), daemon=True).start()


def test_a_file_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with capture_logs() as logged, recording(path) as second:
        with recording(path) as first:
            first(Started(NOON))
            until_recorded(path, [Started(NOON)])
            second(Stopped(NOON + 1))
            until(lambda: bool(logged), "it is refused")
        second(Stopped(NOON + 2))
    assert [line["error"] for line in logged] == ["another process records to it"]
    assert events_in(path) == [Started(NOON), Started(NOON + 2), Stopped(NOON + 2)]


def change(recorder: Recorder, name: str, at: int) -> None:
    """As a reload does it."""
    recorder.record(Stopped(at))
    recorder.record_to(name)
    recorder.record(Started(at))


def test_a_file_that_stays_is_recorded_to_without_a_break(tmp_path: Path) -> None:
    with closing(Recorder(tmp_path)) as recorder:
        recorder.record_to("log.jsonl")
        recorder.record(Started(NOON))
        for name in ("log.jsonl", "./log.jsonl"):
            change(recorder, name, NOON + 1)
    again = [Stopped(NOON + 1), Started(NOON + 1)]
    assert events_in(tmp_path / "log.jsonl") == [Started(NOON), *again, *again]


def test_a_reload_can_return_to_the_file_of_an_earlier_reload(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with closing(Recorder(tmp_path)) as recorder:
        recorder.record_to("first")
        recorder.record(Started(NOON))
        change(recorder, "second", NOON + 1)
        until_recorded(first, [Started(NOON), Stopped(NOON + 1)])
        until(lambda: not is_taken(first), "the first file is let go")
        change(recorder, "first", NOON + 2)
        change(recorder, "", NOON + 3)
    until_recorded(first, [Started(NOON), Stopped(NOON + 1), Started(NOON + 2), Stopped(NOON + 3)])
    assert events_in(second) == [Started(NOON + 1), Stopped(NOON + 2)]
    assert sorted(path.stat().st_mode & 0o777 for path in (first, second)) == [0o600, 0o600]


def is_taken(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return True
    return False
