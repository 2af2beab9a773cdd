"""What every store has to do."""

import gzip
import subprocess
import sys
from contextlib import closing

import pytest

from lookout.documents.document import COMPRESSED, Document, DocumentName, with_compressed
from lookout.store.protocol import Left, LostStoreError, Reader, Snapshot, StoreError, StorePosition, Writer
from tests.contract.store.stores import HISTORY, LIVE, NOTHING, Opened, Store, write_again
from tests.wait import until


@pytest.fixture
def writer(store: Store, opened: Opened) -> Writer:
    return opened(store.writer(0))


@pytest.fixture
def reader(store: Store, opened: Opened) -> Reader:
    return opened(store.reader())


def test_an_empty_store_has_neither_documents_nor_a_state(writer: Writer, reader: Reader) -> None:
    assert writer.load() == {}
    assert reader.read("live") is None
    assert reader.read("history") is None


def test_what_is_written_is_read_to_the_byte(writer: Writer, reader: Reader) -> None:
    writer.write({"live": LIVE, "history": HISTORY}, NOTHING)
    assert (reader.read("live"), reader.read("history")) == (LIVE, HISTORY)
    later = Document(bytes(range(256)) * 500, '"x"', 2)
    writer.write({"live": later}, NOTHING)
    assert (reader.read("live"), reader.read("history")) == (later, HISTORY)


@pytest.mark.clause("A15")
def test_a_documents_gzip_form_is_stored_beside_it(writer: Writer, reader: Reader) -> None:
    writer.write({"live": LIVE}, NOTHING)
    assert (reader.changed(), reader.read("live.gzip"), reader.changed()) == (True, None, False)
    stored = with_compressed({"live": LIVE, "history": HISTORY})
    writer.write(stored, NOTHING)
    until(reader.changed, "the gzip forms are noticed")
    assert list(stored) == ["live", "live.gzip", "history", "history.gzip"]
    for name, document in stored.items():
        assert reader.read(name) == document
    assert [gzip.decompress(stored[name].body) for name in COMPRESSED.values()] == [LIVE.body, HISTORY.body]
    assert [stored[name].generated_at for name in COMPRESSED.values()] == [LIVE.generated_at, HISTORY.generated_at]


@pytest.mark.clause("M7")
def test_the_state_is_what_was_written_last(writer: Writer) -> None:
    for state in ({"a": b"1", "b": b"2"}, {"b": b"\x00\xff", "c": b""}, {"b": b"\x00\xff", "c": b"3"}, {"d": b"4"}):
        writer.write({}, state)
        assert writer.load() == state


@pytest.mark.clause("M7")
def test_everything_is_there_after_closing_and_opening(store: Store) -> None:
    for n in range(3):
        writer = store.writer(5)
        assert writer.load() == ({"n": str(n - 1).encode()} if n else {})
        writer.write({"live": LIVE}, {"n": str(n).encode()})
        writer.close()
    reader = store.reader()
    assert reader.read("live") == LIVE
    reader.close()


def test_a_reader_notices_every_change_and_nothing_else(writer: Writer, reader: Reader) -> None:
    until(reader.changed, "at first everything is new")
    for document in (LIVE, HISTORY):
        writer.write({"live": document}, NOTHING)
        until(reader.changed, "it is noticed")
        assert not reader.changed()


def test_a_write_that_fails_leaves_everything_as_it_was(writer: Writer, reader: Reader) -> None:
    writer.write({"live": LIVE}, {"a": b"1"})
    with pytest.raises(StoreError):
        writer.write({"live": HISTORY}, {"a": b"2", "b": object()})  # type: ignore[dict-item]
    assert reader.read("live") == LIVE
    assert writer.load() == {"a": b"1"}
    writer.write({"live": HISTORY}, {"a": b"1"})
    assert (reader.read("live"), writer.load()) == (HISTORY, {"a": b"1"})


def test_a_writer_that_was_closed_writes_nothing(store: Store, opened: Opened) -> None:
    """It may be asked to by a thread that a disk kept waiting: another monitor has the store by then."""
    closed = store.writer(0)
    closed.close()
    other = opened(store.writer(10))
    other.write({"live": LIVE}, {"a": b"1"})
    with pytest.raises(StoreError, match="the store was closed"):
        closed.write({"live": HISTORY}, {"a": b"2"})
    with pytest.raises(StoreError, match="the store was closed"):
        closed.load()
    assert other.load() == {"a": b"1"}


def test_only_one_writer_is_let_in(store: Store, writer: Writer) -> None:
    with pytest.raises(StoreError, match="another monitor is writing to it"):
        store.writer(0)
    writer.write({"live": LIVE}, NOTHING)


def test_a_second_monitor_gets_in_when_the_first_is_killed(store: Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", *store.holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        with pytest.raises(StoreError, match="another monitor"):
            store.writer(0.2)
        holder.kill()
        store.writer(10).close()


@pytest.mark.clause("M7")
def test_a_store_of_the_own_epoch_that_went_back_is_written_whole(store: Store, writer: Writer, reader: Reader) -> None:
    writer.write({"live": LIVE, "history": LIVE}, {"a": b"1", "b": b"1"})
    put_back = store.save()
    documents: dict[DocumentName, Document] = {"live": LIVE, "history": HISTORY}
    state = {"a": b"2", "c": b"1"}
    writer.write(documents, state)
    put_back()
    write_again(writer, state, documents)  # changes nothing since the last write
    assert writer.load() == state
    assert (reader.read("live"), reader.read("history")) == (LIVE, HISTORY)
    writer.write({**documents, "live": HISTORY}, {"a": b"2"})
    assert (writer.load(), reader.read("live")) == ({"a": b"2"}, HISTORY)


@pytest.mark.clause("M7")
def test_a_write_is_of_what_changed_since_the_last_one_or_of_everything() -> None:
    first = Snapshot({"live": LIVE}, {"a": b"1", "b": b"1"})
    second = Snapshot({"live": LIVE, "history": HISTORY}, {"a": b"2", "b": b"1"})
    left, changes = Left(StorePosition(1, 0)).find_changes(StorePosition(1, 0), first, "a store")
    assert (left.position, changes) == (StorePosition(1, 1), first)
    left, changes = left.find_changes(StorePosition(1, 1), second, "a store")
    assert (left.position, changes) == (StorePosition(1, 2), Snapshot({"history": HISTORY}, {"a": b"2"}))
    for found, writes in ((1, 3), (7, 8)):  # it went back, or took a write whose answer was lost
        after, changes = left.find_changes(StorePosition(1, found), second, "a store")
        assert (after.position, changes) == (StorePosition(1, writes), second)
    with pytest.raises(LostStoreError, match="another monitor has taken over"):
        left.find_changes(StorePosition(2, 2), second, "a store")


@pytest.mark.clause("M7")
def test_a_store_of_another_epoch_is_not_written_whole(store: Store, opened: Opened) -> None:
    """It is as a former monitor left it: who restored it may have wanted that."""
    with closing(store.writer(0)) as before:
        before.write({"live": LIVE}, {"a": b"before"})
        put_back = store.save()
    writer = opened(store.writer(10))
    writer.write({"live": HISTORY}, {"a": b"1"})
    put_back()
    with pytest.raises(LostStoreError, match="another monitor has taken over, or another store was put in its place"):
        write_again(writer, {"a": b"2"})
    writer.close()
    assert opened(store.writer(10)).load() == {"a": b"before"}
