"""Answers that fit the limits and take as long to read as their sender can make them."""

import json
from collections.abc import Iterator
from typing import Any, Final

from lookout.protocols.answers import MOST_VALUES
from lookout.protocols.broadcasters.source import LIMIT_BYTES
from lookout.protocols.client.request import MIB
from tests.contract.protocols.hostile import replaced
from tests.contract.protocols.recorded import PARSERS, recorded

# The worst cases of certain decoders, or of ways to use them.
SHAPES: Final[dict[str, bytes]] = {
    "largest floats": b"1e308",
    "floats of 800 digits": b"1." + b"7" * 800,
    "numbers of one digit": b"1",
    "integers as long as Python reads them": b"1" * 4_300,
    "empty lists": b"[]",
    "tables of tables": b'{"message":{"payload":"","contentTopic":"","timestamp":0}}',
    "messages": b'{"payload":"' + b"A" * 1_200 + b'","contentTopic":"/a","timestamp":1}',
    "deep lists": b"[" * 400 + b"]" * 400,
    "escapes": b'"' + b"\\n" * 1_000 + b'"',
}
_PLACE: Final = "where it goes"


def limit_of(parser: str) -> int:
    return LIMIT_BYTES if parser in ("store", "relay") else MIB


def costly_answers(parser: str, shape: str) -> Iterator[bytes]:
    """As long as they may be: a list and a table of such values alone, and in every place of a recorded answer."""
    recording = json.loads(recorded(PARSERS[parser][1]))
    for wanted in ((), *places(recording)):
        start, end = json.dumps(replaced(recording, wanted, _PLACE)).encode().split(json.dumps(_PLACE).encode())
        room = limit_of(parser) - len(start) - len(end)
        yield start + listed(shape, room) + end
        yield (
            start + listed(shape, min(room, most_of(shape) * (len(SHAPES[shape]) + 1))) + end
        )  # so many that none more would be opened
        yield start + tabled(shape, room) + end


def most_of(shape: str) -> int:
    values = 1 + sum(map(SHAPES[shape].count, (b",", b"[", b"{")))
    return (MOST_VALUES - 1_000) // values


def tabled(shape: str, size: int) -> bytes:
    one = SHAPES[shape]
    return b"{" + b",".join(b'"%06x":%b' % (n, one) for n in range((size - 2) // (len(one) + 10))) + b"}"


def listed(shape: str, size: int) -> bytes:
    one = SHAPES[shape]
    return b"[" + b",".join([one] * ((size - 1) // (len(one) + 1))) + b"]"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, found in inner:
        yield (*path, key)
        yield from places(found, (*path, key))
