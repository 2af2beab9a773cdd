"""Whatever bytes come, a parser gives a legal outcome or fails cleanly."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.conformance import ABSURD
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import Protocol
from tests.builders import NOON
from tests.contract.protocols.announcers import VECTORS, read_announcement
from tests.contract.protocols.hostile import check_ends_cleanly, hostile_answers
from tests.contract.protocols.recorded import KIND_TABLES, PARSERS, recorded

every_parser = pytest.mark.parametrize("parser", PARSERS)


def test_every_kind_is_among_the_parsers() -> None:
    kinds = {each.name for each in PROTOCOLS if isinstance(each, Protocol)}
    assert {table.kind for table in KIND_TABLES.values()} == kinds
    assert KIND_TABLES.keys() <= PARSERS.keys()


@every_parser
@pytest.mark.clause("M9", "R10")
@given(choice=st.data())
def test_a_hostile_answer_ends_cleanly(parser: str, choice: st.DataObject) -> None:
    parse, file = PARSERS[parser]
    check_ends_cleanly(parse, choice.draw(hostile_answers(recorded(file))))


@every_parser
@pytest.mark.clause("R10")
@pytest.mark.parametrize("body", ABSURD.values(), ids=ABSURD.keys())
def test_absurd_answers_end_cleanly(parser: str, body: bytes) -> None:
    with pytest.raises(ProbeFailed):
        PARSERS[parser][0](body)


@given(text=st.text(max_size=100), sent_at=st.integers(-(2**70), 2**70))
def test_random_payloads_count_for_nobody(text: str, sent_at: int) -> None:
    assert read_announcement(text, sent_at) is None


@given(choice=st.data())
def test_a_signed_payload_with_characters_changed_is_the_same_or_counts_for_nobody(choice: st.DataObject) -> None:
    envelope = choice.draw(st.sampled_from(VECTORS))["payload"].encode()
    at = choice.draw(st.integers(0, len(envelope) - 1))
    changed = envelope[:at] + choice.draw(st.binary(min_size=1, max_size=2)) + envelope[at + 1 :]
    believed = read_announcement(base64.b64encode(changed).decode(), NOON)
    # Hexadecimal digits mean the same in capitals.
    assert believed is None or believed == read_announcement(base64.b64encode(envelope).decode(), NOON)
