"""What no parser may be harmed by, and what it may give: any protocol's answers are tried with these (R10)."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from hypothesis import strategies as st

from lookout.core.causes import OWN_CAUSES
from lookout.core.heads import Reading
from lookout.core.model import LARGEST_METRIC, Failed, Listed, Nothing
from lookout.protocols.broadcasters.seen import BroadcastersTable, SeenBroadcasters, Sightings
from lookout.protocols.broadcasters.source import MessagePage, StoredMessage
from lookout.protocols.client.failure import ProbeFailed
from tests.builders import NOON
from tests.contract.protocols.announcers import read_announcement

_LONGEST_REASON: Final = 80
_LONGEST_TEXT: Final = 200
_ID: Final = re.compile("[0-9A-Za-z_.:-]{1,256}")
_HASH: Final = re.compile("0x[0-9a-f]{64}")
_LAST_YEAR_MS: Final = 253_370_764_800_000
ABSURD: Final = {
    "200,000 lists in one another": b"[" * 200_000,
    "200,000 tables in one another": b'{"a":' * 200_000,
    "100,000 digits": b"9" * 100_000,
    "a text that does not end": b'"' + b"x" * 100_000,
    "bytes that are no UTF-8": b"\xff\xfe",
    "a minus sign": b"-",
}
AWKWARD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 2**53, 2**64, 10**30),
    *("", "0x", "0x10", "12", "-1", "\x00"),
    *([], {}, [[]], [{}], {"": 0}),
)
_AWKWARD: Final[st.SearchStrategy[Any]] = st.sampled_from(AWKWARD)
_ANY_JSON: Final = st.recursive(
    _AWKWARD | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@st.composite
def one_value_changed(draw: st.DrawFn, answer: bytes) -> bytes:
    recording = json.loads(answer)
    path = draw(st.sampled_from(paths_in(recording)))
    if path and draw(st.booleans()):
        return encode(without(recording, path))
    return encode(replaced(recording, path, draw(_AWKWARD | _ANY_JSON)))


@st.composite
def some_bytes_changed(draw: st.DrawFn, answer: bytes) -> bytes:
    at = draw(st.integers(0, len(answer) - 1))
    return answer[:at] + draw(st.binary(max_size=6)) + answer[at + draw(st.integers(0, 4)) :]


def hostile_answers(answer: bytes) -> st.SearchStrategy[bytes]:
    """Such as nobody should send, some of them made of one that was recorded."""
    return st.binary(max_size=200) | _ANY_JSON.map(encode) | one_value_changed(answer) | some_bytes_changed(answer)


def check_ends_cleanly(parse: Callable[[bytes], object], body: bytes) -> None:
    outcome: object
    try:
        outcome = parse(body)
    except ProbeFailed as failure:
        outcome = Failed(failure.reason)
    assert is_legal(outcome), outcome


def is_legal(outcome: object) -> bool:
    """Whether a parser may give this (R10)."""
    match outcome:
        case Failed(reason):
            return 0 < len(reason) <= _LONGEST_REASON and reason.isprintable()
        case MessagePage(messages, cursor):
            return (cursor is None or bool(urlencode({"cursor": cursor}))) and is_legal(messages)
        case Nothing(cause):
            return cause in OWN_CAUSES
        case Reading(_, height, block_at):
            return _is_count(height) and _is_count(block_at) and block_at < _LAST_YEAR_MS
        case msgspec.Struct():  # an answer
            return all(map(_is_count, msgspec.structs.astuple(outcome)))
        case Listed(transactions, entries):
            return _is_count(entries) and all(map(_HASH.fullmatch, transactions))
        case list():  # entries
            return all(_is_count(entry.block) for entry in outcome)
        case frozenset():  # logs
            return all(_is_count(log.block) and _is_count(log.number) for log in outcome) and all(
                _HASH.fullmatch(each) for log in outcome for each in (log.block_hash, log.transaction)
            )
        case tuple():
            return all(isinstance(message, StoredMessage) for message in outcome) and _can_be_counted(outcome)
        case dict():
            return all(is_legal(found) for found in outcome.values())
        case _:
            return _is_count(outcome)


def texts_kept(outcome: object) -> Iterator[str]:
    """Every text in what a parser gives; of messages, which are not kept, what is kept of their announcements."""
    match outcome:
        case str():
            yield outcome
        case MessagePage(messages, _):
            yield from texts_kept(messages)
        case StoredMessage(_, payload, sent_at):
            yield from texts_kept(read_announcement(payload, sent_at))
        case dict():
            yield from texts_kept([*outcome, *outcome.values()])
        case list() | tuple() | frozenset():
            for part in outcome:
                yield from texts_kept(part)
        case msgspec.Struct():
            yield from texts_kept(msgspec.structs.astuple(outcome))


def may_be_shown(text: str) -> bool:
    return bool(_ID.fullmatch(text)) or (len(text) <= _LONGEST_TEXT and text.isprintable())


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_METRIC


def _can_be_counted(messages: Sequence[StoredMessage]) -> bool:
    """Whether what is in the messages leads to a count of broadcasters, and can be stored."""
    sightings = Sightings(BroadcastersTable("http://127.0.0.1", chains=(1,)))
    for message in messages[:50]:
        announcement = read_announcement(message.payload, message.sent_at)
        if announcement is not None:
            sightings.note(1, announcement, NOON)
    msgspec.json.encode(SeenBroadcasters(tuple(sightings), {1: NOON}))
    members = sightings.members(1, NOON)
    return is_legal(members) and members.responding <= members.monitored


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, each in inner for found in paths_in(each, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def without(value: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(value[path[0]], path[1:])
    return copy


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()
