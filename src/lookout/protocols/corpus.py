"""Answers that nobody should send, each of which some parser was once harmed by."""

import json
import sys
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from lookout.protocols.client.request import MIB

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
_SEED: Final = 17
_CHANGES: Final = 200  # of bytes
_MOST_PLACES: Final = 60
_PLACE: Final = "where it goes"
_FORMS: Final = ("9" * 40, "1e999", "NaN", "-0", '"\\ud800"', '"\\u0000"', '{"a":1,"a":2}')


def hostile_answers(mark: str) -> Iterator[tuple[str, bytes]]:
    """Of no protocol in particular, each with its name. ``mark`` is in some of them, where a secret might be."""
    yield "nothing", b""
    yield from ABSURD.items()
    yield from ((f"{value!r} alone", encode(value)) for value in AWKWARD)
    for shape in SHAPES:
        yield f"a list of {shape}, as long as an answer may be", listed(shape, MIB)
        yield f"a table of {shape}, as long as an answer may be", tabled(shape, MIB)
    yield "a page of HTML", f"<!doctype html><title>{mark}</title>".encode()
    yield "a text that is not to be repeated", encode(mark)
    yield "errors that are not to be repeated", encode({"error": {"code": -1, "message": mark}, "errors": [mark]})


def changed_answers(good: bytes, mark: str) -> Iterator[tuple[str, bytes]]:
    """A good answer with something in it changed, the same changes each time."""
    chance = Random(_SEED)  # noqa: S311  it chooses what is tried
    for _ in range(_CHANGES):
        at, length = chance.randrange(len(good) + 1), chance.randrange(5)
        noise = chance.randbytes(chance.randrange(7))
        yield f"bytes {at} to {at + length} replaced by {noise!r}", good[:at] + noise + good[at + length :]
    for at in sorted({len(good) * part // 20 for part in range(20)}):
        yield f"broken off after byte {at}", good[:at]
    try:
        document = json.loads(good)
    except (ValueError, RecursionError):
        return  # of another format: its bytes are all there is
    every = list(places(document))
    for place in chance.sample(every, min(_MOST_PLACES, len(every))):
        yield from _changed_at(document, place, mark)


def _changed_at(document: Any, place: tuple[Any, ...], mark: str) -> Iterator[tuple[str, bytes]]:
    where = "/".join(("", *map(str, place)))
    yield f"{where} left out", encode(without(document, place))
    for value in (*AWKWARD, mark, [mark], {mark: mark}):
        yield f"{where} is {value!r}", encode(replaced(document, place, value))
    start, end = encode(replaced(document, place, _PLACE)).split(encode(_PLACE))
    for form in _FORMS:
        yield f"{where} is {form}", start + form.encode() + end
    for shape in ("largest floats", "tables of tables", "deep lists"):
        yield f"{where} is a list of {shape}", start + listed(shape, MIB - len(start) - len(end)) + end


def listed(shape: str, size: int, most: int = sys.maxsize) -> bytes:
    one = SHAPES[shape]
    count = min(most, (size - 2) // (len(one) + 1))
    # A list of so many parts would take more memory than a reader.
    return b"[" + (one + b",") * (count - 1) + one + b"]"


def tabled(shape: str, size: int) -> bytes:
    one = SHAPES[shape]
    return b"{" + b",".join(b'"%06x":%b' % (n, one) for n in range((size - 2) // (len(one) + 10))) + b"}"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value in a document; of a list, to its first."""
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


def without(value: Any, path: tuple[Any, ...]) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = without(value[path[0]], path[1:])
    return copy


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()
