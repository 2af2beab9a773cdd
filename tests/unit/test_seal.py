"""The seal over the stored pieces: it fits after every write of a monitor, and after no other change."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.ledger import Ledger
from lookout.documents.document import StateError
from lookout.state.codec import Differ, all_pieces, decode_state, encode_progress
from tests.builders import NOON, a_plan
from tests.unit.kept_pieces import NAMES, OUTCOMES, after_write, apply_pieces

BROKEN = "the stored pieces are not what was stored"


def published() -> Ledger:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    return ledger


STATE = published().state()
WRITES = st.lists(st.tuples(st.dictionaries(NAMES, st.binary(max_size=2)), OUTCOMES))


def stored_through(writes: list[tuple[dict[str, bytes], str]]) -> dict[str, bytes]:
    """What is stored, of the state and of others, when some writes fail."""
    differ, stored = Differ(), dict[str, bytes]()
    for others, outcome in [*writes, ({"a": b"cc", "b": b"ud"}, "written")]:
        pieces = differ.find_changes(STATE, others)
        if outcome != "failed":
            stored = apply_pieces(stored, pieces)
            assert decode_state(stored) == STATE
        differ = after_write(differ, outcome)
    return stored


@given(WRITES, st.data())
def test_a_bit_a_name_or_a_piece_that_is_not_as_it_was_breaks_it(
    writes: list[tuple[dict[str, bytes], str]], data: st.DataObject
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
    stored = all_pieces(STATE).put
    progress = stored["progress"]
    assert re.search(rb'"seal":"[0-9a-f]{16}"', progress)
    for bit in range(8 * len(progress)):
        flipped = (int.from_bytes(progress) ^ 1 << bit).to_bytes(len(progress))
        with pytest.raises(StateError):
            decode_state(stored | {"progress": flipped})


def test_what_an_earlier_version_stored_has_no_seal_and_is_read() -> None:
    unsealed = all_pieces(STATE).put | {"progress": encode_progress(STATE)}
    assert b"seal" not in unsealed["progress"]
    assert decode_state(unsealed) == STATE
    del unsealed["progress"]
    with pytest.raises(StateError, match="the stored piece progress is missing"):
        decode_state(unsealed)
