"""The conformance kit: whether a protocol, built in or of another package, is fit for a monitor.

It calls the protocol as a monitor does, with good answers, hostile answers that have harmed some parser, and good
answers with changes. Every run uses the same answers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from itertools import chain, islice
from time import process_time
from typing import Any, Final

import msgspec

from lookout.base.text import shorten
from lookout.core.model import Found
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import MIB, KindTable
from lookout.protocols.plugins import GROUP, PluginFailed, find_mistake, make_request, parse_answer
from lookout.protocols.source import Protocol

_LONGEST_S: Final = 0.5  # of computing, which blocks other sources
_MOST_PROBLEMS: Final = 10
_MARK: Final = "canary-7q5"
_MARKED_URL: Final = f"https://{_MARK}:{_MARK}@{_MARK}.example/{_MARK}?key={_MARK}"
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
_MOST_PLACES: Final = 60
_PLACE: Final = "where it goes"
_FORMS: Final = (b"9" * 40, b"1e999", b"NaN", b"-0", b'"\\ud800"', b'{"a":1,"a":2}')


def assert_conforms(place: str, settings: Mapping[str, Any], good: Mapping[bytes, Found]) -> None:
    """AssertionError if the protocol at ``place`` ("package.module:NAME", as the entry point says it) is not fit.

    ``settings`` are the keys of a table of the configuration without ``kind``; ``good`` maps at least one answer to its
    expected result.
    """
    problems = list(dict.fromkeys(islice(_problems(place, settings, good), _MOST_PROBLEMS)))
    if problems:
        raise AssertionError("\n- ".join([f"{place} does not conform:", *problems]))


def _problems(place: str, settings: Mapping[str, Any], good: Mapping[bytes, Found]) -> Iterator[str]:
    protocol: Any = EntryPoint("", place, GROUP).load()
    if (mistake := find_mistake(protocol, place)) is not None:
        yield f"it {mistake}"
        return
    try:
        table = msgspec.convert({"chain": None, **settings, "kind": protocol.name}, protocol.settings)
    except msgspec.ValidationError as error:
        yield f"its settings refuse those that were given: {error}"
        return
    yield from (f"its settings refuse those that were given: {problem}" for problem in table.check())
    yield from _problems_of_request(protocol, table)
    yield from _problems_of_good(protocol, table, good)
    yield from _problems_of_hostile(protocol, table, good)


def _problems_of_request(protocol: Protocol[Any], settings: KindTable) -> Iterator[str]:
    marked = msgspec.structs.replace(settings, headers={"X-Test": "kept"})
    try:
        if "kept" not in make_request(protocol, marked).access.headers.values():
            yield "its request leaves out the headers of the settings"
    except ProbeFailed as failure:
        yield f"for its request {_words_of(failure)}"


def _problems_of_good(protocol: Protocol[Any], settings: KindTable, good: Mapping[bytes, Found]) -> Iterator[str]:
    for body, expected in [*good.items()] * 2:  # twice, with the same result
        given = f"given {shorten(repr(body), 60)}"
        try:
            found = parse_answer(protocol, body, settings)
        except ProbeFailed as failure:
            yield f"{given}: {_words_of(failure)}"
        else:
            if found != expected:
                yield f"{given}: it found {found} and not {expected}"


def _problems_of_hostile(protocol: Protocol[Any], settings: KindTable, good: Iterable[bytes]) -> Iterator[str]:
    """The settings have a mark wherever a secret may be, and so have some answers: no reason may repeat the mark."""
    marked = msgspec.structs.replace(settings, url=_MARKED_URL, headers={"X": _MARK})
    for name, body in chain(hostile_answers(_MARK), *(changed_answers(body, _MARK) for body in good)):
        began_s = process_time()
        try:
            parse_answer(protocol, body, marked)
        except PluginFailed as failure:
            yield f"given {name}: {_words_of(failure)}"
        except ProbeFailed as failure:
            if _MARK in failure.reason:
                yield f"given {name}: its reason repeats a part of the settings or the answer"
        if process_time() - began_s > _LONGEST_S:
            yield f"given {name}: the plug-in computed for more than {_LONGEST_S} s"


def _words_of(failure: ProbeFailed) -> str:
    return f"the plug-in {failure.what}" if isinstance(failure, PluginFailed) else failure.reason


def hostile_answers(mark: str) -> Iterator[tuple[str, bytes]]:
    """Answers of no protocol in particular, each with its name; ``mark`` stands where a secret might be."""
    yield "nothing", b""
    yield from ABSURD.items()
    yield from ((f"{value!r} alone", encode(value)) for value in AWKWARD)
    for shape in SHAPES:
        yield f"a list of {shape}, as long as an answer may be", listed(shape, MIB)
    yield "a page of HTML", f"<!doctype html><title>{mark}</title>".encode()
    yield "a text that is not to be repeated", encode(mark)
    yield "errors that are not to be repeated", encode({"error": {"code": -1, "message": mark}, "errors": [mark]})


def changed_answers(good: bytes, mark: str) -> Iterator[tuple[str, bytes]]:
    for at in range(0, len(good), len(good) // 20 + 1):
        yield f"broken off after byte {at}", good[:at]
    try:
        document = json.loads(good)
    except (ValueError, RecursionError):
        return  # of another format
    for place in islice(places(document), _MOST_PLACES):
        yield from _changed_at(document, place, mark)


def _changed_at(document: Any, place: tuple[Any, ...], mark: str) -> Iterator[tuple[str, bytes]]:
    where = "/".join(("", *map(str, place)))
    yield f"{where} left out", encode(without(document, place))
    start, end = encode(replaced(document, place, _PLACE)).split(encode(_PLACE))
    for form in (*map(encode, AWKWARD), *_FORMS, encode(mark), encode({mark: [mark]})):
        yield f"{where} is {form!r}", start + form + end


def listed(shape: str, size: int) -> bytes:
    one = SHAPES[shape]
    return b"[" + b",".join([one] * ((size - 1) // (len(one) + 1))) + b"]"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, found in inner:
        yield (*path, key)
        yield from places(found, (*path, key))


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
