"""Crash points, a few of each kind (``make campaign`` tries them all), and that wrong stores are found out."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from lookout.store.protocol import StoreError
from lookout.store.sqlite import SqliteReader, open_writer
from tests.system.crashes.kinds import LeftOut, try_points
from tests.system.crashes.points import KINDS
from tests.system.crashes.story import EMPTY, publications
from tests.system.crashes.verdict import Wrong, examine_sqlite, parse_said
from tests.system.crashes.victim import FILE

# Of each kind the first point, and every how many; primes, so that they fall on calls of every sort.
FEW = {
    "sqlite-kill": (3, 211),
    "sqlite-fail": (5, 521),
}

EVERYDAY = {"sqlite-kill"}


@contextmanager
def where_it_can_be() -> Iterator[None]:
    try:
        yield
    except LeftOut as why:
        pytest.skip(str(why))


@pytest.mark.clause("M7", "H16")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.long) for name in KINDS]
)
def test_after_any_crash_the_store_is_what_a_publication_left_and_the_monitor_goes_on(name: str) -> None:
    offset, step = FEW[name]
    with where_it_can_be():
        tried = try_points(name, KINDS[name], offset, step)
    assert tried.failures == ()
    assert tried.points >= 2


def test_a_server_that_would_be_given_other_bytes_is_found_out(tmp_path: Path) -> None:
    ((publication, stored),) = islice(publications(), 1)
    damaged = dict(publication.documents)
    damaged["live"] = replace(damaged["live"], body=damaged["live"].body + b" ")
    with closing(open_writer(tmp_path / FILE)) as writer:
        writer.write(damaged, publication.pieces)
    with pytest.raises(Wrong, match="not that of its ETag"):
        examine_sqlite(tmp_path / FILE, {stored.mark}, EMPTY.mark)


def test_what_a_victim_says_decides_what_may_be_stored() -> None:
    victim = parse_said("storing a\nstored a\nstoring b\nnot stored: disk full\nstoring c\n")
    assert victim.may_be("x") == {"a", "b", "c"}
    assert victim.complaints == ("not stored: disk full",)
    assert parse_said("storing a\n").may_be("x") == {"x", "a"}


def test_a_connection_that_failed_is_not_used_again(tmp_path: Path) -> None:
    """A lock that the system would not let go of is its own for ever, as the failing calls of ``fcntl`` have shown."""
    with closing(open_writer(tmp_path / FILE)) as writer, closing(SqliteReader(tmp_path / FILE)) as reader:
        (first, _), (second, stored) = islice(publications(), 2)
        writer.write(*first)
        assert reader.changed()  # a server keeps the files in place
        assert writer._connection is not None
        writer._connection.close()
        with pytest.raises(StoreError, match="closed database"):
            writer.write(*second)
        writer.write(*second)
        assert writer.load() == stored.pieces
