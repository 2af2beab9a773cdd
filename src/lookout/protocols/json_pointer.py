"""An own indexer of any kind: a JSON document, and the path in it to the block number (RFC 6901)."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from lookout.base.problem import Problem
from lookout.core.model import Blocks
from lookout.protocols.answers import count, decimal, decode, open_value, quantity
from lookout.protocols.client.failure import ProbeFailed, not_understood
from lookout.protocols.client.request import Request
from lookout.protocols.protocol import Protocol
from lookout.protocols.tables import KindTable

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_ESCAPE_OF_NOTHING: Final = re.compile(r"~(?![01])")


class JsonTable(KindTable, frozen=True):
    pointer: str = ""

    def checks(self) -> Iterable[Iterable[Problem]]:
        return (self._check_pointer(),)

    def _check_pointer(self) -> Iterator[Problem]:
        if not self.pointer.startswith("/"):
            yield Problem("pointer", 'kind "json" needs a JSON Pointer such as "/status/lastBlock"')
        yield from check_escapes(self.pointer)


def check_escapes(pointer: str) -> Iterator[Problem]:
    if _ESCAPE_OF_NOTHING.search(pointer):
        yield Problem("pointer", "has a ~ that is not part of ~0 or ~1")


def parse_document(body: bytes, pointer: str) -> Blocks:
    return Blocks(_block_number(value_at(decode(body), pointer)))


def value_at(document: Any, pointer: str) -> Any:
    """The value that the pointer names; the empty pointer names the document."""
    if (pointer and not pointer.startswith("/")) or _ESCAPE_OF_NOTHING.search(pointer):
        raise not_understood("the pointer is malformed")
    value = document
    for token in pointer.split("/")[1:]:
        value = _member(open_value(value), token.replace("~1", "/").replace("~0", "~"))
    return value


def _member(value: Any, name: str) -> Any:
    if type(value) is dict and name in value:
        return value[name]
    if type(value) is list and _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    raise ProbeFailed("pointer_missing")


def _block_number(value: Any) -> int:
    """An integer, a string of digits, or 0x and hexadecimal digits."""
    what = "the block number"
    value = open_value(value)
    if type(value) is not str:
        return count(value, what)
    return quantity(value, what) if value[:2] in ("0x", "0X") else decimal(value, what)


JSON: Final = Protocol(
    "json",
    Blocks,
    JsonTable,
    request=lambda settings: Request("GET", settings.url, settings),
    parse=lambda body, settings: parse_document(body, settings.pointer),
)
