"""The state in pieces: what is stored little by little is the whole."""

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.heads import PART_MS, Reading
from lookout.core.ledger import Ledger, State
from lookout.core.model import Observation, Peers
from lookout.replay.replay import Replay
from lookout.state.log import Event
from lookout.state.pieces import Pieces, StateError, decode_state, encode_changes, merge
from tests.builders import DAY, HOUR, INDEXER, LAUNCH, LAUNCH_SPAN, MESSAGING, MINUTE, NOON, SECOND, a_plan
from tests.property.events import LONG_STEPS, logs

BRIEF = a_plan(limits=replace(LAUNCH, heartbeat_ms=17 * MINUTE), span=replace(LAUNCH_SPAN, retention_days=1))


def store(stored: dict[str, bytes], pieces: Pieces) -> None:
    if pieces.whole:
        stored.clear()
    stored.update(pieces.put)
    for name in pieces.delete:
        stored.pop(name, None)  # it may have come and gone since the last time


def in_order(state: State | None) -> State:
    """The same state, whatever order its parts were stored in."""
    assert state is not None
    assert state.history is not None
    return replace(
        state,
        checks=tuple(sorted(state.checks, key=lambda entry: str(entry.row.check))),
        history=replace(
            state.history, strips=tuple(sorted(state.history.strips, key=lambda strip: str(strip.tally.check)))
        ),
    )


@pytest.mark.clause("M7")
@settings(max_examples=60)
@given(logs(steps=LONG_STEPS, set_back=st.sampled_from([1, MINUTE, 3 * DAY]), most=40), st.integers(1, 5))
def test_pieces_stored_little_by_little_make_the_whole_state(events: list[Event], every: int) -> None:
    replay = Replay(BRIEF)
    stored: dict[str, bytes] = {}
    for n, event in enumerate(events):
        replay.feed(event)
        if n % every == 0:
            store(stored, encode_changes(replay.ledger.changes()))
    store(stored, encode_changes(replay.ledger.changes()))
    assert in_order(decode_state(stored)) == in_order(replay.ledger.state())


NAMES = st.sampled_from(["a", "b", "c", "d"])
PIECES = st.builds(
    lambda put, delete, whole: Pieces(put, tuple(delete - put.keys()), whole),
    st.dictionaries(NAMES, st.binary(max_size=2)),
    st.sets(NAMES),
    st.booleans(),
)


@given(st.dictionaries(NAMES, st.binary(max_size=2)), st.lists(PIECES, min_size=1))
def test_pieces_merged_and_stored_once_are_the_pieces_stored_one_by_one(
    before: dict[str, bytes], written: list[Pieces]
) -> None:
    one_by_one, at_once = dict(before), dict(before)
    for pieces in written:
        store(one_by_one, pieces)
    store(at_once, reduce(merge, written))
    assert at_once == one_by_one


@pytest.mark.clause("M7", "H15")
def test_a_new_plan_leaves_no_piece_of_what_it_no_longer_has_but_its_buckets() -> None:
    ledger = Ledger(a_plan(chains=(1, 137)))
    ledger.read_head(137, Reading(NOON, 1, NOON))
    ledger.publish(NOON)
    ledger.publish(NOON + 6 * MINUTE)
    stored: dict[str, bytes] = {}
    store(stored, encode_changes(ledger.changes()))
    assert {
        f"heads/137/{NOON // PART_MS}",
        "check/indexer/137",
        "tally/indexer/137",
        "day/20762/indexer/137",
    } <= stored.keys()
    resumed = Ledger(a_plan(chains=(1,)), decode_state(stored))
    resumed.publish(NOON + 7 * MINUTE)
    store(stored, encode_changes(resumed.changes()))
    assert f"heads/137/{NOON // PART_MS}" not in stored
    assert "check/indexer/137" not in stored
    assert {"tally/indexer/137", "day/20762/indexer/137"} <= stored.keys()


def test_a_publication_that_changes_one_row_stores_that_row_alone() -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    assert encode_changes(ledger.changes()).whole
    ledger.observe(Observation(MESSAGING, NOON + SECOND, Peers(3)))
    ledger.publish(NOON + SECOND)
    pieces = encode_changes(ledger.changes())
    assert set(pieces.put) == {"progress", "check/messaging/-", "tally/messaging/-"}
    assert (pieces.delete, pieces.whole) == ((), False)
    ledger.publish(NOON + 2 * SECOND)
    assert set(encode_changes(ledger.changes()).put) == {"progress"}


@pytest.mark.clause("M7", "S15")
def test_a_new_head_stores_the_last_five_minutes_of_its_chain_alone_and_the_hour_is_whole() -> None:
    ledger = Ledger(a_plan())
    stored: dict[str, bytes] = {}
    for number in range(1, 1_000):
        at = NOON + number * 5 * SECOND
        ledger.read_head(1, Reading(at, number, at))
        ledger.publish(at)
        pieces = encode_changes(ledger.changes())
        assert [name for name in pieces.put if name.startswith("heads/")] == [f"heads/1/{at // PART_MS}"]
        store(stored, pieces)
        assert len([name for name in stored if name.startswith("heads/")]) <= 13
        assert in_order(decode_state(stored)) == in_order(ledger.state())


@pytest.mark.clause("M7")
def test_heads_that_an_earlier_version_stored_in_one_piece_are_read_and_stored_anew() -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    stored: dict[str, bytes] = {}
    store(stored, encode_changes(ledger.changes()))
    stored["heads/1"] = b"[[%d,1,%d],[%d,2,%d]]" % (NOON, NOON, NOON + HOUR, NOON + HOUR)
    resumed = Ledger(a_plan(), decode_state(stored))
    assert resumed.state().heads == {1: (Reading(NOON, 1, NOON), Reading(NOON + HOUR, 2, NOON + HOUR))}
    resumed.publish(NOON + HOUR)
    store(stored, encode_changes(resumed.changes()))
    assert "heads/1" not in stored
    assert in_order(decode_state(stored)) == in_order(resumed.state())


@pytest.mark.clause("H15")
def test_buckets_that_aged_out_are_deleted() -> None:
    ledger = Ledger(BRIEF)
    stored: dict[str, bytes] = {}
    for n in range(9 * 288):
        ledger.publish(NOON + n * 5 * MINUTE)
        store(stored, encode_changes(ledger.changes()))
    days = {name.split("/")[1] for name in stored if name.startswith("day/")}
    assert len(days) == 5


def test_no_pieces_are_no_state() -> None:
    assert decode_state({}) is None
    assert decode_state({"source/broadcasters": b"{}"}) is None


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("progress", b"{}"),
        ("progress", b"\xff"),
        ("check/indexer/1", b"not JSON"),
        ("tally/indexer/1", b'{"check":["oracle",1]}'),
        ("heads/one", b"[]"),
        ("heads/1", b"[[1,2]]"),
        ("day/20762/indexer/1", b"\xff"),
        ("day/today/indexer/1", b"c"),
        ("day/20762/indexer/1", b"x"),
        ("day/99999999/indexer/1", b"c"),
    ],
)
def test_a_spoiled_piece_is_named(name: str, piece: bytes) -> None:
    ledger = Ledger(a_plan(INDEXER))
    ledger.publish(NOON)
    stored = encode_changes(ledger.changes()).put
    with pytest.raises(StateError, match=f"the stored piece {name} cannot be read"):
        decode_state(stored | {name: piece})


def test_there_are_no_changes_before_the_first_publication() -> None:
    with pytest.raises(ValueError, match="before the first publication"):
        Ledger(a_plan()).changes()
