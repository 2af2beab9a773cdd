"""The server as an RSGI application, which Granian runs fastest."""

from asyncio import AbstractEventLoop
from typing import Final, Protocol

from lookout.server.callers import UNREADABLE
from lookout.server.follower import Follower
from lookout.server.front import Front
from lookout.server.hosts import is_one_host
from lookout.server.replies import NO_HOST, Reply

_LAST: Final = ("connection", "close")


class Headers(Protocol):
    def __contains__(self, key: str, /) -> bool: ...

    def get_all(self, key: str, /) -> list[str]: ...


class Scope(Protocol):
    proto: str
    http_version: str
    method: str
    path: str
    client: str

    @property
    def headers(self) -> Headers: ...


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
        reply = self._reply(scope, method, headers)
        # Nobody needs to send a body here, and of a chunked one Granian reads some ends otherwise than others do: on
        # the same connection an answer could follow that nobody asked for. After a wrong Host it ends, too: whose the
        # next answer would be is not known.
        is_last = "transfer-encoding" in headers or reply is NO_HOST
        sent = [*reply.headers, _LAST] if is_last else reply.headers
        if reply.body and method != "HEAD":
            protocol.response_bytes(reply.http_code, sent, reply.body)
        else:
            protocol.response_empty(reply.http_code, sent)

    def _reply(self, scope: Scope, method: str, headers: Headers) -> Reply:
        front, path = self._front, scope.path
        if front.limits:
            peer = scope.client.rpartition(":")[0]  # a new connection is still the same caller
            refusal = front.find_refusal(path, peer, _forwarded(headers) if front.trusts_forwarded else None)
            if refusal is not None:
                return refusal
        hosts = headers.get_all("host")
        # Before HTTP/1.1 there need be none. One that Granian does not pass on is there all the same.
        if not is_one_host(hosts) and (hosts or scope.http_version == "1.1" or "host" in headers):
            return front.refuse_host(path)
        return front.reply(method, path, _whole(headers, "if-none-match"), _whole(headers, "accept-encoding"))


def _forwarded(headers: Headers) -> str | None:
    """X-Forwarded-For. A proxy that appends to the one line there is can leave no line that Granian passes on."""
    forwarded = _whole(headers, "x-forwarded-for")
    return UNREADABLE if forwarded is None and "x-forwarded-for" in headers else forwarded


def _whole(headers: Headers, name: str) -> str | None:
    """A header that may stand on several lines; Granian leaves out lines that are not ASCII."""
    lines = headers.get_all(name)
    if len(lines) == 1:
        return lines[0]
    return ", ".join(lines) if lines else None
