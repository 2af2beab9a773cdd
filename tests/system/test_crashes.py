"""Crash points, a few of each kind (``make campaign`` tries them all), and that wrong stores are found out."""

import fnmatch
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from msgspec.structs import replace

from lookout.base.pieces import Pieces
from lookout.core.ledger import State
from lookout.documents.document import Document, DocumentName
from lookout.state.codec import PROGRESS, Differ, encode_progress
from lookout.store import postgres
from lookout.store.protocol import StoreError
from lookout.store.sqlite import SqliteReader, open_writer
from tests.stores import PassingWriter
from tests.system.crashes import monitor_points, postgres_points, torn
from tests.system.crashes.kinds import LeftOut, try_points
from tests.system.crashes.points import KINDS
from tests.system.crashes.story import EMPTY, publications
from tests.system.crashes.verdict import Wrong, examine_sqlite, parse_said
from tests.system.crashes.victim import FILE

# Of each kind the first point, and every how many; primes, so that they fall on calls of every sort.
FEW = {
    "sqlite-kill": (3, 211),
    "sqlite-fail": (5, 521),
    "sqlite-short": (2, 107),
    "sqlite-torn": (1, 41),
    "monitor": (60, 61),
    "postgres-cut": (40, 139),
    "postgres-kill": (70, 89),
}

# On either store, the file as a crash leaves it, and the monitor's own going on.
EVERYDAY = {"sqlite-kill", "sqlite-torn", "postgres-cut"}


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


def test_torn_stores_are_held_against_what_they_must_be() -> None:
    scene = torn.scenes()["resumed"]
    cases = dict(torn.cases(scene, scene))
    whole, cut = cases[f"cut-{len(scene.log)}"](), cases["log-gone"]()
    assert whole.mark == scene.states[-1].mark != cut.mark == scene.states[0].mark
    for wrong in (whole._replace(mark=cut.mark), cut._replace(mark=whole.mark), whole._replace(mark=None)):
        with pytest.raises(Wrong):
            torn.attempt({"it": partial(torn.Case, *wrong)}, known=frozenset(), point="it")


class Unsealed(Differ):
    """Puts no seal on what is stored."""

    def find_changes(self, state: State, others: Mapping[str, bytes] = {}) -> Pieces:
        pieces = super().find_changes(state, others)
        return replace(pieces, put={**pieces.put, PROGRESS: encode_progress(state)})


def test_a_store_without_a_seal_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.system.crashes.story.Differ", Unsealed)
    with torn.prepare_tears() as (points, attempt):
        rotten = fnmatch.filter(points, "new:rot-*")[::5]
        with pytest.raises(Wrong, match="from pieces that nobody stored"):
            list(map(attempt, rotten))


def test_a_report_without_its_state_is_found_out(tmp_path: Path) -> None:
    (first, _), (second, _) = islice(publications(), 2)
    with closing(open_writer(tmp_path / FILE)) as writer:
        writer.write(*first)
    monitor_points.examine(tmp_path, {})
    with closing(open_writer(tmp_path / FILE)) as writer:
        writer.write(second.documents, Pieces({}))
    with pytest.raises(Wrong, match="of two publications"):
        monitor_points.examine(tmp_path, {})


def test_a_server_that_would_be_given_other_bytes_is_found_out(tmp_path: Path) -> None:
    ((publication, stored),) = islice(publications(), 1)
    damaged = dict(publication.documents)
    damaged["live"] = replace(damaged["live"], body=damaged["live"].body + b" ")
    with closing(open_writer(tmp_path / FILE)) as writer:
        writer.write(damaged, publication.pieces)
    with pytest.raises(Wrong, match="not that of its ETag"):
        examine_sqlite(tmp_path / FILE, {stored.mark}, EMPTY.mark)


class InTwoTransactions(PassingWriter):
    """The documents first, and then the state."""

    def write(self, documents: Mapping[DocumentName, Document], pieces: Pieces) -> None:
        self._real.write(documents, Pieces({}))
        self._real.write({}, pieces)


def open_in_two_transactions(url: str) -> InTwoTransactions:
    return InTwoTransactions(postgres.open_writer(url))


def test_on_postgresql_a_store_that_writes_in_two_transactions_is_found_out() -> None:
    points = ("40:before", "42:before")  # in the second half of the first publication
    with where_it_can_be(), postgres_points.a_server() as server:
        attempt = partial(postgres_points.attempt, server, opener=open_in_two_transactions)
        with pytest.raises(Wrong, match="not what a publication left"):
            list(map(attempt, points))


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
