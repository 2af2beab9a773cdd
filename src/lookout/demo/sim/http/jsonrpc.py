"""JSON-RPC as nodes answer it, single requests and batches."""

import json
from collections.abc import Callable

from lookout.demo.sim.http.reply import UpstreamReply, json_reply


class CallError(Exception):
    """A call that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer_calls(body: bytes, call: Callable[[str, object], object]) -> UpstreamReply:
    """``call`` gives the result of a method with its params."""
    try:
        request = json.loads(body)
    except ValueError:
        return json_reply(_error(None, -32700, "parse error"))
    if isinstance(request, list) and request:
        return json_reply([_answer(each, call) for each in request])
    return json_reply(_answer(request, call))


def _answer(request: object, call: Callable[[str, object], object]) -> dict[str, object]:
    match request:
        case {"jsonrpc": "2.0", "method": str(method), "id": request_id, **further}:
            try:
                return {"jsonrpc": "2.0", "id": request_id, "result": call(method, further.get("params", []))}
            except CallError as error:
                return _error(request_id, error.code, str(error))
        case _:
            return _error(None, -32600, "invalid request")


def _error(request_id: object, code: int, message: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
