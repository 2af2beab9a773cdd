"""Connections to upstreams, a new one for each request: a name, TCP, perhaps a proxy and TLS, and one answer."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from aiohappyeyeballs import start_connection
from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser
from yarl import URL

from lookout.base.concurrency import DaemonThread
from lookout.protocols.client.failure import OwnFault, ProbeFailed, own_fault, too_long
from lookout_reader.urllib_fetch import CERTIFICATES, NOT_TLS

MOST_BESIDES_BODY: Final = 65_536
"""The most bytes up to the end of an answer's head, interim answers included; a whole answer may have so many more than
its body's limit."""
_PIECE: Final = 8_192  # bytes to parse, at most some milliseconds, before other tasks have their turn
_NEXT_ADDRESS_S: Final = 0.25  # until a name's next address is tried as well, as RFC 8305 recommends


class RawAnswer(NamedTuple):
    http_code: int
    headers: Mapping[bytes, bytes]
    """The first of each name, in lower case."""
    body: bytes


class ClientConnection(asyncio.Protocol):
    """Reads one answer: its head, and its body if the code is ``expect_code``.

    The limits count all bytes that arrive, after TLS and before anything else: the parser takes any number of interim
    answers, empty lines and trailers, and chunk sizes of any length.
    """

    def __init__(self, limit_bytes: int = 0, expect_code: int | None = None) -> None:
        self.http_code: int | None = None  # once the head has ended
        self._limit_bytes = limit_bytes
        self._expect_code = expect_code
        self._transport: Any = None  # asyncio's, once connected
        self._parser = HttpResponseParser(self)
        # Deviations that other clients forgive too.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()
        self._left = MOST_BESIDES_BODY  # bytes that may still come
        self._unread = b""
        self._is_lost = False
        self._lost_by: Exception | None = None
        self._answer: asyncio.Future[RawAnswer] = asyncio.get_running_loop().create_future()
        self._answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # also if it is never awaited

    async def ask(self, line: str, headers: Mapping[str, str], body: bytes = b"") -> RawAnswer:
        """Send a request and wait for its answer. ProbeFailed if it is broken or too long, OwnFault if a local resource
        ran out."""
        lines = (f"{line} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items()), "", "")
        self._transport.write("\r\n".join(lines).encode() + body)
        return await self._answer

    async def connect(
        self, url: URL, tls: ssl.SSLContext | None, proxy: URL | None, to_proxy: Mapping[str, str]
    ) -> None:
        """Connect to the URL's host, or to the proxy that gets a plain request for it. ProbeFailed if that fails,
        OwnFault if a local resource ran out."""
        if proxy is None:
            await self._connect(url, tls)
        elif tls is None:
            with _naming_proxy():
                await self._connect(proxy, None)
        else:
            await self._tunnel(proxy, url, to_proxy, tls)

    def certificate_ends_at(self) -> int | None:
        """Until when the server's certificate is valid; None without TLS."""
        certificate = self._transport.get_extra_info("peercert")
        return int(ssl.cert_time_to_seconds(certificate["notAfter"]) * 1000) if certificate else None

    def close(self) -> None:
        self._answer.cancel()
        if self._transport is not None:
            self._transport.abort()

    # ---- Called by the event loop

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        if self._unread:
            self._parse()

    def data_received(self, data: bytes) -> None:
        is_behind = bool(self._unread) or self._transport is None  # TLS in a tunnel gives bytes before the transport
        self._unread += data
        if not is_behind:
            self._transport.pause_reading()
            self._parse()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost, self._lost_by = True, error
        if not self._unread:
            self._break_off()

    # ---- Called by the parser

    def on_header(self, name: bytes, text: bytes) -> None:
        if self.http_code is None:  # else it is a trailer
            self._headers.setdefault(name.lower(), text)

    def on_headers_complete(self) -> None:
        http_code = self._parser.get_status_code()
        if 100 <= http_code < 200 and http_code != 101:  # interim
            self._headers = {}
            return
        self.http_code = http_code
        self._left += self._limit_bytes
        if http_code != self._expect_code:
            self._end()

    def on_body(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > self._limit_bytes:
            self._end(too_long(self._limit_bytes))

    def on_message_complete(self) -> None:
        self._end()

    # ---- Connecting

    async def _connect(self, url: URL, tls: ssl.SSLContext | None) -> None:
        addresses = await _look_up(url)
        try:
            connected = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_S)
            await asyncio.get_running_loop().create_connection(
                lambda: self, sock=connected, ssl=tls, server_hostname=_tls_name(url) if tls else None
            )
        except OSError as error:
            raise own_fault(error) or _explain(error, tls) from None

    async def _tunnel(self, proxy: URL, url: URL, to_proxy: Mapping[str, str], tls: ssl.SSLContext) -> None:
        tunnel, target = ClientConnection(), f"{url.host_subcomponent}:{url.port}"
        try:
            with _naming_proxy():
                await tunnel._connect(proxy, None)
                answer = await tunnel.ask(f"CONNECT {target}", {"Host": target, **to_proxy})
            if answer.http_code != HTTPStatus.OK:
                raise proxy_refused(answer.http_code)
            transport = await asyncio.get_running_loop().start_tls(
                tunnel._transport, self, tls, server_hostname=_tls_name(url)
            )
            if transport is None:  # the connection was lost right after the handshake
                raise ConnectionResetError
            self.connection_made(transport)
        except OSError as error:
            raise own_fault(error) or _explain(error, tls) from None
        finally:
            if self._transport is None:
                tunnel.close()

    # ---- From bytes to an answer

    def _parse(self) -> None:
        """Parse a piece of what has arrived, and go on with the next one later."""
        if self._answer.done():
            return
        size = min(_PIECE, self._left)
        piece, self._unread = self._unread[:size], self._unread[size:]
        self._left -= len(piece)
        try:
            self._parser.feed_data(piece)
        except (HttpParserError, HttpParserUpgrade) as error:
            is_bug = isinstance(error, HttpParserCallbackError)
            self._end(own_fault(error) or (error if is_bug else ProbeFailed("bad_http")))
        if not self._left:
            before = ProbeFailed("bad_http", f"over {MOST_BESIDES_BODY} bytes before the answer")
            self._end(before if self.http_code is None else too_long(self._limit_bytes))
        if self._unread:
            asyncio.get_running_loop().call_soon(self._parse)
        elif self._is_lost:
            self._break_off()
        else:
            self._transport.resume_reading()

    def _break_off(self) -> None:
        """The connection has ended, and with it a body without Content-Length that is not chunked."""
        coding = self._headers.get(b"transfer-encoding", b"").lower()
        is_open_ended = b"content-length" not in self._headers and b"chunked" not in coding
        error = self._lost_by
        if self.http_code is None:
            self._end(ProbeFailed("closed") if error is None else own_fault(error) or _explain(error, None))
        elif error is not None or not is_open_ended:
            self._end(own_fault(error) or ProbeFailed("broken_off"))
        else:
            self._end()

    def _end(self, failure: Exception | None = None) -> None:
        """Set the outcome, once: the failure, or the answer, if its final head has arrived."""
        if self._answer.done():
            return
        if failure is not None:
            self._answer.set_exception(failure)
        elif self.http_code is not None:
            self._answer.set_result(RawAnswer(self.http_code, self._headers, bytes(self._body)))


@contextmanager
def _naming_proxy() -> Iterator[None]:
    try:
        yield
    except ProbeFailed as failure:
        raise ProbeFailed("proxy", failure.reason) from None


def proxy_refused(http_code: int) -> ProbeFailed:
    """The upstream's state is unknown."""
    return ProbeFailed("proxy", f"refused with {http_code}")


def _tls_name(url: URL) -> str:
    return (url.raw_host or "").rstrip(".")  # certificates have no final dot


async def _look_up(url: URL) -> Sequence[Any]:
    """The host's addresses by the system's resolver. It has a thread of its own.

    ``loop.getaddrinfo`` shares a pool of a few threads: a handful of names whose servers stay silent would fill it for
    half a minute and fail every other probe (M6). The threads are daemons, so none delays the exit.
    """
    resolve = partial(socket.getaddrinfo, (url.raw_host or "").encode(), url.port, type=socket.SOCK_STREAM)
    try:
        return resolve(flags=socket.AI_NUMERICHOST)
    except OSError:  # a name
        pass

    def ask() -> Sequence[Any]:
        try:
            return resolve(flags=socket.AI_ADDRCONFIG)
        except OSError as error:
            raise own_fault(error) or ProbeFailed("dns") from None  # now: descriptors may be free a moment later

    try:
        with DaemonThread("name lookup") as thread:
            return await thread.call(ask)
    except RuntimeError:  # raised if the system starts no thread
        raise OwnFault("threads") from None


def _explain(error: Exception, tls: ssl.SSLContext | None) -> ProbeFailed:
    """Why a connection failed; with TLS, the proxy's part has already succeeded."""
    match error:
        case ssl.SSLCertVerificationError(verify_code=code):
            return ProbeFailed("tls", CERTIFICATES.get(code, "certificate not accepted"))
        case ssl.SSLError(reason=reason):
            return ProbeFailed("tls", "not TLS" if reason in NOT_TLS else "handshake failed")
        case OSError(errno=errno.ECONNREFUSED):
            return ProbeFailed("refused")
        case OSError(errno=errno.ECONNRESET | errno.EPIPE) | ConnectionError():
            return ProbeFailed("reset") if tls is None else ProbeFailed("tls", "handshake failed")
        case OSError(errno=code):
            return ProbeFailed("network", "" if code is None else errno.errorcode.get(code, ""))
        case _:
            return ProbeFailed("bad_http")
