"""The server as an RSGI application, which Granian runs fastest."""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

from lookout.server.follower import Follower
from lookout.server.front import Front, RequestHeaders
from lookout.server.replies import NO_HOST

_LAST: Final = ("connection", "close")


class Scope(Protocol):
    proto: str
    http_version: str
    method: str
    path: str
    client: str

    @property
    def headers(self) -> RequestHeaders: ...


class HttpProtocol(Protocol):
    def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None: ...

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None: ...


class RsgiApplication:
    def __init__(self, front: Front, follower: Follower) -> None:
        self._front = front
        self._follower = follower

    def __rsgi_init__(self, _loop: AbstractEventLoop) -> None:
        self._follower.start()

    def __rsgi_del__(self, _loop: AbstractEventLoop) -> None:
        self._follower.stop()

    async def __rsgi__(self, scope: Scope, protocol: HttpProtocol) -> None:
        method, headers = scope.method, scope.headers
        peer = scope.client.rpartition(":")[0]  # a new connection is still the same caller
        reply = self._front.answer(method, scope.path, scope.http_version, peer, headers)
        # Nobody needs to send a body here, and of a chunked one Granian reads some ends otherwise than others do: on
        # the same connection an answer could follow that nobody asked for. After a wrong Host it ends, too: whose the
        # next answer would be is not known.
        is_last = "transfer-encoding" in headers or reply is NO_HOST
        sent = [*reply.headers, _LAST] if is_last else reply.headers
        if reply.body and method != "HEAD":
            protocol.response_bytes(reply.http_code, sent, reply.body)
        else:
            protocol.response_empty(reply.http_code, sent)
