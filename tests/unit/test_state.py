"""The state as documents: what is encoded is decoded again, and nothing else is."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Observation, Peers
from lookout.replay.replay import Replay
from lookout.state.codec import NOTHING_ENCODED, decode_state, encode_state
from lookout.state.errors import StateError
from lookout.state.log import Event
from lookout.store.sqlite import read_snapshot
from tests.builders import DAY, LAUNCH, LAUNCH_SPAN, MESSAGING, MINUTE, NOON, SECOND, a_plan
from tests.property.events import LONG_STEPS, logs
from tests.stores import damage

DATA = Path(__file__).parents[1] / "data"
BRIEF = a_plan(limits=replace(LAUNCH, heartbeat_ms=17 * MINUTE), span=replace(LAUNCH_SPAN, retention_days=1))
OTHERS = st.dictionaries(st.sampled_from(["alerts", "alerts/1", "source/x"]), st.binary(max_size=2))


@pytest.mark.clause("M7")
@settings(max_examples=8)
@given(logs(steps=LONG_STEPS, set_back=st.sampled_from([1, MINUTE, 3 * DAY]), most=40), st.data())
def test_what_is_encoded_after_the_last_state_is_the_whole_state(events: list[Event], data: st.DataObject) -> None:
    replay, last = Replay(BRIEF), NOTHING_ENCODED
    for event in events:
        replay.feed(event)
        state, others = replay.ledger.state(), data.draw(OTHERS)
        last = encode_state(state, others, last)
        assert last.documents == encode_state(state, others).documents
        assert decode_state(last.documents) == (state, others)


def test_only_what_changed_is_encoded_again() -> None:
    ledger = Ledger(a_plan(chains=(1, 137)))
    ledger.read_head(1, Reading(NOON, 1, NOON))
    ledger.read_head(137, Reading(NOON, 1, NOON))
    ledger.publish(NOON)
    before = encode_state(ledger.state(), {"alerts": b"1", "notices": b"1"})

    def changed_by(others: Mapping[str, bytes]) -> set[str]:
        documents = encode_state(ledger.state(), others, before).documents
        return {name for name, document in documents.items() if before.documents.get(name) is not document}

    assert changed_by({"alerts": b"1", "notices": b"1"}) == {"state"}
    ledger.judge(Observation(MESSAGING, NOON + SECOND, Peers(3)))
    ledger.read_head(1, Reading(NOON + SECOND, 2, NOON))
    ledger.publish(NOON + SECOND)
    assert changed_by({"alerts": b"2"}) == {"state", "heads/1", "alerts"}
    ledger.publish(NOON + 5 * MINUTE)
    assert changed_by({"alerts": b"1"}) == {"state", "heads/1", "days"}


@pytest.mark.clause("M7", "H15")
def test_a_new_plan_keeps_nothing_of_a_removed_chain_but_its_buckets() -> None:
    ledger = Ledger(a_plan(chains=(1, 137)))
    ledger.read_head(137, Reading(NOON, 1, NOON))
    ledger.publish(NOON)
    ledger.publish(NOON + 6 * MINUTE)
    state, _ = decode_state(encode_state(ledger.state()).documents)
    resumed = Ledger(a_plan(chains=(1,)), state)
    resumed.publish(NOON + 7 * MINUTE)
    kept, _ = decode_state(encode_state(resumed.state()).documents)
    assert kept is not None
    assert kept.history is not None
    assert ({check.chain_id for check in kept.checks}, [*kept.heads]) == ({None, 1}, [])
    assert {check.chain_id for check, days in kept.history.days.items() if days} == {None, 1, 137}


def test_nothing_stored_is_no_state_and_there_is_none_to_store_before_the_first_publication() -> None:
    assert decode_state({}) == (None, {})
    with pytest.raises(ValueError, match="before the first publication"):
        encode_state(Ledger(a_plan()).state())


@pytest.fixture(params=["today's", "of 2.0.0"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, bytes]:
    path = tmp_path / "lookout.db"
    path.write_bytes(gzip.decompress((DATA / "upgrade" / "2.0.0.sqlite.gz").read_bytes()))
    pieces = read_snapshot(path).state
    if request.param == "of 2.0.0":
        return pieces
    state, others = decode_state(pieces)
    assert state is not None
    return encode_state(state, others).documents


@pytest.mark.clause("M7", "H16")
@pytest.mark.parametrize("tries", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_a_bit_a_name_or_a_document_that_is_not_as_it_was_is_refused(stored: Mapping[str, bytes], tries: int) -> None:
    assert decode_state(stored)[0] is not None
    for seed in range(tries):
        with pytest.raises(StateError):
            decode_state(damage(stored, Random(seed)))
