"""The conformance kit: whether a protocol, built in or of another package, is fit for a monitor.

It runs in the process that a plug-in has in a monitor, with the same limits, and gives it good answers, answers that
nobody should send, and good ones with something in them changed. The same are tried each time.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint
from itertools import chain, islice
from typing import IO, Any, Final, NamedTuple, Self, TypeVar

import msgspec

from lookout.base.environment import pick_ordinary
from lookout.base.problem import run_checks
from lookout.base.text import shorten
from lookout.core.model import Found
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.corpus import changed_answers, hostile_answers
from lookout.protocols.plugins.process import (
    GROUP,
    LENGTH_BYTES,
    PATIENCE_S,
    NotUsableError,
    PluginReply,
    broken,
    command_line,
    frame,
    load,
)
from lookout.protocols.plugins.source import (
    ENDED,
    LONGEST_REASON,
    PluginFailed,
    decode_reply,
    read_found,
    read_reason,
    read_request,
)
from lookout.protocols.protocol import Protocol
from lookout.protocols.tables import KindTable

_LIMIT_S: Final = 1
_MOST_PROBLEMS: Final = 10
_MARK: Final = "canary-7q5"
_MARKED_URL: Final = f"https://{_MARK}:{_MARK}@{_MARK}.example/{_MARK}?key={_MARK}"

_Name = TypeVar("_Name")


class _Tried(NamedTuple):
    place: str
    protocol: Protocol[Any]
    settings: KindTable


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
    try:
        protocol = load(EntryPoint(_name_at(place), place, GROUP))
        table = msgspec.convert({"chain": None, **settings, "kind": protocol.name}, protocol.settings)
    except NotUsableError as error:
        yield f"it {error}"
        return
    except msgspec.ValidationError as error:
        yield f"its settings refuse those that were given: {error}"
        return
    yield from (f"its settings refuse those that were given: {each}" for each in run_checks(table.validate()))
    tried = _Tried(place, protocol, table)
    request_problems = list(_problems_of_request(tried))
    yield from request_problems
    if not request_problems:
        yield from _problems_of_good(tried, good)
        yield from _problems_of_hostile(tried, good)


def _name_at(place: str) -> str:
    found = EntryPoint("", place, GROUP).load()
    return found.name if isinstance(found, Protocol) else ""


def _problems_of_request(tried: _Tried) -> Iterator[str]:
    marked = msgspec.structs.replace(tried.settings, headers={"X-Test": "kept"})
    try:
        with _Process(tried, marked) as process:
            if "kept" not in read_request(process.request, marked).access.headers.values():
                yield "its request leaves out the headers of the settings"
    except ProbeFailed as failure:
        yield f"for its request {_words_of(failure)}"


def _problems_of_good(tried: _Tried, good: Mapping[bytes, Found]) -> Iterator[str]:
    twice = [(body, body) for body in good for _ in range(2)]
    for body, reply in _replies(tried, twice):
        given = f"given {shorten(repr(body), 60)}"
        try:
            found = read_found(reply, tried.protocol.answer, tried.settings)
        except ProbeFailed as failure:
            yield f"{given}: {_words_of(failure)}"
        else:
            if found != good[body]:
                yield f"{given}: it found {found} and not {good[body]}"


def _problems_of_hostile(tried: _Tried, good: Iterable[bytes]) -> Iterator[str]:
    """Its settings have a mark wherever a secret may be, and some of the answers have it, too."""
    marked = tried._replace(settings=msgspec.structs.replace(tried.settings, url=_MARKED_URL, headers={"X": _MARK}))
    cases = chain(hostile_answers(_MARK), *(changed_answers(body, _MARK) for body in good))
    for name, reply in _replies(marked, cases):
        if (problem := _problem_of(reply, marked)) is not None:
            yield f"given {name}: {problem}"


def _problem_of(reply: PluginReply, tried: _Tried) -> str | None:
    try:
        if reply.word != "failed":
            read_found(reply, tried.protocol.answer, tried.settings)
            return None
        reason = read_reason(reply)
    except PluginFailed as failure:
        return _words_of(failure)
    if _MARK in reason:
        return "its reason repeats a part of the address, of a header or of the answer"
    if not 0 < len(reason) <= LONGEST_REASON or not reason.isprintable():
        return f"its reason is not one line of 1 to {LONGEST_REASON} characters"
    return None


def _replies(tried: _Tried, cases: Iterable[tuple[_Name, bytes]]) -> Iterator[tuple[_Name, PluginReply]]:
    """What the plug-in replies to each. One that ends its process gets another."""
    left = iter(cases)
    for first in left:
        with _Process(tried, tried.settings) as process:
            for name, body in chain([first], left):
                yield name, process.ask(body)
                if process.has_ended:
                    break


class _Process:
    """The process of a plug-in, without a time limit on this side: it ends itself."""

    def __init__(self, tried: _Tried, settings: KindTable) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own program
            command_line(EntryPoint(tried.protocol.name, tried.place, GROUP), _LIMIT_S),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # What a test can import, the process can: a package need not be installed to be tested.
            env={**pick_ordinary(os.environ), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._questions, self._replies = _pipes_of(self._process)
        self.has_ended = False
        self.request = self._reply()
        if self.request.word == "usable":
            self.request = self.ask(msgspec.msgpack.encode(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, question: bytes) -> PluginReply:
        with suppress(BrokenPipeError):  # if it ended, it has no reply either
            self._questions.write(frame(question))
            self._questions.flush()
        return self._reply()

    def _reply(self) -> PluginReply:
        length = self._replies.read(LENGTH_BYTES)
        if length:
            return decode_reply(self._replies.read(int.from_bytes(length)))
        self.has_ended = True
        is_late = self._process.wait() == -signal.SIGALRM
        return broken(f"took longer than {_LIMIT_S + PATIENCE_S} s" if is_late else ENDED)


def _pipes_of(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("it was started with pipes")
    return process.stdin, process.stdout


def _words_of(failure: ProbeFailed) -> str:
    return f"the plug-in {failure.what}" if isinstance(failure, PluginFailed) else failure.reason
