"""Answers that fit the limits and take as long to read as their sender can make them."""

import json
from collections.abc import Iterator
from typing import Any, Final

from lookout.protocols.answers import MOST_VALUES
from lookout.protocols.broadcasters.source import LIMIT_BYTES, MOST_MESSAGES
from lookout.protocols.client.request import MIB
from tests.contract.protocols.recorded import PARSERS, recorded

_PLACE: Final = "where it goes"

# Each was the worst for some decoder, or some way of putting one to use.
SHAPES: Final[dict[str, bytes]] = {
    "largest floats": b"1e308",
    "smallest floats": b"5e-324",
    "floats with every digit": b"1.7976931348623157e308",
    "floats just below the smallest normal one": b"2.2250738585072011e-308",
    "floats between two others": b"9007199254740993.0",
    "floats with many zeros": b"0." + b"0" * 20 + b"1",
    "floats of 800 digits": b"1." + b"7" * 800,
    "numbers of one digit": b"1",
    "integers of 20 digits": b"12345678901234567890",
    "integers of 25 digits": b"1234567890123456789012345",
    "integers as long as Python reads them": b"1" * 4_300,
    "empty lists": b"[]",
    "empty tables": b"{}",
    "tables of tables": b'{"message":{"payload":"","contentTopic":"","timestamp":0}}',
    "peers": b'{"connected":1e308}',
    "messages": b'{"payload":"' + b"A" * 1_200 + b'","contentTopic":"/a","timestamp":1}',
    "chains": b'{"id":1,"block":{"number":1}}',
    "deep lists": b"[" * 400 + b"]" * 400,
    "empty texts": b'""',
    "escapes": b'"' + b"\\n" * 1_000 + b'"',
    "escapes of other characters": b'"' + b"\\u00e9" * 1_000 + b'"',
    "characters of two bytes": ("é" * 1_000).join('""').encode(),
    "blanks": b" " * 1_000 + b"1",
}


def limit_of(parser: str) -> int:
    return LIMIT_BYTES if parser in ("store", "relay") else MIB


def costly_answers(parser: str, shape: str) -> Iterator[bytes]:
    """As long as they may be: a list and a table of such values alone, and in every place of a recorded answer."""
    recording = json.loads(recorded(PARSERS[parser][1]))
    for wanted in ((), *places(recording)):
        start, end = json.dumps(replaced(recording, wanted, _PLACE)).encode().split(json.dumps(_PLACE).encode())
        room = limit_of(parser) - len(start) - len(end)
        yield start + listed(shape, room) + end
        yield start + listed(shape, room, most_of(parser, shape)) + end  # so many that none more would be opened
        yield start + tabled(shape, room) + end


def most_of(parser: str, shape: str) -> int:
    values = 1 + sum(map(SHAPES[shape].count, (b",", b"[", b"{")))
    return min((MOST_VALUES - 1_000) // values, MOST_MESSAGES if parser in ("store", "relay") else MOST_VALUES)


def listed(shape: str, size: int, most: int = LIMIT_BYTES) -> bytes:
    one = SHAPES[shape]
    count = min(most, (size - 2) // (len(one) + 1))
    return (
        b"[" + (one + b",") * (count - 1) + one + b"]"
    )  # a list of so many parts would take more memory than a reader


def tabled(shape: str, size: int) -> bytes:
    one = SHAPES[shape]
    return b"{" + b",".join(b'"%06x":%b' % (n, one) for n in range((size - 2) // (len(one) + 10))) + b"}"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy
