"""JSON Pointers (RFC 6901): the value that one names in a document."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

from lookout.base.problem import Problem
from lookout.base.setting_types import NOT_EMPTY, ValueRule
from lookout.protocols.answers import open_value
from lookout.protocols.client.failure import ProbeFailed, not_understood

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_ESCAPE_OF_NOTHING: Final = re.compile(r"~(?![01])")


def check_escapes(pointer: str) -> Iterator[Problem]:
    if _ESCAPE_OF_NOTHING.search(pointer):
        yield Problem("", "has a ~ that is not part of ~0 or ~1")


def _check_pointer(pointer: str) -> Iterator[Problem]:
    if pointer and not pointer.startswith("/"):
        yield Problem("", 'has to be a JSON Pointer such as "/status", or "" for none')
    yield from check_escapes(pointer)


Pointer = Annotated[str, NOT_EMPTY, ValueRule(_check_pointer)]


def value_at(document: Any, pointer: str) -> Any:
    """The value that the pointer names; the empty pointer names the document."""
    if (pointer and not pointer.startswith("/")) or _ESCAPE_OF_NOTHING.search(pointer):
        raise not_understood("the pointer is malformed")
    value = document
    for token in pointer.split("/")[1:]:
        value = member(value, token)
    return value


def member(value: Any, token: str) -> Any:
    """What one part of a pointer names in a table or a list."""
    value, name = open_value(value), token.replace("~1", "/").replace("~0", "~")
    if type(value) is dict and name in value:
        return value[name]
    if type(value) is list and _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    raise ProbeFailed("pointer_missing")
