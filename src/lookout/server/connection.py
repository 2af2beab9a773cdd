"""A connection of HTTP/1.1, and the server that accepts them: bytes in, bytes out."""

import asyncio
import re
import socket
import time
from collections import Counter
from contextlib import suppress
from email.utils import formatdate
from struct import Struct
from typing import Any, Final, Literal, NamedTuple, Protocol, Self

from lookout.base.concurrency import ends_within
from lookout.base.logger import get_logger
from lookout.server.limiter import CallerOnPath
from lookout.server.request import HOPELESS, Caller, Callers, HttpRequest, RefusedError, Wire, parse_head

STALLED_S: Final = 30.0
_END: Final = b"\r\n\r\n"
_EMPTY_LINES: Final = re.compile(rb"(?:\r\n)+")
_MOST_HEAD: Final = 32_768
_AT_ONCE: Final = 16  # requests of one connection, or new connections, before others have their turn
KEPT_HEADS: Final = 1_024
# As nginx does it: a body that is not read is discarded, or the answer would be lost (RFC 9112, 9.6).
_LINGER_S: Final = 5.0  # without a byte
_LINGER_ALL_S: Final = 30.0
_LINGER_AT_STOP_S: Final = 1.0
_MOST_DISCARDED: Final = 16_777_216
_STOP_S: Final = 5.0
_RESET: Final = Struct("=ii").pack(1, 0)
# Small kernel buffers: idle or slow connections take little memory, and it soon shows whether a slow reader reads.
_BUFFERS: Final = {socket.SO_RCVBUF: 16_384, socket.SO_SNDBUF: 262_144}

# What a connection does, and what may follow.
State = Literal[
    "opening",  # it has no transport yet: ready
    "ready",  # it answers requests as they arrive: yielding, full, busy, ended
    "yielding",  # other connections have their turn: ready, ended
    "full",  # the client does not read as fast as it asks: ready, ended
    "busy",  # the application makes the last answer: uploading, ended
    "uploading",  # the application waits for a body: busy, ended
    "ended",  # the last answer is written, and what arrives is discarded
]
Closed = Literal["stalled", "crowded"]  # why a connection was closed
_READING: Final[frozenset[State]] = frozenset(("ready", "uploading", "ended"))
_WITHOUT_CLIENT: Final[frozenset[State]] = frozenset(("opening", "busy"))  # nothing is expected of it

log = get_logger()


class ConnectionLimits(NamedTuple):
    """What one process allows its connections: how many, how many of one network (0: any number), how long without
    progress, and whether, if there are too many, a new one is refused or the least important one is dropped."""

    connections: int
    per_network: int = 0
    stalled_s: float = STALLED_S
    drops_for_new: bool = False


class Application(Protocol):
    def answer(self, request: HttpRequest, connection: "Connection", /) -> Wire | None:
        """The whole answer, or None if it follows by the connection's ``reply``."""

    def refuse(self, http_code: int, /, *, with_body: bool) -> Wire:
        """The answer to bytes that are no request which can be answered."""

    def note_closed(self, reason: Closed, /) -> None:
        """A connection was closed to admit others."""

    def begin_second(self, date: bytes, connections: int, /) -> None:
        """Called about every second, with the Date line for heads and the number of open connections."""


