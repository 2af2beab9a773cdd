"""The state in pieces: the changed pieces of every write together are the whole state."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Observation, Peers
from lookout.documents.document import StateError
from lookout.replay.replay import Replay
from lookout.state.codec import PART_MS, Differ, all_pieces, decode_state, encode_progress
from lookout.state.log import Event
from tests.builders import DAY, HOUR, INDEXER, LAUNCH, LAUNCH_SPAN, MESSAGING, MINUTE, NOON, SECOND, a_plan
from tests.property.events import LONG_STEPS, logs
from tests.unit.kept_pieces import OUTCOMES, AStore, after_write, apply_pieces

BRIEF = a_plan(limits=replace(LAUNCH, heartbeat_ms=17 * MINUTE), span=replace(LAUNCH_SPAN, retention_days=1))


OTHERS = st.dictionaries(st.sampled_from(["alerts", "alerts/1", "alerts/2", "source/x"]), st.binary(max_size=2))


@pytest.mark.clause("M7")
@settings(max_examples=15)
@given(logs(steps=LONG_STEPS, set_back=st.sampled_from([1, MINUTE, 3 * DAY]), most=40), st.data())
def test_what_is_written_little_by_little_is_the_whole_state_whichever_writes_fail(
    events: list[Event], data: st.DataObject
) -> None:
    replay, differ = Replay(BRIEF), Differ()
    stored: dict[str, bytes] = {}
    for n, event in enumerate(events, 1):
        replay.feed(event)
        state, others = replay.ledger.state(), data.draw(OTHERS)
        outcome = data.draw(OUTCOMES) if n < len(events) else "written"
        pieces = differ.find_changes(state, others)
        differ = after_write(differ, outcome)
        if outcome == "failed":
            continue
        stored = apply_pieces(stored, pieces)
        whole = all_pieces(state, others).put
        assert decode_state(stored) == decode_state(whole) == state
        assert without_heads(stored) == without_heads(whole)


def without_heads(stored: Mapping[str, bytes]) -> dict[str, bytes]:
    """Of heads, what has aged out may be stored for some minutes more. So the seal is another one, too."""
    return {name: piece for name, piece in stored.items() if not name.startswith("heads/") and name != "progress"}


@pytest.mark.clause("M7", "H15")
def test_a_new_plan_leaves_no_piece_of_what_it_no_longer_has_but_its_buckets() -> None:
    ledger = Ledger(a_plan(chains=(1, 137)))
    ledger.read_head(137, Reading(NOON, 1, NOON))
    ledger.publish(NOON)
    ledger.publish(NOON + 6 * MINUTE)
    store = AStore()
    store.write(ledger)
    assert {
        f"heads/137/{NOON // PART_MS}",
        "check/indexer/137",
        "tally/indexer/137",
        "day/20762/indexer/137",
    } <= store.pieces.keys()
    resumed = Ledger(a_plan(chains=(1,)), decode_state(store.pieces))
    resumed.publish(NOON + 7 * MINUTE)
    store = AStore(store.pieces)
    store.write(resumed)
    assert f"heads/137/{NOON // PART_MS}" not in store.pieces
    assert "check/indexer/137" not in store.pieces
    assert {"tally/indexer/137", "day/20762/indexer/137"} <= store.pieces.keys()


def test_a_publication_that_changes_one_row_stores_that_row_alone() -> None:
    ledger, store = Ledger(a_plan()), AStore()
    ledger.publish(NOON)
    assert store.write(ledger).replace_all
    ledger.judge(Observation(MESSAGING, NOON + SECOND, Peers(3)))
    ledger.publish(NOON + SECOND)
    pieces = store.write(ledger)
    assert set(pieces.put) == {"progress", "check/messaging/-", "tally/messaging/-"}
    assert (pieces.delete, pieces.replace_all) == ((), False)
    ledger.publish(NOON + 2 * SECOND)
    assert set(store.write(ledger).put) == {"progress"}


@pytest.mark.clause("M7")
def test_of_the_others_only_what_changed_is_stored() -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    state = ledger.state()
    differ = Differ()
    differ.find_changes(state, {"a": b"1", "b": b"1", "c": b"1"})
    differ.mark_stored()
    pieces = differ.find_changes(state, {"a": b"1", "b": b"2"})
    assert (set(pieces.put), pieces.delete) == ({"b", "progress"}, ("c",))


@pytest.mark.clause("M7")
def test_what_is_stored_of_the_heads_is_what_changed_in_parts_of_five_minutes() -> None:
    part, ledger, store = NOON // PART_MS, Ledger(a_plan()), AStore()

    def parts_written(*minutes: int) -> tuple[set[int], set[int]]:
        """The parts that are put, and that are deleted, with new heads of these minutes."""
        for minute in minutes:
            ledger.read_head(1, Reading(NOON + minute * MINUTE, 10, NOON))
        ledger.publish(NOON)
        pieces = store.write(ledger)
        assert decode_state(store.pieces) == ledger.state()
        put, deleted = (
            {int(name.split("/")[2]) - part for name in names if name.startswith("heads/1/")}
            for names in (pieces.put, pieces.delete)
        )
        return put, deleted

    assert parts_written(0, 4, 5) == ({0, 1}, set())
    assert parts_written() == (set(), set())
    assert parts_written(61) == ({12}, set())  # the first leaves the hour, and the rest of its part does not
    assert parts_written(65) == ({13}, {0})
    ledger.start(NOON, NOON + HOUR)
    assert parts_written() == ({-11, 0, 1}, {12, 13})


@pytest.mark.clause("M7")
def test_heads_that_an_earlier_version_stored_in_one_piece_are_read_and_replaced() -> None:
    ledger = Ledger(a_plan())
    ledger.publish(NOON)
    unsealed = {"progress": encode_progress(ledger.state())}
    stored = all_pieces(ledger.state()).put | unsealed
    stored["heads/1"] = b"[[%d,1,%d],[%d,2,%d]]" % (NOON, NOON, NOON + HOUR, NOON + HOUR)
    resumed = Ledger(a_plan(), decode_state(stored))
    assert resumed.state().heads == {1: (Reading(NOON, 1, NOON), Reading(NOON + HOUR, 2, NOON + HOUR))}
    resumed.publish(NOON + HOUR)
    store = AStore(stored)
    store.write(resumed)
    assert "heads/1" not in store.pieces
    assert decode_state(store.pieces) == resumed.state()


@pytest.mark.clause("H15")
def test_buckets_that_aged_out_are_deleted() -> None:
    ledger, store = Ledger(BRIEF), AStore()
    for n in range(9 * 288):
        ledger.publish(NOON + n * 5 * MINUTE)
        store.write(ledger)
    days = {name.split("/")[1] for name in store.pieces if name.startswith("day/")}
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
    ],
)
def test_a_spoiled_piece_is_named(name: str, piece: bytes) -> None:
    ledger = Ledger(a_plan(INDEXER))
    ledger.publish(NOON)
    stored = all_pieces(ledger.state()).put | {"progress": encode_progress(ledger.state())}  # the seal would break
    with pytest.raises(StateError, match=f"the stored piece {name} cannot be read"):
        decode_state(stored | {name: piece})


def test_there_is_nothing_to_store_before_the_first_publication() -> None:
    with pytest.raises(ValueError, match="before the first publication"):
        all_pieces(Ledger(a_plan()).state())
