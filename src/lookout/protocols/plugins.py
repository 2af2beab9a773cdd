"""Protocols of other packages: entry points in the group ``lookout.protocols``, whose name is the ``kind`` and whose
value is a ``Protocol``. The monitor checks what their code returns: an exception or a value of another type is a failed
probe with the cause ``plug_in``."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from traceback import format_tb
from typing import TYPE_CHECKING, Final, get_args
from urllib.parse import unquote

import msgspec
from msgspec.structs import asdict

from lookout.base.logger import get_logger
from lookout.base.problem import Problem
from lookout.base.text import clean
from lookout.core.causes import CAUSES
from lookout.core.model import Answer, Check, Failed, Found, Members, Nothing
from lookout.protocols.client.failure import ProbeFailed, own_fault
from lookout.protocols.client.request import AccessTable, KindTable, Request
from lookout.protocols.source import Now, Protocol, Source

# Modules that only plug-ins need are imported where they are used.
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from lookout.protocols.client.session import Session

GROUP: Final = "lookout.protocols"
_LONGEST_DETAIL: Final = 80
# Parts of an address or a header that may be a secret, and of any other setting.
_SHORT_SECRET: Final = re.compile(r"(?<=[=:\s])[^\s/?&=:@,;]{4,}")
_LONG_SECRET: Final = re.compile(r"[^\s/?&=:@,;'{}]{8,}")
_FRAMES: Final = 10  # logged of a traceback, the innermost

log = get_logger()


class PluginError(Exception):
    """No package provides a kind, or none that can be used. The text continues a sentence about the kind."""


class PluginFailed(ProbeFailed):
    def __init__(self, what: str) -> None:
        super().__init__("plug_in", what)
        self.what = clean(what)


class PluginProtocol(Protocol[KindTable]):
    def sources(self, service: str, settings: KindTable) -> tuple[Source, ...]:
        return (PluginSource(self, Check(service, settings.chain), settings),)


class PluginSource:
    """Probes for a plug-in, and logs every fault of it once."""

    def __init__(self, protocol: PluginProtocol, check: Check, settings: KindTable) -> None:
        self.name = check.name
        self.checks = (check,)
        self._protocol = protocol
        self._settings = settings
        self._logged = ""

    async def probe(self, session: "Session", _now: Now, /) -> Mapping[Check, Found]:
        try:
            body = await session.fetch(make_request(self._protocol, self._settings))
            return {self.checks[0]: parse_answer(self._protocol, body, self._settings)}
        except PluginFailed as failure:
            self._log(failure)
            raise

    def _log(self, failure: PluginFailed) -> None:
        """Log the place, without the error's text, which may hold a secret."""
        where = "" if failure.__cause__ is None else "".join(format_tb(failure.__cause__.__traceback__, -_FRAMES))
        if where + failure.what != self._logged:
            self._logged = where + failure.what
            log.error("a plug-in did something wrong", source=self.name, what=failure.what, traceback=where)


def make_request(protocol: Protocol[KindTable], settings: KindTable) -> Request:
    """The plug-in's request, with the access of the settings. ProbeFailed if the plug-in is at fault."""
    with _guarding(settings):
        request = protocol.request(settings)
        access = AccessTable(headers=request.access.headers, ca_file=settings.ca_file, proxy=settings.proxy)
        return replace(request, access=access)


def parse_answer(protocol: Protocol[KindTable], body: bytes, settings: KindTable) -> Found:
    with _guarding(settings):
        found = protocol.parse(body, settings)
        if isinstance(found, Nothing):
            return Nothing()
        if isinstance(found, Failed):
            raise ProbeFailed(found.error)
        return _checked(found, protocol.answer)


@contextmanager
def _guarding(settings: KindTable) -> Iterator[None]:
    """Raise any exception of a plug-in as ProbeFailed, with a cause that can be shown (M16)."""
    try:
        yield
    except PluginFailed:
        raise
    except ProbeFailed as failure:
        cause, _, detail = failure.reason.partition(": ")
        if cause not in CAUSES or not _can_be_shown(detail, settings):
            what = "gave a reason that is not a known cause with a short detail in its own words"
            raise PluginFailed(what) from failure
        raise
    except (Exception, SystemExit) as error:  # any exception here is the plug-in's
        raise own_fault(error) or PluginFailed(f"raised {type(error).__name__}") from error


def _checked(found: object, declared: type[Answer]) -> Answer:
    """The answer, if all its parts have the declared types, which msgspec does not check in a constructor."""
    if type(found) is not declared:
        raise PluginFailed(f"gave a {type(found).__name__} and no {declared.__name__}")
    try:
        answer = msgspec.convert(msgspec.to_builtins(found), declared)
    except (msgspec.MsgspecError, TypeError):
        raise PluginFailed(f"gave a {declared.__name__} with something else in it than it declares") from None
    if isinstance(answer, Members) and answer.responding > answer.monitored:
        raise PluginFailed("gave more responding members than monitored ones")
    return answer


def _can_be_shown(detail: str, settings: KindTable) -> bool:
    """Whether the detail is short, and repeats no setting that may be a secret."""
    secrets = (
        *_SHORT_SECRET.findall(" ".join((settings.url, *settings.headers.values()))),
        *_LONG_SECRET.findall(" ".join(map(str, asdict(settings).values()))),
    )
    return len(detail) <= _LONGEST_DETAIL and not any(unquote(secret) in unquote(detail) for secret in secrets)


def check_settings(settings: KindTable) -> Iterator[Problem]:
    """The problems that a plug-in's settings report. A check that raises is one too: its text may hold a secret."""
    try:
        yield from settings.check()
    except (Exception, SystemExit) as error:  # noqa: BLE001  it may raise anything
        yield Problem("kind", f"the plug-in's own check raises {type(error).__name__}")


def load_protocol(kind: str) -> PluginProtocol:
    """Import the protocol of this kind. PluginError if no installed package has a usable one."""
    entry = _find_entry(kind)
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  an import may raise anything, and its text be a secret
        what = f'raises {type(error).__name__} when it is imported; python -c "import {entry.module}" shows where'
        raise PluginError(f"{_distribution(entry)}, which provides it, {what}") from None
    mistake = find_mistake(found, entry.value)
    if mistake is not None:
        raise PluginError(f"{_distribution(entry)}, which provides it, {mistake}")
    return PluginProtocol(kind, found.answer, found.settings, found.request, found.parse)


def _find_entry(kind: str) -> "EntryPoint":
    from importlib.metadata import entry_points

    match tuple(entry_points(group=GROUP, name=kind)):
        case (entry,):
            return entry
        case ():
            raise PluginError("no installed package provides it")
        case several:
            raise PluginError(f"{' and '.join(sorted(map(_distribution, several)))} provide it: uninstall all but one")


def find_mistake(found: object, place: str) -> str | None:
    """Why the value at an entry point is no protocol; the text ends a sentence that begins with the package."""
    if not isinstance(found, Protocol):
        return f"has a {type(found).__name__} and no Protocol at {place}"
    if found.answer not in get_args(Answer):
        return "does not say which answer it gives"
    return None if issubclass(found.settings, KindTable) else "has settings that are not a KindTable"


def _distribution(entry: "EntryPoint") -> str:
    return "an unnamed package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