class HttpServer:
    """Accepts connections of a listening socket, inside ``async with``."""

    def __init__(
        self, listener: socket.socket, application: Application, limits: ConnectionLimits, callers: Callers
    ) -> None:
        self.application = application
        self.heads: dict[bytes, HttpRequest] = {}  # parsed in the last second (A14)
        self.now = time.monotonic()
        self.is_stopping = False
        self._listener = listener
        self._limits = limits
        self._callers = callers
        self._open: dict[Connection, asyncio.Task[None]] = {}
        self._of_network: Counter[bytes] = Counter()
        self._all_closed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        for buffer, size in _BUFFERS.items():
            self._listener.setsockopt(socket.SOL_SOCKET, buffer, size)
        self._listener.setblocking(False)
        self._tick()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Answers under way may take some more seconds."""
        self.is_stopping = True
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._all_closed.clear()
        for connection in tuple(self._open):
            connection.finish()
        if self._open and not await ends_within(self._all_closed.wait(), _STOP_S):
            log.info("requests that were not finished were cut off")
        self._timer.cancel()
        for connection in tuple(self._open):
            connection.abort()

    def parse(self, head: bytes) -> HttpRequest:
        request = self.heads.get(head)
        if request is None:
            request = parse_head(head)
            if request.may_be_kept and len(self.heads) < KEPT_HEADS:
                self.heads[head] = request
        return request

    def forget(self, connection: "Connection") -> None:
        if self._open.pop(connection, None) is not None:
            network = connection.caller.network
            self._of_network[network] -= not connection.caller.is_trusted
            if not self._of_network[network]:
                del self._of_network[network]
        if not self._open:
            self._all_closed.set()

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # out of files; a retry before the next tick would use a whole processor
                self._loop.remove_reader(self._listener)
                return
            caller = self._callers.look_up(address[0] if address else "")
            if self._limits.drops_for_new and len(self._open) >= self._limits.connections:
                self._drop_one()
            if self._admits(caller):
                connection = Connection(self, caller)
                self._of_network[caller.network] += not caller.is_trusted
                self._open[connection] = self._loop.create_task(self._open_transport(connection, accepted))
            else:
                accepted.close()
                self.application.note_closed("crowded")

    def _admits(self, caller: Caller) -> bool:
        share = 0 if caller.is_trusted else self._limits.per_network
        return len(self._open) < self._limits.connections and not 0 < share <= self._of_network[caller.network]

    def _drop_one(self) -> None:
        least = min(self._open, key=Connection.importance)  # of equal ones the oldest
        if least.importance() < 2:
            least.abort()
            self.forget(least)

    async def _open_transport(self, connection: "Connection", accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, accepted)
        except OSError:  # the connection is gone
            accepted.close()
            self.forget(connection)

    def _tick(self) -> None:
        self.now = time.monotonic()
        if not self.is_stopping:  # also after it ran out of files
            self._loop.add_reader(self._listener, self._accept)
        self.heads.clear()
        for connection in tuple(self._open):
            if connection.is_stalled(self.now, self._limits.stalled_s):
                self.application.note_closed("stalled")
        self.application.begin_second(f"date: {formatdate(usegmt=True)}\r\n".encode(), len(self._open))
        self._timer = self._loop.call_later(min(1 - time.time() % 1, self._limits.stalled_s / 5), self._tick)


class Connection(asyncio.Protocol):
    """Requests are answered in the state "ready" alone, in their order."""

    def __init__(self, server: HttpServer, caller: Caller) -> None:
        self.caller = caller
        self.located: dict[str, CallerOnPath] = {}  # the caller's entries in the limiter, by path
        self._server = server
        self._transport: Any = None  # asyncio's, once connected
        self._state: State = "opening"
        self._has_eof = False  # the other end sends no more
        self._unread = b""
        self._searched = 0  # leading bytes in which no head ends
        self._heard_at = self._moved_at = server.now  # start of a head; progress of an answer, or none due
        self._left = 0  # bytes of answers that the other end had not read
        self._discarded = 0
        self._ended_at = 0.0
        self._body_length = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(0)  # what the kernel's buffer does not take is waited for
        self._state = "ready"
        if self._server.is_stopping:
            transport.close()

    def data_received(self, data: bytes) -> None:
        if self._state == "ready" and not self._unread:
            request = self._server.heads.get(data)
            if request is not None:  # the usual case: one head, known
                self._heard_at = self._server.now
                self._respond(request)
                return
        if self._state == "ended":
            self._discarded += len(data)
            self._heard_at = self._server.now
            if self._discarded > _MOST_DISCARDED:
                self._transport.close()
            return
        self._unread += data
        self._proceed()

    def eof_received(self) -> bool:
        """Whether the transport stays open: earlier requests are answered first."""
        self._has_eof = True
        self._proceed()
        return self._state != "ended"

    def pause_writing(self) -> None:
        if self._state == "ready":
            self._enter("full")

    def resume_writing(self) -> None:
        self._moved_at = self._server.now
        self._resume("full")

    def connection_lost(self, _error: Exception | None) -> None:
        self._has_eof = True
        self._enter("ended")
        self._server.forget(self)

    def reply(self, wire: Wire) -> None:
        if self._state == "busy":
            self._transport.writelines(wire)
            self._end()

    async def read_body(self, length: int, *, is_expected: bool) -> bytes:
        """The body, or what came of it. ``is_expected``: the client waits for 100 before it sends it."""
        if self._state == "busy":
            if is_expected and len(self._unread) < length:
                self._transport.writelines((b"HTTP/1.1 100 Continue\r\n\r\n",))
            self._body_length, self._uploaded = length, asyncio.Event()
            self._enter("uploading")
            self._proceed()
            await self._uploaded.wait()
        return self._unread[:length]

    def is_stalled(self, now: float, stalled_s: float) -> bool:
        """Close the connection if it made no progress for too long; whether that cut off a request or an answer."""
        if self._state in _WITHOUT_CLIENT:
            self._moved_at = now
            return False
        left = self._transport.get_write_buffer_size()
        if left != self._left:  # while it is not 0, nothing is answered: it only shrinks
            self._left = left
            self._moved_at = now
        # While answers are unread, new requests are no progress.
        since = self._moved_at if left else max(self._moved_at, self._heard_at)
        if self._state == "ended" and not left:
            linger_s = _LINGER_AT_STOP_S if self._server.is_stopping else _LINGER_S
            if now - since < linger_s and now - self._ended_at < _LINGER_ALL_S:
                return False
        elif now - since < stalled_s:
            return False
        self.abort()
        return bool(left or (self._unread and self._state != "ended"))

    def importance(self) -> int:
        """0 while it waits for a request, 1 while its answer is not read, 2 while that is made."""
        return 2 if self._state in _WITHOUT_CLIENT else int(self._transport.get_write_buffer_size() > 0)

    def finish(self) -> None:
        """Send the answers under way, and close. An answer that the application still makes closes it at its end."""
        if self._state not in _WITHOUT_CLIENT and self._state != "ended" and not self._transport.is_closing():
            self._end()

    def abort(self) -> None:
        """Close at once, and drop unsent bytes."""
        if self._transport is not None:
            if self._transport.get_write_buffer_size():
                with suppress(OSError):
                    self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()

    def _enter(self, state: State) -> None:
        if self._state == "uploading":
            self._uploaded.set()
        self._state = state
        if state not in _READING:
            self._transport.pause_reading()
        elif not self._has_eof:
            self._transport.resume_reading()

    def _resume(self, after: State) -> None:
        if self._state == after:
            self._enter("ready")
            self._proceed()

    def _proceed(self) -> None:
        """Go on with what has arrived, as far as the state allows."""
        if self._state == "uploading" and (self._has_eof or len(self._unread) >= self._body_length):
            self._enter("busy")
        for _ in range(_AT_ONCE):
            if self._state != "ready":
                return
            head = None
            try:
                head = self._take_head()
                request = None if head is None else self._server.parse(head)
            except RefusedError as refused:
                is_head = (head or self._unread).startswith(b"HEAD ")
                self._transport.writelines(self._server.application.refuse(refused.http_code, with_body=not is_head))
                self._end()
                return
            if request is None:
                if self._has_eof:
                    self._end()
                return
            self._respond(request)
        if self._state == "ready":
            self._enter("yielding")
            asyncio.get_running_loop().call_soon(self._resume, "yielding")

    def _take_head(self) -> bytes | None:
        unread = self._unread
        if empty := _EMPTY_LINES.match(unread):
            unread = unread[empty.end() :]
        end = unread.find(_END, max(0, self._searched - 3), _MOST_HEAD)
        if end >= 0:
            self._unread = unread[end + 4 :]
            self._searched = 0
            self._heard_at = self._server.now
            return unread[: end + 4]
        self._unread = unread
        if HOPELESS.search(unread, max(0, self._searched - 1), _MOST_HEAD):
            raise RefusedError(400)
        if len(unread) >= _MOST_HEAD:
            raise RefusedError(431 if b"\r\n" in unread[:_MOST_HEAD] else 414)
        has_begun = len(unread) > 1  # a single CR may begin an empty line
        if has_begun and not self._searched:
            self._heard_at = self._server.now
        self._searched = len(unread) if has_begun else 0
        return None

    def _respond(self, request: HttpRequest) -> None:
        wire = self._server.application.answer(request, self)
        if wire is None:
            self._enter("busy")
            return
        self._transport.writelines(wire)
        if not request.keeps_open:
            self._end()

    def _end(self) -> None:
        """Close after the written answers, and discard input for a while: closed with unread bytes, the kernel sends a
        reset, and the client could lose the answer."""
        self._unread = b""
        self._heard_at = self._ended_at = time.monotonic()
        self._enter("ended")
        if self._has_eof:
            self._transport.close()
        else:
            self._transport.write_eof()
