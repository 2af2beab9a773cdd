"""Reading an answer's JSON strictly: what is not exactly as expected is not understood."""

import re
from typing import Any, Final

import msgspec

from lookout.core.model import LARGEST_METRIC
from lookout.sources.failure import ProbeFailed, not_understood

_DECIMAL: Final = re.compile(r"[0-9]{1,16}", re.ASCII)
_HEX: Final = re.compile(r"0[xX][0-9a-fA-F]{1,64}", re.ASCII)


def decode(body: bytes) -> Any:
    """Any JSON value; NaN, numbers that no float holds and the like are not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProbeFailed("not JSON") from None
    except RecursionError:
        raise not_understood("nested too deeply") from None


def table(value: Any, what: str) -> dict[str, Any]:
    if type(value) is dict:
        return value
    raise not_understood(what)


def entries(value: Any, what: str) -> list[Any]:
    if type(value) is list:
        return value
    raise not_understood(what)


def count(value: Any, what: str) -> int:
    """A whole number from 0 to 2^53 - 1 (R10); true and 1.0 are none."""
    if type(value) is int and 0 <= value <= LARGEST_METRIC:
        return value
    raise not_understood(what)


def decimal(value: Any, what: str) -> int:
    """A count written as a string of digits."""
    if type(value) is str and _DECIMAL.fullmatch(value):
        return count(int(value), what)
    raise not_understood(what)


def quantity(value: Any, what: str) -> int:
    """A count written as 0x and hexadecimal digits."""
    if type(value) is str and _HEX.fullmatch(value):
        return count(int(value, 16), what)
    raise not_understood(what)


def call(method: str, params: list[Any] | dict[str, Any], request_id: int) -> bytes:
    """A JSON-RPC request. ``params`` is always sent: a ppoi node asked without it never answers."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params, "id": request_id})


def result_of(body: bytes, request_id: int) -> Any:
    """The result of a JSON-RPC answer to that request."""
    answer = table(decode(body), "no JSON-RPC answer")
    error = answer.get("error")
    if error is not None:
        raise ProbeFailed("JSON-RPC error" + _code(error))
    if "result" not in answer:
        raise not_understood("no JSON-RPC answer")
    if type(answer.get("id")) is not int or answer["id"] != request_id:
        raise not_understood("an answer to another request")
    return answer["result"]


def query(graphql: str) -> bytes:
    return msgspec.json.encode({"query": graphql})


def graphql_answer(body: bytes) -> dict[str, Any]:
    """The data of a GraphQL answer. One with errors counts as failed, even if some data came along."""
    answer = table(decode(body), "no GraphQL answer")
    if answer.get("errors"):
        raise ProbeFailed("GraphQL errors")
    return table(answer.get("data"), "no GraphQL answer")


def _code(error: Any) -> str:
    """The code tells something and can hold no secret; the message may repeat the request."""
    match error:
        case {"code": int(code)} if type(code) is int and abs(code) < 2**31:
            return f" {code}"
        case _:
            return ""
