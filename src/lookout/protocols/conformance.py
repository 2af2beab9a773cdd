"""What every protocol has to bear: a kit that any protocol can be run through, given one answer that was recorded."""

import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lookout.core.model import LARGEST_METRIC, Failed, Found, MissingList, Nothing
from lookout.protocols.answers import MOST_VALUES
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.protocol import Protocol
from lookout.protocols.tables import KindTable

LONGEST_REASON: Final = 80
# No answer at all, no JSON, JSON without an end, too deep, too many values, numbers and texts that are too long.
ABSURD: Final = (
    *(b"", b"-", b"\xff\xfe", b"<!DOCTYPE html><html></html>", b"[" * 200_000, b'{"a":' * 200_000),
    *(b"9" * 100_000, b'"' + b"x" * 100_000, b"[" + b"0," * MOST_VALUES + b"0]"),
)
AWKWARD: Final[tuple[Any, ...]] = (None, True, -7, 1.5, LARGEST_METRIC + 1, 10**30, "", "0x", "-1", "\0", [], {}, [{}])


def list_faults(protocol: Protocol[Any], settings: KindTable, recorded: bytes) -> Iterator[str]:
    """What is wrong with a protocol, in words; nothing if it keeps to the rules (M9, R10)."""
    request = protocol.request(settings)
    if settings.url in repr(request) or settings.url in repr(protocol):
        yield "the address, which may be a secret, can be seen in the request"
    if not isinstance(_outcome(protocol, settings, recorded), protocol.answer):
        yield f"the recorded answer is not understood as {protocol.answer.__name__}"
    for body in (*ABSURD, *_variants(recorded)):
        outcome = _outcome(protocol, settings, body)
        if not is_legal(outcome):
            yield f"{body[:60]!r} gives {outcome!r}"
        elif body in ABSURD and not isinstance(outcome, Failed):
            yield f"{body[:60]!r} is taken for an answer"


def is_legal(found: object) -> bool:
    """Whether a probe may find this: whole numbers that a row can hold, or a reason that a person can read (R10)."""
    match found:
        case Failed(reason):
            return 0 < len(reason) <= LONGEST_REASON and reason.isprintable()
        case Nothing() | MissingList():
            return True
        case msgspec.Struct():
            return all(type(each) is int and 0 <= each <= LARGEST_METRIC for each in msgspec.structs.astuple(found))
        case _:
            return False


def _outcome(protocol: Protocol[Any], settings: KindTable, body: bytes) -> Found | Exception:
    try:
        return protocol.parse(body, settings)
    except ProbeFailed as failure:
        return Failed(failure.reason)
    except Exception as error:  # noqa: BLE001 - a bug, whatever it is: the kit is there to find it
        return error


def _variants(recorded: bytes) -> Iterator[bytes]:
    """The answer with each of its values replaced by awkward ones, one at a time; and cut off in several places."""
    answer = json.loads(recorded)
    for path in _paths(answer):
        yield from (json.dumps(_replaced(answer, path, value)).encode() for value in AWKWARD)
    yield from (recorded[: len(recorded) * part // 10] for part in range(1, 10))


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    yield ()
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from ((key, *path) for path in _paths(each))


def _replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], other)
    return copy
