"""An own indexer of any kind: a JSON document, and the path in it to the block number (RFC 6901)."""

from collections.abc import Iterator
from typing import Any, Final

from lookout.base.problem import Problem
from lookout.core.model import Blocks
from lookout.protocols.answers import count, decimal, decode, open_value, quantity
from lookout.protocols.client.request import Request
from lookout.protocols.lists import CompleteTable, ListTable
from lookout.protocols.pointer import Pointer, value_at
from lookout.protocols.protocol import Protocol


class JsonTable(ListTable, frozen=True):
    pointer: Pointer = ""

    def check(self) -> Iterator[Problem]:
        if not self.pointer:
            yield Problem("pointer", 'kind "json" needs a JSON Pointer such as "/status/lastBlock"')
        yield from super().check()

    def check_list(self, complete: CompleteTable) -> Iterator[Problem]:
        yield from complete.check_address()
        yield from complete.check_no_query()


def parse_document(body: bytes, pointer: str) -> Blocks:
    return Blocks(_block_number(value_at(decode(body), pointer)))


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
