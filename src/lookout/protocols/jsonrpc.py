"""Any JSON-RPC service: one method that is called, and what its result has to be."""

import math
from typing import Annotated, Any, Final

from msgspec import Meta

from lookout.base.setting_types import SECRET, Text, must
from lookout.core.model import Responding
from lookout.protocols.answers import call, result_of
from lookout.protocols.client.request import Request
from lookout.protocols.expectation import ExpectationTable, check_value
from lookout.protocols.protocol import Protocol

_REQUEST_ID: Final = 1


def _is_json(value: Any) -> bool:
    """Whether JSON can say what TOML said: it knows no date and no infinity."""
    match value:
        case dict():
            return all(map(_is_json, value.values()))
        case list() | tuple():
            return all(map(_is_json, value))
        case float():
            return math.isfinite(value)
        case _:
            return isinstance(value, str | int)


class JsonRpcTable(ExpectationTable, frozen=True, kw_only=True):
    method: Text
    params: Annotated[
        tuple[Any, ...] | dict[str, Any],
        SECRET,
        Meta(description="a list or a table"),
        must(_is_json, "has a date, a time, inf or nan in it, which JSON cannot say"),
    ] = ()


JSONRPC: Final = Protocol(
    "jsonrpc",
    Responding,
    JsonRpcTable,
    request=lambda settings: Request(
        "POST", settings.url, settings, call(settings.method, settings.params, _REQUEST_ID)
    ),
    parse=lambda body, settings: check_value(result_of(body, _REQUEST_ID), settings),
)
