"""Services of no particular software: any JSON document (``json``), HTTP answer (``http``) or JSON-RPC method
(``jsonrpc``)."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import Meta

from lookout.base.problem import Problem
from lookout.base.setting_types import NOT_EMPTY, SECRET, Text, ValueRule
from lookout.core.model import Blocks, Responding
from lookout.protocols.answers import call, decode, number, open_value, result_of, value_at
from lookout.protocols.client.failure import ProbeFailed, not_understood
from lookout.protocols.client.request import KindTable, Request
from lookout.protocols.lists import CompleteTable, LinksTable, ListTable
from lookout.protocols.source import Protocol

_REQUEST_ID: Final = 1


def _check_pointer(pointer: str) -> Iterator[Problem]:
    if pointer and not pointer.startswith("/"):
        yield Problem("", 'has to be a JSON Pointer such as "/status", or "" for none')


Pointer = Annotated[str, NOT_EMPTY, ValueRule(_check_pointer)]


class JsonTable(ListTable, frozen=True):
    pointer: Pointer = ""
    """Where the block number is, such as `"/status/lastBlock"`. It is required."""

    def check(self) -> Iterator[Problem]:
        if not self.pointer:
            yield Problem("pointer", 'kind "json" needs a JSON Pointer such as "/status/lastBlock"')
        yield from super().check()

    def check_list(self, complete: CompleteTable) -> Iterator[Problem]:
        yield from complete.check_address()
        yield from complete.check_no_query()

    def check_links(self, _links: LinksTable) -> Iterator[Problem]:
        yield Problem("", 'is for indexers that are asked by GraphQL, not for kind "json"')


def parse_document(body: bytes, pointer: str) -> Blocks:
    return Blocks(number(value_at(decode(body), pointer), "the block number"))


JSON: Final = Protocol(
    "json",
    Blocks,
    JsonTable,
    request=lambda settings: Request("GET", settings.url, settings),
    parse=lambda body, settings: parse_document(body, settings.pointer),
)


class ExpectationTable(KindTable, frozen=True):
    pointer: Pointer = ""
    """Where something other than null has to be, in the body or the `result`."""
    expect: Annotated[
        str | int | bool, SECRET, NOT_EMPTY, Meta(description="a text, a whole number, true or false")
    ] = ""
    """What the value at `pointer`, or the whole body or `result`, has to be; `""` for none."""


def check_value(document: Any, settings: ExpectationTable) -> Responding:
    """ProbeFailed unless the value at the pointer is the expected one; or, without an expected value, is not null.
    Without a pointer, the value is the document."""
    value = value_at(document, settings.pointer)
    if settings.expect != "":
        if _text_of(value) != _text_of(settings.expect):
            raise ProbeFailed("not_expected")
    elif open_value(value) is None:
        raise ProbeFailed("pointer_missing", settings.pointer) if settings.pointer else not_understood("a null result")
    return Responding()


def _text_of(value: Any) -> str | None:
    """A text, or a whole number, true, false or null as in JSON; None for other values."""
    value = open_value(value)
    if type(value) is str:
        return value
    return json.dumps(value) if value is None or type(value) in (bool, int) else None


class HttpTable(ExpectationTable, frozen=True):
    expect_code: Annotated[int, Meta(ge=200, le=599)] = 200
    """The HTTP code that is an answer."""


def parse_answer(body: bytes, settings: HttpTable) -> Responding:
    """The answer need not be JSON if no value is expected."""
    return check_value(decode(body), settings) if settings.pointer or settings.expect != "" else Responding()


HTTP: Final = Protocol(
    "http",
    Responding,
    HttpTable,
    request=lambda settings: Request("GET", settings.url, settings, expect_code=settings.expect_code),
    parse=parse_answer,
)


class JsonRpcTable(ExpectationTable, frozen=True, kw_only=True):
    method: Text
    """The method that is called."""
    params: Annotated[tuple[Any, ...] | dict[str, Any], SECRET, Meta(description="a list or a table")] = ()
    """Its parameters, without dates, times, `inf` and `nan`."""


JSONRPC: Final = Protocol(
    "jsonrpc",
    Responding,
    JsonRpcTable,
    request=lambda settings: Request(
        "POST", settings.url, settings, call(settings.method, settings.params, _REQUEST_ID)
    ),
    parse=lambda body, settings: check_value(result_of(body, _REQUEST_ID), settings),
)
