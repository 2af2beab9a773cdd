"""The conformance kit: whether a protocol, built in or of another package, is fit for a monitor.

It calls the protocol as a monitor does, and gives it good answers, answers that nobody should send, and good ones with
something in them changed. The same are tried each time.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from itertools import chain, islice
from time import process_time
from typing import Any, Final

import msgspec

from lookout.base.text import shorten
from lookout.core.model import Found
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.corpus import changed_answers, hostile_answers
from lookout.protocols.plugins import GROUP, PluginFailed, find_mistake, make_request, parse_answer
from lookout.protocols.protocol import Protocol
from lookout.protocols.tables import KindTable

_LONGEST_S: Final = 0.5  # of computing, in which no other source is asked
_MOST_PROBLEMS: Final = 10
_MARK: Final = "canary-7q5"
_MARKED_URL: Final = f"https://{_MARK}:{_MARK}@{_MARK}.example/{_MARK}?key={_MARK}"


def assert_conforms(place: str, settings: Mapping[str, Any], good: Mapping[bytes, Found]) -> None:
    """AssertionError if the protocol at ``place`` ("package.module:NAME", as the entry point says it) is not fit.

    ``settings`` are the keys of a table of the configuration but for ``kind``; ``good`` has at least one answer, with
    what is to be found in it.
    """
    problems = list(dict.fromkeys(islice(_problems(place, settings, good), _MOST_PROBLEMS)))
    if problems:
        more = ["there may be more"] if len(problems) == _MOST_PROBLEMS else []
        raise AssertionError("\n- ".join([f"{place} does not conform:", *problems, *more]))


def _problems(place: str, settings: Mapping[str, Any], good: Mapping[bytes, Found]) -> Iterator[str]:
    if not good:
        yield "no good answer was given to try"
        return
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
    for body in (body for body in good for _ in range(2)):
        given = f"given {shorten(repr(body), 60)}"
        try:
            found = parse_answer(protocol, body, settings)
        except ProbeFailed as failure:
            yield f"{given}: {_words_of(failure)}"
        else:
            if found != good[body]:
                yield f"{given}: it found {found} and not {good[body]}"


def _problems_of_hostile(protocol: Protocol[Any], settings: KindTable, good: Iterable[bytes]) -> Iterator[str]:
    """The settings have a mark wherever a secret may be, and some of the answers have it too: no reason may repeat the
    mark."""
    marked = msgspec.structs.replace(settings, url=_MARKED_URL, headers={"X": _MARK})
    for name, body in chain(hostile_answers(_MARK), *(changed_answers(body, _MARK) for body in good)):
        began_s = process_time()
        try:
            parse_answer(protocol, body, marked)
        except PluginFailed as failure:
            yield f"given {name}: {_words_of(failure)}"
        except ProbeFailed:
            pass
        if process_time() - began_s > _LONGEST_S:
            yield f"given {name}: the plug-in computed for more than {_LONGEST_S} s"


def _words_of(failure: ProbeFailed) -> str:
    return f"the plug-in {failure.what}" if isinstance(failure, PluginFailed) else failure.reason
