"""The seal over what is stored: it holds through whatever a monitor does, and breaks with anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.ledger import Ledger
from lookout.core.pieces import Pieces, StateError, decode_state, encode_changes, merge, sealed
from lookout.core.seal import Seal, is_broken
from tests.builders import NOON, SECOND, a_plan
from tests.unit.test_pieces import PIECES, store

WRITES = st.lists(st.tuples(PIECES, st.booleans()), min_size=1)


def stored_through(writes: list[tuple[Pieces, bool]]) -> dict[str, bytes]:
    """What is stored when some writes fail, and are merged with the next; the first is whole, as a monitor's is."""
    seal, stored, unwritten = Seal(), dict[str, bytes](), Pieces({}, (), whole=True)
    for pieces, fails in writes:
        unwritten = sealed(merge(unwritten, pieces), seal)
        if not fails:
            store(stored, unwritten)
            unwritten = Pieces({}, (), whole=False)
            assert not is_broken(stored)
    return stored


@given(WRITES)
def test_it_holds_through_all_that_is_put_deleted_and_put_again_after_it_failed(
    writes: list[tuple[Pieces, bool]],
) -> None:
    stored_through(writes)


@given(WRITES, st.data())
def test_a_byte_a_name_or_a_piece_that_is_not_as_it_was_breaks_it(
    writes: list[tuple[Pieces, bool]], data: st.DataObject
) -> None:
    stored = stored_through([*writes, (Pieces({"a": b"cc", "b": b"ud"}, (), whole=False), False)])
    name = data.draw(st.sampled_from(sorted(stored)))
    piece = stored[name]
    bit = data.draw(st.integers(0, 8 * len(piece) - 1)) if piece else 0
    flipped = (int.from_bytes(piece) ^ 1 << bit).to_bytes(max(1, len(piece)))
    assert is_broken(stored | {name: flipped})
    assert is_broken(stored | {"e": piece})
    if name != "seal":
        rest = {other: kept for other, kept in stored.items() if other != name}
        assert is_broken(rest)
        assert is_broken(rest | {"e": piece})


def test_two_pieces_that_changed_places_break_it() -> None:
    stored = stored_through([(Pieces({"a": b"cc", "b": b"ud"}, (), whole=True), False)])
    assert is_broken(stored | {"a": b"ud", "b": b"cc"})


@pytest.mark.clause("M7", "H16")
def test_no_state_is_made_of_what_was_not_stored() -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    stored = sealed(encode_changes(ledger.changes()), Seal()).put
    assert decode_state(stored) is not None
    for name in stored.keys() - {"seal"}:
        with pytest.raises(StateError, match="the stored pieces are not what was stored"):
            decode_state({other: piece for other, piece in stored.items() if other != name})


def test_what_an_earlier_version_stored_has_no_seal_and_is_read() -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    stored = encode_changes(ledger.changes()).put
    assert decode_state(stored) is not None
    del stored["progress"]
    with pytest.raises(StateError, match="the stored piece progress is missing"):
        decode_state(stored)


def test_a_publication_adds_one_small_piece() -> None:
    ledger, seal = Ledger(a_plan()), Seal()
    ledger.publish(NOON)
    sealed(encode_changes(ledger.changes()), seal)
    ledger.publish(NOON + SECOND)
    pieces = sealed(encode_changes(ledger.changes()), seal)
    assert pieces.put.keys() == {"progress", "seal"}
    assert len(pieces.put["seal"]) == 16
