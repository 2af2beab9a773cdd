"""Answers that fit the limits and take as long to read as their sender can make them."""

import json
from collections.abc import Iterator
from typing import Final

from lookout.protocols.answers import MOST_VALUES
from lookout.protocols.broadcasters.source import LIMIT_BYTES
from lookout.protocols.client.request import MIB
from lookout.protocols.conformance import SHAPES, listed, places, replaced
from tests.contract.protocols.recorded import PARSERS, recorded

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
