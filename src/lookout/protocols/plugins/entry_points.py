"""Finds the protocols of other packages: entry points in the group ``lookout.protocols``, of which the name is the
``kind`` and the value a ``Protocol``."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from msgspec.structs import fields

from lookout.base.environment import pick_ordinary
from lookout.protocols.plugins.process import GROUP, LENGTH_BYTES, NotUsableError, command_line, describe_error, load
from lookout.protocols.plugins.source import PluginFailed, PluginProtocol, check_usable, decode_reply
from lookout.protocols.protocol import AnyProtocol, Protocol
from lookout.protocols.tables import KindTable

_IMPORT_S: Final = 8.0  # less than a reload has to read the file


class PluginError(Exception):
    """A kind that no package provides, or none that can be used. The text continues a sentence about the kind."""


def find_usable(kind: str) -> EntryPoint:
    """Where an installed package has the protocol of this kind. PluginError if it cannot be imported; that is tried in
    a process of its own."""
    try:
        provided = entry_points(group=GROUP)
    except Exception as error:  # noqa: BLE001  it raises whatever its parser does
        name = type(error).__name__
        raise PluginError(f"what the installed packages provide cannot be read ({name}): one is damaged") from None
    match tuple(provided.select(name=kind)):
        case (entry,):
            with _explain(entry):
                _import_elsewhere(entry)
            return entry
        case ():
            others = ", ".join(sorted(provided.names))
            raise PluginError("no installed package provides it" + (f", but {others}" if others else ""))
        case several:
            raise PluginError(f"{' and '.join(sorted(map(_distribution, several)))} provide it: uninstall all but one")


def load_protocol(entry: EntryPoint, declared: Iterable[AnyProtocol]) -> PluginProtocol:
    """The protocol of a package that is imported now and was not before. PluginError if it cannot be used beside the
    declared ones."""
    with _explain(entry):
        protocol = load(entry)
        _check_source(protocol)
        _check_keys(protocol, declared)
    return PluginProtocol(
        protocol.name, protocol.answer, protocol.settings, protocol.request, protocol.parse, place=entry.value
    )


@contextmanager
def _explain(entry: EntryPoint) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001  an import may raise anything
        raise PluginError(f"{_distribution(entry)}, which provides it, {describe_error(error, entry)}") from None


def _import_elsewhere(entry: EntryPoint) -> None:
    """Import it in a process of its own first: if it hangs, eats memory or ends the interpreter, it does it there."""
    try:
        done = subprocess.run(  # noqa: S603  our own program
            command_line(entry, _IMPORT_S),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=pick_ordinary(os.environ),
            start_new_session=True,
            timeout=_IMPORT_S,
            check=False,
        )
        check_usable(decode_reply(done.stdout[LENGTH_BYTES:]))
    except subprocess.TimeoutExpired:
        raise NotUsableError(f"is not imported within {_IMPORT_S:g} s") from None
    except OSError as error:
        raise NotUsableError(f"could not be tried: {error.strerror}") from None
    except PluginFailed as failure:
        raise NotUsableError(failure.what) from None


def _check_source(protocol: Protocol[Any]) -> None:
    """It would run in the monitor."""
    if protocol.source is not Protocol.__dataclass_fields__["source"].default:
        raise NotUsableError("has a source of its own, which only a built-in protocol can have")


def _check_keys(protocol: Protocol[Any], declared: Iterable[AnyProtocol]) -> None:
    """All kinds share one table, so a key is of one type in all of them, and has one default."""
    own = _own_keys(protocol.settings)
    for other in declared:
        if isinstance(other, Protocol):
            for name, key in _own_keys(other.settings).items():
                if own.get(name, key) != key:
                    raise NotUsableError(f"has a key {name} of another type or default than that of kind {other.name}")


def _own_keys(settings: type[KindTable]) -> dict[str, tuple[object, object]]:
    shared = KindTable.__struct_fields__
    return {each.name: (each.type, each.default) for each in fields(settings) if each.name not in shared}


def _distribution(entry: EntryPoint) -> str:
    if entry.dist is None or not entry.dist.name:  # what is installed may be damaged
        return "an unnamed package"
    return f"{entry.dist.name} {entry.dist.version}"
