"""The conformance kit: whether a protocol of another package is fit for a monitor, which calls it in the same way."""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from lookout.base.text import shorten
from lookout.core.model import Found
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import KindTable
from lookout.protocols.plugins import GROUP, PluginFailed, find_mistake, make_request, parse_answer
from lookout.protocols.source import Protocol


def assert_conforms(place: str, settings: Mapping[str, Any], good: Mapping[bytes, Found]) -> None:
    """AssertionError if the protocol at ``place`` ("package.module:NAME", as the entry point says it) is not fit.

    ``settings`` are the keys of a table of the configuration without ``kind``; ``good`` maps at least one answer to its
    expected result.
    """
    problems = list(dict.fromkeys(_problems(place, settings, good)))
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


def _words_of(failure: ProbeFailed) -> str:
    return f"the plug-in {failure.what}" if isinstance(failure, PluginFailed) else failure.reason
