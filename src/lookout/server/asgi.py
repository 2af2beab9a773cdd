"""The server as an ASGI application, for any ASGI server."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from lookout.server.follower import Follower
from lookout.server.front import Front

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
        peer = scope["client"][0] if scope.get("client") else ""
        headers = _Headers(scope["headers"])
        reply = self._front.answer(scope["method"], scope["path"], scope["http_version"], peer, headers)
        await send({"type": "http.response.start", "status": reply.http_code, "headers": reply.raw_headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else reply.body})

    def _start(self) -> None:
        if not self._started:
            self._started = True
            self._follower.start()


class _Headers:
    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._headers = headers

    def __contains__(self, name: str) -> bool:
        return bool(self.get_all(name))

    def get_all(self, name: str) -> list[str]:
        return [text.decode("latin-1") for of, text in self._headers if of == name.encode()]
