"""The seal over what is stored: it holds through whatever a monitor does, and breaks with anything else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.ledger import Ledger
from lookout.state.pieces import Pieces, StateError, decode_state, encode_changes, merge, sealed
from lookout.state.seal import Seal
from tests.builders import NOON, SECOND, a_plan
from tests.unit.test_pieces import NAMES, store

BROKEN = "the stored pieces are not what was stored"


def published() -> Pieces:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    return encode_changes(ledger.changes())


FIRST = published()
PROGRESS = {"progress": FIRST.put["progress"]}
# Pieces of somebody else's, each time with the progress. A name may be in both: it is deleted after it was put.
WRITES = st.lists(
    st.tuples(
        st.builds(
            lambda put, delete, whole: Pieces(
                {**(FIRST.put if whole else {}), **put, **PROGRESS}, tuple(delete), whole
            ),
            st.dictionaries(NAMES, st.binary(max_size=2)),
            st.lists(NAMES),
            st.booleans(),
        ),
        st.sampled_from(["written", "failed", "written, and told as failed"]),
    ),
)


def stored_through(writes: list[tuple[Pieces, str]]) -> dict[str, bytes]:
    """What is stored when some writes fail, and are merged with the next; the first is whole, as a monitor's is."""
    seal, stored, unwritten = Seal(), dict[str, bytes](), FIRST
    for pieces, outcome in [*writes, (Pieces({"a": b"cc", "b": b"ud", **PROGRESS}, (), whole=False), "written")]:
        unwritten = sealed(merge(unwritten, pieces), seal)
        if outcome != "failed":
            store(stored, unwritten)
            assert decode_state(stored) is not None
        if outcome == "written":
            unwritten = Pieces({}, (), whole=False)
    return stored


@given(WRITES)
def test_it_holds_through_all_that_is_put_deleted_and_put_again_after_it_failed(
    writes: list[tuple[Pieces, str]],
) -> None:
    stored_through(writes)


@given(WRITES, st.data())
def test_a_bit_a_name_or_a_piece_that_is_not_as_it_was_breaks_it(
    writes: list[tuple[Pieces, str]], data: st.DataObject
) -> None:
    stored = stored_through(writes)
    name = data.draw(st.sampled_from(sorted(stored)))
    piece = stored[name]
    bit = data.draw(st.integers(0, 8 * max(1, len(piece)) - 1))
    flipped = (int.from_bytes(piece) ^ 1 << bit).to_bytes(max(1, len(piece)))
    rest = {other: kept for other, kept in stored.items() if other != name}
    for harmed in (rest, rest | {name: flipped}, rest | {"e": piece}, stored | {"e": piece}):
        with pytest.raises(StateError):
            decode_state(harmed)


def test_two_pieces_that_changed_places_break_it() -> None:
    stored = stored_through([])
    with pytest.raises(StateError, match=BROKEN):
        decode_state(stored | {"a": stored["b"], "b": stored["a"]})


@pytest.mark.clause("M7", "H16")
def test_no_single_bit_of_the_progress_takes_the_seal_away() -> None:
    stored = sealed(FIRST, Seal()).put
    progress = stored["progress"]
    assert re.search(rb'"seal":"[0-9a-f]{16}"', progress)
    for bit in range(8 * len(progress)):
        flipped = (int.from_bytes(progress) ^ 1 << bit).to_bytes(len(progress))
        with pytest.raises(StateError):
            decode_state(stored | {"progress": flipped})


def test_what_an_earlier_version_stored_has_no_seal_and_is_read() -> None:
    assert b"seal" not in FIRST.put["progress"]
    assert decode_state(FIRST.put) is not None
    with pytest.raises(StateError, match="the stored piece progress is missing"):
        decode_state({name: piece for name, piece in FIRST.put.items() if name != "progress"})


def test_it_is_not_made_of_a_part_of_what_is_stored() -> None:
    with pytest.raises(ValueError, match="nobody knows what else is stored"):
        sealed(Pieces(PROGRESS, (), whole=False), Seal())


def test_it_adds_no_piece_to_a_publication() -> None:
    ledger, seal = Ledger(a_plan()), Seal()
    ledger.publish(NOON)
    sealed(encode_changes(ledger.changes()), seal)
    ledger.publish(NOON + SECOND)
    assert sealed(encode_changes(ledger.changes()), seal).put.keys() == {"progress"}
