"""Reads an answer's JSON strictly: any deviation from the expected form is a failure.

Third parties choose these bytes, and parsing blocks the event loop. A number such as 1e308 takes a thousand times as
long to convert as to skip. So values are converted on demand: a table or a list holds its values as undecoded bytes
(``Raw``), and a function here opens only the value it was given.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from lookout.core.model import LARGEST_METRIC
from lookout.protocols.client.failure import TOO_MANY_RESULTS, ProbeFailed, TooMuchFailed, not_understood

# Twice the values in a node's list of peers of the largest allowed size.
MOST_VALUES: Final = 30_000

_WHOLE_ANSWER: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | str | int | float | bool | None)
_ONE_LEVEL: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw] | str | bool | None)
_NUMBER_START: Final = frozenset(b"-0123456789")
_WHOLE_NUMBER: Final = re.compile(rb"-?[0-9]{1,20}", re.ASCII)
_DECIMAL: Final = re.compile(r"[0-9]{1,16}", re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]{1,64}", re.ASCII)
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_BYTES: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)


def decode(body: bytes) -> Any:
    """Any JSON value, with the values inside tables and lists unopened. NaN is not JSON."""
    # At least the number of values: all but the first follow one of these characters.
    if body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_VALUES:
        raise TooMuchFailed("not_understood", "too many values")
    return _decode(_WHOLE_ANSWER, body)


def open_value(value: Any) -> Any:
    """The value, with the values inside a table or a list unopened.

    A fraction, or a whole number of more than 20 digits, becomes NaN, which no reader here accepts as a number.
    """
    if type(value) is not Raw:
        return value
    if memoryview(value)[0] not in _NUMBER_START:
        return _decode(_ONE_LEVEL, value)
    return int(bytes(value)) if _WHOLE_NUMBER.fullmatch(value) else math.nan


def table(value: Any, what: str) -> dict[str, Any]:
    value = open_value(value)
    if type(value) is dict:
        return value
    raise not_understood(what)


def entries(value: Any, what: str) -> list[Any]:
    value = open_value(value)
    if type(value) is list:
        return value
    raise not_understood(what)


def count(value: Any, what: str) -> int:
    """A whole number from 0 to 2^53 - 1 (R10); true and 1.0 are not."""
    value = open_value(value)
    if type(value) is int and 0 <= value <= LARGEST_METRIC:
        return value
    raise not_understood(what)


def decimal(value: Any, what: str) -> int:
    """A count written as a string of digits."""
    value = open_value(value)
    if type(value) is str and _DECIMAL.fullmatch(value):
        return count(int(value), what)
    raise not_understood(what)


def quantity(value: Any, what: str) -> int:
    """A count written as 0x and hexadecimal digits."""
    value = open_value(value)
    if type(value) is str and _HEX.fullmatch(value):
        return count(int(value, 16), what)
    raise not_understood(what)


def number(value: Any, what: str) -> int:
    """A count written as a number, as a string of digits, or as 0x and hexadecimal digits."""
    value = open_value(value)
    if type(value) is not str:
        return count(value, what)
    return quantity(value, what) if value[:2] in ("0x", "0X") else decimal(value, what)


def hexadecimal(value: Any, length: int, what: str) -> str:
    """``length`` bytes, written as 0x and hexadecimal digits; in lower case."""
    value = open_value(value)
    if type(value) is str and len(value) == 2 + 2 * length and _BYTES.fullmatch(value):
        return value.lower()
    raise not_understood(what)


def value_at(document: Any, pointer: str) -> Any:
    """The value that a JSON Pointer (RFC 6901) names; the empty pointer names the document."""
    value = document
    for token in pointer.split("/")[1:]:
        value = member(value, token, pointer)
    return value


def member(value: Any, token: str, pointer: str) -> Any:
    """The value that one part of a pointer names in a table or a list."""
    value, name = open_value(value), token.replace("~1", "/").replace("~0", "~")
    if type(value) is dict and name in value:
        return value[name]
    if type(value) is list and _INDEX.fullmatch(name) and int(name) < len(value):
        return value[int(name)]
    raise ProbeFailed("pointer_missing", pointer)


def call(method: str, params: Sequence[Any] | Mapping[str, Any], request_id: int) -> bytes:
    """A JSON-RPC request. ``params`` is always sent: a ppoi node asked without it never answers."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params, "id": request_id})


def result_of(body: bytes, request_id: int) -> Any:
    answer = table(decode(body), "no JSON-RPC answer")
    error = open_value(answer.get("error"))
    if error is not None:
        # The code helps and can hold no secret; the message may repeat the request.
        code = open_value(error.get("code")) if type(error) is dict else None
        code = code if type(code) is int and abs(code) < 2**31 else None
        raise ProbeFailed("rate_limited" if code in (429, TOO_MANY_RESULTS) else "jsonrpc_error", code=code)
    if "result" not in answer:
        raise not_understood("no JSON-RPC answer")
    answered_id = open_value(answer.get("id"))
    if type(answered_id) is not int or answered_id != request_id:
        raise not_understood("an answer to another request")
    return answer["result"]


def query(graphql: str, **variables: int | str) -> bytes:
    return msgspec.json.encode({"query": graphql} | ({"variables": variables} if variables else {}))


def graphql_answer(body: bytes) -> dict[str, Any]:
    """The data of a GraphQL answer. An answer with errors has failed, even if it also has data."""
    answer = table(decode(body), "no GraphQL answer")
    if open_value(answer.get("errors")):
        raise ProbeFailed("graphql_errors")
    return table(answer.get("data"), "no GraphQL answer")


def _decode(decoder: msgspec.json.Decoder[Any], value: bytes | Raw) -> Any:
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        begin = bytes(memoryview(value)[:64]).lstrip()
        what = "empty" if not begin else "HTML or XML" if begin.startswith(b"<") else ""  # none of its text
        raise ProbeFailed("not_json", what) from None
    except RecursionError:
        raise not_understood("nested too deeply") from None
