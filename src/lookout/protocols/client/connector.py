"""Connections to strangers: they take an answer to what was asked, and little besides.

aiohttp queues every response that it reads, takes interim ones (100, 102, 103) for as long as they come, and reads a
body in chunks of one byte, each of which takes as long as a large one. So the connection itself counts what is not the
answer's body, and stops reading after it.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import STAGE

MOST_INTERIM: Final = 8  # a real server sends one or two
# For heads, those of interim answers included, and what stands between the chunks of a body; an eighth of the body's
# length comes on top. A real head has some hundred bytes; 13,000 chunks of one byte have as many as this.
MOST_BESIDES_BODY: Final = 65_536
# How much is parsed before that is counted again: of small responses a thousand, which take some milliseconds. uvloop
# hands over fifteen times as much at once.
PIECE_BYTES: Final = 16_384

_SWITCHING_PROTOCOLS: Final = 101  # nothing more comes after it


class Connection(ResponseHandler):
    """One connection. What nobody asked for ends it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._is_asked = False
        self._is_answered = False
        self._interim = 0
        self._received_bytes = 0

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent, the only one of this connection."""
        self._is_asked = True
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if not data:  # aiohttp's own call: it goes on with what it kept while a long body waited to be read
            super().data_received(data)
        for start in range(0, len(data), PIECE_BYTES):
            if self.is_connected():
                self._take(data[start : start + PIECE_BYTES])

    def _take(self, piece: bytes) -> None:
        if not self._is_asked or self._is_complete():
            self._refuse("bytes that were not asked for")
            return
        self._received_bytes += len(piece)
        super().data_received(piece)
        if self._interim > MOST_INTERIM:
            self._refuse("too many interim answers")
        elif self._has_excess():
            self._refuse(f"over {MOST_BESIDES_BODY} bytes besides the body")

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Takes a response's head; interim ones are of no use to anybody, nor is a second answer."""
        message, _ = data
        if 100 <= message.code < 200 and message.code != _SWITCHING_PROTOCOLS:
            self._interim += 1
        elif self._is_answered:
            self.force_close()
        else:
            self._is_answered = True
            super().feed_data(data, size)

    def _is_complete(self) -> bool:
        return self._is_answered and (self._payload is None or self._payload.is_eof())

    def _has_excess(self) -> bool:
        """Whether too much came besides the body. That is not known while aiohttp waits for a long one to be read."""
        if self._reading_paused or self._is_complete():
            return False
        body_bytes = self._payload.total_bytes if self._is_answered and self._payload is not None else 0
        return self._received_bytes - body_bytes > MOST_BESIDES_BODY + body_bytes // 8

    def _refuse(self, reason: str) -> None:
        """Close the connection. A complete answer stays one; a request that waits for one, or for its body, fails for
        this reason."""
        if not self._is_complete():
            self.set_exception(ProbeFailed("bad_http", reason))
        if self._is_asked and self.transport is not None:  # before that, the request is still to find out why
            self._parser = None  # at the connection's end it would give another reason
            self.transport.abort()

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Fail also a request that reads the body: aiohttp does not if what came in the middle of it is not HTTP."""
        super().set_exception(exc, *cause)
        body = self._payload
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(exc)


class Connector(aiohttp.TCPConnector):
    """Makes such connections, a new one for each request: name, connection and certificate are tried each time, as a
    wallet would. A connection that is kept hides that a new one would fail."""

    def __init__(self, **options: Any) -> None:
        super().__init__(force_close=True, use_dns_cache=False, **options)
        connect: Callable[..., ResponseHandler] = Connection
        self._factory = partial(connect, loop=self._loop)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  as declared
    ) -> aiohttp.connector.Connection:
        """Says what is waited for meanwhile."""
        STAGE.set("connect")
        connection = await super().connect(req, traces, timeout)
        STAGE.set("first byte")
        return connection
