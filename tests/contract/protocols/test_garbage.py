"""Whatever bytes come, a parser gives a legal outcome or fails cleanly."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.heads import Reading
from lookout.core.model import LARGEST_METRIC, Blocks, Failed, Indexes, MissingList, Nothing, Peers
from lookout.protocols.broadcasters.source import Message, Page
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.evm import Block
from tests.builders import NOON
from tests.contract.protocols.announcers import VECTORS, read_announcement
from tests.contract.protocols.costly import replaced
from tests.contract.protocols.recorded import PARSERS, recorded

LONGEST_REASON = 80
AWKWARD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1.5,
        2**53,
        2**64,
        10**30,
        "",
        "0x",
        "0x10",
        "12",
        "-1",
        "\x00",
        [],
        {},
        [[]],
        [{}],
        {"": 0},
    ]
)
ANY_JSON = st.recursive(
    AWKWARD | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


def is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_METRIC


def check_legal(outcome: object) -> None:
    match outcome:
        case Blocks(number) | Peers(number):
            assert is_count(number)
        case Indexes(position, head):
            assert is_count(position)
            assert is_count(head)
        case Block(height, block_at):
            assert is_count(height)
            assert Reading(NOON, height, block_at).block_at % 1000 == 0
        case int():
            assert is_count(outcome)
        case Nothing() | MissingList():
            pass
        case Failed(reason):
            assert 0 < len(reason) <= LONGEST_REASON
        case Page(messages, cursor):
            assert cursor is None or cursor
            check_legal(messages)
        case tuple():
            assert all(isinstance(message, Message) for message in outcome)
        case dict():
            for found in outcome.values():
                check_legal(found)
        case _:
            pytest.fail(f"not an outcome: {outcome!r}")


def ends_cleanly(parser: str, body: bytes) -> None:
    outcome: object
    try:
        outcome = PARSERS[parser][0](body)
    except ProbeFailed as failure:
        outcome = Failed(failure.reason)
    check_legal(outcome)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, each in inner for found in paths(each, (*path, key)))]


def without(value: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(value[path[0]], path[1:])
    return copy


every_parser = pytest.mark.parametrize("parser", PARSERS)


@every_parser
@pytest.mark.clause("R10")
@given(body=st.binary(max_size=200))
def test_random_bytes_end_cleanly(parser: str, body: bytes) -> None:
    ends_cleanly(parser, body)


@every_parser
@pytest.mark.clause("R10")
@given(value=ANY_JSON)
def test_random_json_ends_cleanly(parser: str, value: Any) -> None:
    ends_cleanly(parser, json.dumps(value).encode())


@every_parser
@pytest.mark.clause("R10")
@given(choice=st.data())
def test_a_recorded_answer_with_one_value_changed_ends_cleanly(parser: str, choice: st.DataObject) -> None:
    answer = json.loads(recorded(PARSERS[parser][1]))
    path = choice.draw(st.sampled_from(paths(answer)))
    changed = [replaced(answer, path, choice.draw(AWKWARD | ANY_JSON))]
    if path:
        changed.append(without(answer, path))
    for value in changed:
        ends_cleanly(parser, json.dumps(value).encode())


@every_parser
@pytest.mark.clause("R10")
@given(choice=st.data())
def test_a_recorded_answer_with_bytes_changed_ends_cleanly(parser: str, choice: st.DataObject) -> None:
    answer = recorded(PARSERS[parser][1])
    at = choice.draw(st.integers(0, len(answer) - 1))
    ends_cleanly(
        parser, answer[:at] + choice.draw(st.binary(max_size=6)) + answer[at + choice.draw(st.integers(0, 4)) :]
    )


@every_parser
@pytest.mark.clause("R10")
@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"a":' * 200_000, b"9" * 100_000, b'"' + b"x" * 100_000, b"\xff\xfe", b"-"]
)
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
