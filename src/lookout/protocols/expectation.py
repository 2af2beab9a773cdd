"""What a JSON answer has to hold to count, where it says nothing more than that the service answers."""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from lookout.base.setting_types import NOT_EMPTY, SECRET
from lookout.core.model import Responding
from lookout.protocols.answers import open_value
from lookout.protocols.client.failure import ProbeFailed, not_understood
from lookout.protocols.pointer import Pointer, value_at
from lookout.protocols.tables import KindTable

_LONG_NUMBER: Final = re.compile(rb"-?[0-9]{21,}", re.ASCII)


class ExpectationTable(KindTable, frozen=True):
    pointer: Pointer = ""
    expect: Annotated[
        str | int | bool, SECRET, NOT_EMPTY, Meta(description="a text, a whole number, true or false")
    ] = ""

    def __eq__(self, other: object) -> bool:
        """Compare as JSON, where true is not 1: a reload has to notice that one was written in the place of the
        other."""
        return type(self) is type(other) and msgspec.json.encode(self) == msgspec.json.encode(other)

    @property
    def expects_more(self) -> bool:
        """Whether an answer has to hold something."""
        return self.pointer != "" or self.expect != ""


def check_value(document: Any, settings: ExpectationTable) -> Responding:
    """ProbeFailed unless the value at the pointer is the expected one; or is not null, where none is expected. Without
    a pointer, the document is that value."""
    value = value_at(document, settings.pointer)
    if settings.expect != "":
        if _text_of(value) != _text_of(settings.expect):
            raise ProbeFailed("not_expected")
    elif open_value(value) is None:
        raise ProbeFailed("pointer_missing", "null") if settings.pointer else not_understood("a null result")
    return Responding()


def _text_of(value: Any) -> str | None:
    """A text, or a whole number, true, false or null as JSON writes it. Nothing else has one."""
    if type(value) is Raw and _LONG_NUMBER.fullmatch(value):  # too long to be opened, but not to be compared
        return bytes(value).decode()
    match open_value(value):
        case str(text):
            return text
        case None | bool() as word:
            return {None: "null", True: "true", False: "false"}[word]
        case int(number):
            return str(number)
        case _:
            return None
