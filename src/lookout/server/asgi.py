"""The server as an ASGI application, for any ASGI server."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any

from lookout.server.follower import Follower
from lookout.server.front import Front
from lookout.server.hosts import is_one_host
from lookout.server.replies import Reply

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiApplication:
    """It begins to follow the store at the server's startup or, where it announces none, at the first request."""

    def __init__(self, front: Front, follower: Follower) -> None:
        self._front = front
        self._follower = follower
        self._started = False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                self._start()
                await self._answer(scope, send)
            case "lifespan":
                await self._live(receive, send)
            case "websocket":
                await receive()
                await send({"type": "websocket.close"})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._start()
                await send({"type": "lifespan.startup.complete"})
            else:
                self._follower.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Message, send: Send) -> None:
        reply = self._reply(scope)
        await send({"type": "http.response.start", "status": reply.http_code, "headers": reply.raw_headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})

    def _reply(self, scope: Message) -> Reply:
        front, path, headers = self._front, scope["path"], scope["headers"]
        if front.limits:
            peer = scope["client"][0] if scope.get("client") else ""
            forwarded = _whole(_lines(headers, b"x-forwarded-for")) if front.trusts_forwarded else None
            refusal = front.find_refusal(path, peer, forwarded)
            if refusal is not None:
                return refusal
        hosts = _lines(headers, b"host")
        if not is_one_host(hosts) and (hosts or scope["http_version"] == "1.1"):  # before that there need be none
            return front.refuse_host(path)
        if_none_match = _whole(_lines(headers, b"if-none-match"))
        return front.reply(scope["method"], path, if_none_match, _whole(_lines(headers, b"accept-encoding")))

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._follower.start()


def _lines(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [text.decode("latin-1") for of, text in headers if of == name]


def _whole(lines: Sequence[str]) -> str | None:
    """A header that may stand on several lines."""
    return ", ".join(lines) if lines else None
