"""A source whose protocol is a plug-in's: what the plug-in has to do for a probe it does in a process of its own."""

import asyncio
import errno
import os
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, unquote_to_bytes

import msgspec

from lookout.base.deadline import ends_within
from lookout.base.environment import pick_ordinary
from lookout.base.problem import Problem, run_checks
from lookout.base.setting_types import are_headers
from lookout.base.text import shorten
from lookout.base.url import find_url_mistake
from lookout.core.causes import CAUSES
from lookout.core.model import Answer, Check, Found, Members, Nothing
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.client.access import AccessTable
from lookout.protocols.client.exhaustion import own_fault
from lookout.protocols.client.failure import OwnFault, ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.plugins.process import (
    GROUP,
    LARGEST_REPLY,
    LENGTH_BYTES,
    PlainRequest,
    PluginReply,
    command_line,
    frame,
)
from lookout.protocols.protocol import Protocol
from lookout.protocols.source import Now, Source
from lookout.protocols.tables import KindTable

if TYPE_CHECKING:  # it loads aiohttp, which reading a configuration does without
    from lookout.protocols.client.session import Session

LONGEST_REASON: Final = 80
ENDED: Final = "ended its process"
UNREADABLE: Final = "gave something else than it declares"
_LONGEST_FAULT: Final = 150
_KILLED_WITHIN_S: Final = 1.0
# Where a secret may be, a word need not be long to be one: after a = or a : of an address, and in a header. Elsewhere
# short ones are words that a reason may have in common with a setting.
_LONG_WORD: Final = re.compile(r"[^\s/?&=:@,;]{8,}")
_WORD_OF_URL: Final = re.compile(r"(?<=[=:])[^\s/?&=:@,;]{4,}")
_WORD_OF_HEADER: Final = re.compile(r"\S{4,}")

_Value = TypeVar("_Value")


class PluginFailed(ProbeFailed):
    """The plug-in itself did something wrong."""

    def __init__(self, what: str) -> None:
        super().__init__("plug_in", what)
        self.what = what


@dataclass(frozen=True, slots=True)
class PluginProtocol(Protocol[KindTable]):
    """A protocol of another package, found at ``place``: its declarations are used here, its code runs elsewhere."""

    place: str = ""

    def sources(self, service: str, settings: KindTable, _seen: SeenBroadcasters) -> tuple[Source, ...]:
        return (PluginSource(self, Check(service, settings.chain), settings),)


def guard_checks(settings: KindTable, declared: type[KindTable]) -> Iterator[Problem]:
    """What a plug-in's settings find wrong with themselves; a mistake in their checks is one more problem, and so are
    settings that cannot be made of what is written."""
    if not isinstance(settings, declared):
        yield Problem("kind", "the plug-in's settings cannot be made of these keys")
        return
    try:
        given: Any  # whatever a plug-in calls a problem
        for given in run_checks(settings.validate()):
            match given:
                case Problem(str(key), str(text)):
                    yield Problem(key, tidy_reason(text, settings))
                case _:
                    yield Problem("kind", "the plug-in's own checks give something else than problems")
    except (Exception, SystemExit) as error:  # noqa: BLE001  they may raise anything
        yield Problem("kind", f"the plug-in's own checks raise {type(error).__name__}")


class PluginSource:
    """The process lasts as long as the probe, so that nothing that a plug-in did wrong is left for the next."""

    def __init__(self, protocol: PluginProtocol, check: Check, settings: KindTable) -> None:
        self.name = check.name
        self.checks = (check,)
        self._protocol = protocol
        self._settings = settings

    async def probe(self, session: "Session", _now: Now, /) -> Mapping[Check, Found]:
        async with AsyncExitStack() as running:
            async with _a_turn(session):
                ends_at_s = asyncio.get_running_loop().time() + session.timeout_s
                process = await running.enter_async_context(_a_process(self._protocol, session.timeout_s))
                async with _in_time(ends_at_s, PluginFailed("did not answer in time")):
                    check_usable(await _reply_of(process))
                    given = msgspec.structs.replace(self._settings, ca_file="", proxy="")  # it has no use for them
                    request = read_request(await _ask(process, msgspec.msgpack.encode(given)), self._settings)
            async with _in_time(ends_at_s, ProbeFailed("timeout", "connect or answer")):
                body = await session.fetch(request)
            async with _in_time(ends_at_s, PluginFailed("did not answer in time")):
                reply = await _ask(process, body)
        return {self.checks[0]: read_found(reply, self._protocol.answer, self._settings)}


@asynccontextmanager
async def _a_turn(session: "Session") -> AsyncIterator[None]:
    """Wait for a turn to start a process. Waiting for it is not the service's time; that it does not come is our own
    lack."""
    try:
        async with asyncio.timeout(session.timeout_s):
            await session.starts.acquire()
    except TimeoutError:
        raise OwnFault("processes") from None
    try:
        yield
    finally:
        session.starts.release()


