"""What a simulated upstream is: one value, declared beside the function that answers for it, without a network."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lookout.demo.sim.world import World


class UpstreamReply(NamedTuple):
    body: bytes
    content_type: str = "application/json"
    http_code: int = 200


class Asked(NamedTuple):
    world: World
    address: str
    query: Mapping[str, str]
    body: bytes
    at: int


class Upstream(NamedTuple):
    """``route`` is aiohttp's; ``address`` may have the route's variables in it."""

    method: str
    route: str
    address: str
    reply: Callable[[Asked], UpstreamReply]


def json_reply(document: object, http_code: int = 200) -> UpstreamReply:
    return UpstreamReply(json.dumps(document, separators=(",", ":")).encode(), http_code=http_code)


def text_reply(text: str, http_code: int) -> UpstreamReply:
    return UpstreamReply(text.encode(), "text/plain", http_code)


def rpc_error(request: object, code: int, message: str) -> dict[str, object]:
    request_id = request.get("id") if isinstance(request, dict) else None
    return {"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": request_id}
