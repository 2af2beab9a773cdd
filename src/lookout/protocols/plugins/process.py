"""The process in which a plug-in makes its request and reads its answer.

It is started for one probe, with what any program needs of the environment, and knows the settings of that source and
nothing else. It answers each question on its standard input by a reply on its standard output: first, without being
asked, whether the plug-in can be used; then the request for some settings; then, for each body, what is in it. It ends
when there are no more questions. The limits are for a plug-in that has a mistake in it: one that is malicious must not
be installed.
"""

import math
import os
import resource
import signal
import sys
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, get_args

import msgspec
from msgspec import Meta, Raw, Struct

from lookout.base.memory import hide_memory
from lookout.core.model import Answer, Failed, Nothing
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import MIB, Request
from lookout.protocols.protocol import Protocol
from lookout.protocols.tables import KindTable

GROUP: Final = "lookout.protocols"
LARGEST_REPLY: Final = 2 * MIB
LENGTH_BYTES: Final = 4
_LIMITS: Final = {
    resource.RLIMIT_AS: 1024 * MIB,
    resource.RLIMIT_DATA: 256 * MIB,
    resource.RLIMIT_NOFILE: 64,
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_CORE: 0,
}
PATIENCE_S: Final = 1  # it ends itself so long after who started it should have ended it
_PROGRAM: Final = "from lookout.protocols.plugins.process import main; main()"


class PluginReply(Struct, frozen=True, array_like=True):
    """What the process of a plug-in says. ``broken`` is what the plug-in itself did wrong, in a few words; ``failed``
    the reason of its ProbeFailed."""

    word: Literal["usable", "request", "answer", "nothing", "failed", "broken"]
    value: Raw = Raw(b"\xc0")  # nothing, in MessagePack


class PlainRequest(Struct, frozen=True):
    """A plug-in's request on its way to the monitor, which alone decides how it is sent."""

    method: Literal["GET", "POST"]
    url: str
    headers: dict[str, str]
    body: bytes | None
    expect_code: Annotated[int, Meta(ge=200, le=599)]


def command_line(entry: EntryPoint, limit_s: float) -> tuple[str, ...]:
    """Started with -P, it imports nothing from where it happens to be; with -B, it writes nothing there."""
    return (sys.executable, "-P", "-B", "-c", _PROGRAM, entry.name, entry.value, str(limit_s))


def main() -> None:
    kind, value, limit_s = sys.argv[1:]
    _be_killed_first()
    hide_memory()
    questions, replies = _take_pipes()
    try:
        _limit_resources()
        _answer(EntryPoint(kind, value, GROUP), questions, replies, math.ceil(float(limit_s)) + PATIENCE_S)
    finally:
        os._exit(0)  # without waiting for the plug-in's threads


def _answer(entry: EntryPoint, questions: BinaryIO, replies: BinaryIO, lasts_s: int) -> None:
    signal.alarm(lasts_s)
    try:
        protocol = load(entry)
    except BaseException as error:  # noqa: BLE001  whatever it is, it is the plug-in's
        _write(replies, broken(describe_error(error, entry)))
        return
    _write(replies, PluginReply("usable"))
    settings: KindTable | None = None
    while (question := _read(questions)) is not None:
        signal.alarm(lasts_s)
        if settings is None:
            settings = msgspec.msgpack.decode(question, type=protocol.settings)
            _write(replies, make_request(protocol, settings))
        else:
            _write(replies, parse(protocol, question, settings))
        signal.alarm(0)


class NotUsableError(Exception):
    """What an entry point leads to is no protocol that can be used; the text ends a sentence that begins with it."""


def load(entry: EntryPoint) -> Protocol[Any]:
    """Import a protocol. NotUsableError if it is none, or any error of the plug-in's own."""
    found = entry.load()
    if not isinstance(found, Protocol):
        raise NotUsableError(f"has a {type(found).__name__} and no Protocol at {entry.value}")
    if found.name != entry.name:
        raise NotUsableError(f"has a Protocol of another name at {entry.value}")
    if found.answer not in get_args(Answer):
        raise NotUsableError("does not say which answer it gives")
    settings: object = found.settings
    if not (isinstance(settings, type) and issubclass(settings, KindTable)):
        raise NotUsableError("has settings that are no KindTable")
    return found


def describe_error(error: BaseException, entry: EntryPoint) -> str:
    """Why it was not loaded: never the error's text, which may be anything."""
    if isinstance(error, NotUsableError):
        return str(error)
    module = entry.value.partition(":")[0]
    return f'raises {type(error).__name__} when it is imported; python -c "import {module}" shows where'


def make_request(protocol: Protocol[Any], settings: KindTable) -> PluginReply:
    try:
        request: object = protocol.request(settings)
        if not isinstance(request, Request):
            return broken(f"gave a {type(request).__name__} and no Request")
        headers = dict(request.access.headers)
        plain = PlainRequest(request.method, request.url, headers, request.body, request.expect_code)
        return PluginReply("request", Raw(msgspec.msgpack.encode(plain)))
    except BaseException as error:  # noqa: BLE001  it may raise anything
        return broken(f"raised {type(error).__name__}")


def parse(protocol: Protocol[Any], body: bytes, settings: KindTable) -> PluginReply:
    try:
        return _say(protocol.parse(body, settings), protocol.answer)
    except ProbeFailed as failure:
        return _failed(failure.reason)
    except BaseException as error:  # noqa: BLE001  it may raise anything
        return broken(f"raised {type(error).__name__}")


def _say(found: object, answer: type[Answer]) -> PluginReply:
    match found:
        case Nothing():
            return PluginReply("nothing")
        case Failed(error):
            return _failed(error)
        case _ if type(found) is answer:
            return PluginReply("answer", Raw(msgspec.msgpack.encode(found)))
        case _:
            return broken(f"gave a {type(found).__name__} and no {answer.__name__}")


def _failed(reason: object) -> PluginReply:
    try:
        return PluginReply("failed", Raw(msgspec.msgpack.encode(reason)))
    except (TypeError, UnicodeEncodeError):
        return broken("gave a reason that is no text")


def broken(what: str) -> PluginReply:
    return PluginReply("broken", Raw(msgspec.msgpack.encode(what.encode(errors="replace").decode())))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output. The plug-in gets nothing in their place, and may read and print what it likes."""
    questions, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return questions, replies


def _be_killed_first() -> None:
    """If the machine runs out of memory, this process ends, and not the monitor."""
    with suppress(OSError):  # not on Linux, or not allowed
        Path("/proc/self/oom_score_adj").write_text("1000")


def _limit_resources() -> None:
    for what, most in _LIMITS.items():
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def frame(message: bytes) -> bytes:
    return len(message).to_bytes(LENGTH_BYTES) + message


def _read(questions: BinaryIO) -> bytes | None:
    length = questions.read(LENGTH_BYTES)
    return questions.read(int.from_bytes(length)) if length else None


def _write(replies: BinaryIO, reply: PluginReply) -> None:
    replies.write(frame(msgspec.msgpack.encode(reply)))
    replies.flush()