@asynccontextmanager
async def _a_process(protocol: PluginProtocol, limit_s: float) -> AsyncIterator[Process]:
    """A plug-in's process, of which nothing is left afterwards."""
    program = command_line(EntryPoint(protocol.name, protocol.place, GROUP), limit_s)
    try:
        process = await asyncio.create_subprocess_exec(
            *program,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=pick_ordinary(os.environ),
            start_new_session=True,  # it is no business of the terminal, and is killed with all that it started
        )
    except OSError as error:
        fault = OwnFault("threads") if error.errno == errno.EAGAIN else own_fault(error)
        raise fault or PluginFailed("could not be started") from None
    try:
        yield process
    finally:
        if process.returncode is None:  # otherwise its number may be somebody else's
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        await ends_within(process.wait(), _KILLED_WITHIN_S)


@asynccontextmanager
async def _in_time(ends_at_s: float, otherwise: ProbeFailed) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(ends_at_s):
            yield
    except TimeoutError:
        raise otherwise from None


async def _ask(process: Process, question: bytes) -> PluginReply:
    if process.stdin is None:
        raise RuntimeError("a plug-in's process has a standard input")
    with suppress(ConnectionError):  # if it ended, it has no reply either
        process.stdin.write(frame(question))
        await process.stdin.drain()
    return await _reply_of(process)


async def _reply_of(process: Process) -> PluginReply:
    if process.stdout is None:
        raise RuntimeError("a plug-in's process has a standard output")
    try:
        length = int.from_bytes(await process.stdout.readexactly(LENGTH_BYTES))
        if length > LARGEST_REPLY:
            raise PluginFailed("replied at too great a length")
        return decode_reply(await process.stdout.readexactly(length))
    except (asyncio.IncompleteReadError, OSError):
        raise PluginFailed(ENDED) from None


def decode_reply(message: bytes) -> PluginReply:
    """PluginFailed if it is none; a process that ended has an empty one."""
    try:
        return msgspec.msgpack.decode(message, type=PluginReply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise PluginFailed(UNREADABLE if message else ENDED) from None


def check_usable(reply: PluginReply) -> None:
    if reply.word != "usable":
        raise _broken(reply)


def read_request(reply: PluginReply, settings: KindTable) -> Request:
    """What a plug-in asks for. How that is reached, the settings say."""
    if reply.word != "request":
        raise _broken(reply)
    plain = _decode(reply, PlainRequest)
    if find_url_mistake(plain.url) is not None:
        raise PluginFailed("asks for no http:// or https:// address")
    if not are_headers(plain.headers):
        raise PluginFailed("sends headers that HTTP does not allow")
    access = AccessTable(headers=plain.headers, ca_file=settings.ca_file, proxy=settings.proxy)
    return Request(plain.method, plain.url, access, plain.body, expect_code=plain.expect_code)


def read_found(reply: PluginReply, answer: type[Answer], settings: KindTable) -> Found:
    """What a plug-in found, if it is what the plug-in declared; otherwise ProbeFailed."""
    match reply.word:
        case "nothing":
            return Nothing()
        case "failed":
            raise _failure_of(tidy_reason(read_reason(reply), settings))
        case "answer":
            found: Found = _decode(reply, answer)
            if isinstance(found, Members) and found.responding > found.monitored:
                raise PluginFailed(UNREADABLE)
            return found
        case _:
            raise _broken(reply)


def _failure_of(reason: str) -> ProbeFailed:
    """The failure with one of our causes, or as an answer that was not understood."""
    cause, _, detail = reason.partition(": ")
    return ProbeFailed(cause, detail) if cause in CAUSES else ProbeFailed("not_understood", reason)


def read_reason(reply: PluginReply) -> str:
    """Why a probe failed, in the plug-in's own words."""
    return _decode(reply, str)


def tidy_reason(reason: str, settings: KindTable) -> str:
    """The reason that a plug-in gives, as it can be shown: short, of one line, and without anything of its settings,
    each of which may be a secret. Of other spellings only those are found that are common in HTTP."""
    credentials = settings.url.partition("//")[2].partition("/")[0].rpartition("@")[0]
    secrets = (
        *_long_words(msgspec.to_builtins(settings)),
        *_WORD_OF_URL.findall(settings.url),
        *(word for value in settings.headers.values() for word in _WORD_OF_HEADER.findall(value)),
        *([b64encode(unquote_to_bytes(credentials)).decode().rstrip("=")] if credentials else []),
    )
    plain = unquote(reason)
    if any(secret in reason or unquote(secret) in plain for secret in secrets):
        return "for a reason that repeats a setting"
    escaped = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in reason[: LONGEST_REASON + 1])
    return shorten(escaped, LONGEST_REASON) or "without a reason"


def _long_words(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from _LONG_WORD.findall(value)
        case dict():
            yield from (word for each in value.values() for word in _long_words(each))
        case list():
            yield from (word for each in value for word in _long_words(each))


def _broken(reply: PluginReply) -> PluginFailed:
    """Its words may be a plug-in's: the names of its classes."""
    what = _decode(reply, str) if reply.word == "broken" else UNREADABLE
    return PluginFailed(shorten(what, _LONGEST_FAULT) if what.isprintable() else UNREADABLE)


def _decode(reply: PluginReply, kind: type[_Value]) -> _Value:
    try:
        return msgspec.msgpack.decode(reply.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise PluginFailed(UNREADABLE) from None
