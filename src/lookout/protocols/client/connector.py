"""Connections to strangers: they read in small pieces, and take no more than an answer to what was asked.

aiohttp queues every response that it reads, and takes interim ones (100, 102, 103) for as long as they come. So the
connection itself counts what comes before the answer, and stops reading after it.
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
MOST_HEAD_BYTES: Final = 65_536  # with interim answers; a real head has some hundred
PIECE_BYTES: Final = 16_384  # read at a time: a thousand small responses take some milliseconds

_SWITCHING_PROTOCOLS: Final = 101  # nothing more comes after it


class Connection(ResponseHandler, asyncio.BufferedProtocol):
    """One connection. What nobody asked for ends it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._piece = bytearray(PIECE_BYTES)
        self._is_asked = False
        self._is_answered = False
        self._interim = 0
        self._head_bytes = 0

    def get_buffer(self, _sizehint: int) -> memoryview:
        return memoryview(self._piece)  # TLS fills it part by part, and a part of a bytearray would be a copy

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(memoryview(self._piece)[:nbytes]))

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent."""
        self._is_asked, self._is_answered = True, False
        self._interim = self._head_bytes = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if not data:  # aiohttp's own call when a body was read to its end
            super().data_received(data)
            return
        if not self._is_asked or self._is_complete():
            self._refuse("bytes that were not asked for")
            return
        if not self._is_answered:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._interim > MOST_INTERIM:
            self._refuse("too many interim answers")
        elif not self._is_answered and self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(f"no answer within {MOST_HEAD_BYTES} bytes")

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

    def _refuse(self, reason: str) -> None:
        """Close the connection. A complete answer stays one; a request that waits for one fails for this reason."""
        if not self._is_complete():
            self.set_exception(ProbeFailed("bad_http", reason))
        if self._is_asked and self.transport is not None:  # before that, the request is still to find out why
            self.transport.abort()


class Connector(aiohttp.TCPConnector):
    """Makes such connections."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        connect: Callable[..., ResponseHandler] = Connection
        self._factory = partial(connect, loop=self._loop)

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  as declared
    ) -> aiohttp.connector.Connection:
        """Says what is waited for meanwhile. Called again if the server closed a kept connection."""
        STAGE.set("connect")
        connection = await super().connect(req, traces, timeout)
        STAGE.set("first byte")
        return connection
