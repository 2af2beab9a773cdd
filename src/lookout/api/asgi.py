"""The server as an ASGI application, for any ASGI server."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from lookout.api.following import Follower
from lookout.api.front import Front

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiApplication:
    """It begins to follow the store at the server's startup or, where it tells of none, at the first request."""

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
        front, method, headers = self._front, scope["method"], scope["headers"]
        forwarded = _whole(headers, b"x-forwarded-for") if front.believes_headers else None
        peer = scope["client"][0] if scope.get("client") else ""
        reply = front.reply(method, scope["path"], _whole(headers, b"if-none-match"), peer, forwarded)
        await send({"type": "http.response.start", "status": reply.http_code, "headers": reply.raw_headers})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else reply.body})

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._follower.start()


def _whole(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """A header that may stand on several lines."""
    found = [text.decode("latin-1") for of, text in headers if of == name]
    return ", ".join(found) if found else None
