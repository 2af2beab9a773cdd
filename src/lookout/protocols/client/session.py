"""All HTTP requests: a request in, the body's bytes out, or ProbeFailed with a reason in fixed words, since the text of
an error or of an answer may hold a secret (M16)."""

import errno
import socket
import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from lookout.base.concurrency import DaemonThread
from lookout.base.setting_types import trust_only
from lookout.protocols.client.failure import (
    HttpCodeFailed,
    OwnFault,
    ProbeFailed,
    TooLongFailed,
    own_fault,
)
from lookout.protocols.client.request import STAGE, Request, at_most
from lookout_reader.urllib_fetch import CERTIFICATES, NOT_TLS

# The certificate of the server that this task's request reached over TLS.
_CERTIFICATE: Final[ContextVar[dict[str, Any] | None]] = ContextVar("certificate", default=None)


@dataclass(frozen=True, slots=True)
class Session:
    """The HTTP client that all sources share, and the time limit of a probe."""

    http: aiohttp.ClientSession
    timeout_s: float
    hear_date: Callable[[str, str], None] = lambda _host, _date: None
    """Called with an answer's host and `Date` header."""
    hear_certificate: Callable[[int], None] = lambda _ends_at: None
    """Called with the instant until which the certificate of an answer over TLS is valid."""

    async def fetch(self, request: Request) -> bytes:
        """The body of an answer, decompressed; ProbeFailed for anything else that an upstream or the network can do,
        OwnFault if a local resource ran out."""
        STAGE.set("connect")
        try:
            async with at_most(self.timeout_s):
                return await self._fetch(request)
        except (aiohttp.ClientError, HttpProcessingError, OSError, zlib.error, MemoryError) as error:
            raise own_fault(error) or _explain_error(error, request) from None

    async def _fetch(self, request: Request) -> bytes:
        access = request.access
        headers, to_proxy = _headers(request), CIMultiDict[str]()
        url = _url(request.url, headers, "Authorization")
        proxy = _url(access.proxy, to_proxy, "Proxy-Authorization") if access.proxy else None
        by_proxy = proxy is not None and url.scheme == "http"  # the proxy sees the request; in a tunnel it does not
        if by_proxy:
            headers.update(to_proxy)
            headers.setdefault("Cache-Control", "no-cache")  # a cached answer would pass for a new one
        async with self.http.request(
            request.method,
            url,
            headers=headers,
            data=request.body,
            allow_redirects=False,
            ssl=trust_only(access.ca_file) if access.ca_file else True,
            proxy=proxy,
            proxy_headers=to_proxy,
        ) as response:
            if by_proxy and response.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
                raise _proxy_refused(response.status)
            STAGE.set("body")
            if certificate := _CERTIFICATE.get():
                self.hear_certificate(int(ssl.cert_time_to_seconds(certificate["notAfter"]) * 1000))
            if "Age" not in response.headers:  # a cached answer has an old Date
                self.hear_date(url.authority, response.headers.get("Date", ""))
            if response.status != request.expect_code:
                raise _explain_refusal(response)
            return await _read_body(response, request.limit_bytes)


class ThreadPerLookup(AbstractResolver):
    """Looks up a name by the system's resolver, in a thread of its own.

    ``loop.getaddrinfo`` shares a pool of a few threads: a handful of names whose servers stay silent would fill it for
    half a minute and fail every other probe (M6). The threads are daemons, so none delays the exit.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        try:
            with DaemonThread("name lookup") as thread:
                resolved = await thread.call(partial(_look_up, host, port, family))
        except RuntimeError:  # raised if the system starts no thread
            raise OwnFault("threads") from None
        return [
            ResolveResult(
                hostname=host,
                host=address[0],
                port=address[1],
                family=found_family,
                proto=proto,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found_family, _, proto, _, address in resolved
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[tuple[Any, ...]]:
    try:
        return list(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG))
    except OSError as error:
        raise own_fault(error) or error from None  # found now: descriptors may be free again a moment later
    except UnicodeError:  # an empty or overlong part of the name
        raise socket.gaierror(socket.EAI_NONAME, "not a name") from None


class _NotingRequest(aiohttp.ClientRequest):
    """Notes the server's certificate early: after a short answer the connection is already closed."""

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        _CERTIFICATE.set(conn.transport.get_extra_info("peercert") if conn.transport else None)
        return await super().send(conn)


@asynccontextmanager
async def open_session(timeout_s: float) -> AsyncIterator[Session]:
    """A session for the block.

    Every request has a new connection, so that name, connection and certificate are tested as a wallet would. Their
    number is unlimited: waiting for a free connection would let hanging sources delay others (M6).
    """
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_create_end.append(_note_connected)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True, use_dns_cache=False, resolver=ThreadPerLookup()),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # Session.fetch alone decides
        auto_decompress=False,
        trust_env=False,
        headers={"User-Agent": "lookout", "Accept": "application/json"},
        trace_configs=[tracing],
        request_class=_NotingRequest,
    ) as http:
        yield Session(http, timeout_s)


async def _note_connected(*_: object) -> None:
    STAGE.set("first byte")


def _headers(request: Request) -> CIMultiDict[str]:
    headers = CIMultiDict({"Content-Type": "application/json"} if request.body is not None else {})
    # A value from the environment often ends in the newline of the file it came from.
    headers.update({name: value.strip() for name, value in request.access.headers.items()})
    headers["Accept-Encoding"] = "gzip"
    return headers


def _url(text: str, headers: CIMultiDict[str], header: str) -> URL:
    """The URL without user and password, which move into this header unless it is set."""
    try:
        url = URL(text)
    except ValueError:
        raise ProbeFailed("bad_address") from None
    if url.raw_user is None and url.raw_password is None:
        return url
    # The percent-decoded bytes, as curl sends them; aiohttp would send the text in Latin-1.
    credentials = unquote_to_bytes(f"{url.raw_user or ''}:{url.raw_password or ''}")
    headers.setdefault(header, f"Basic {b64encode(credentials).decode()}")
    return url.with_user(None)


async def _read_body(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """Up to ``limit_bytes``, both as sent and decompressed; one byte more is a failure at once."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "x-gzip"):
        raise ProbeFailed("bad_encoding")
    unzip = zlib.decompressobj(16 + zlib.MAX_WBITS) if "gzip" in encoding else None
    body = bytearray()
    received = 0
    while chunk := await response.content.readany():
        received += len(chunk)
        # A small chunk may decompress to any length: stop as soon as the limit is exceeded.
        body += chunk if unzip is None else unzip.decompress(chunk, limit_bytes + 1 - len(body))
        if max(received, len(body)) > limit_bytes:
            raise TooLongFailed(limit_bytes)
    if unzip is not None and not unzip.eof:
        raise ProbeFailed("broken_off")
    return bytes(body)


def _explain_refusal(response: aiohttp.ClientResponse) -> HttpCodeFailed:
    http_code = response.status
    if http_code == HTTPStatus.TOO_MANY_REQUESTS:
        return HttpCodeFailed(http_code, "rate_limited")
    is_redirect = 300 <= http_code < 400 and "Location" in response.headers
    return HttpCodeFailed(http_code, "redirect" if is_redirect else "http_status")


def _explain_error(error: Exception, request: Request) -> ProbeFailed:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return _proxy_refused(error.status)
    failure = _explain(error, is_tls=request.url.startswith("https:"))
    # Failed before the connection through the proxy, except for TLS, which is with the upstream.
    is_of_proxy = request.access.proxy and STAGE.get() == "connect" and failure.cause != "tls"
    return ProbeFailed("proxy", failure.reason) if is_of_proxy else failure


def _proxy_refused(http_code: int) -> ProbeFailed:
    """The proxy refused the request: the upstream's state is unknown."""
    return ProbeFailed("proxy", f"refused with {http_code}")


def _explain(error: Exception, *, is_tls: bool) -> ProbeFailed:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return ProbeFailed("dns")
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as refused):
            return ProbeFailed("tls", CERTIFICATES.get(refused.verify_code, "certificate not accepted"))
        case aiohttp.ClientConnectorSSLError(os_error=ssl.SSLError(reason=reason)) if reason in NOT_TLS:
            return ProbeFailed("tls", "not TLS")
        case aiohttp.ClientConnectorError(os_error=ConnectionResetError() | ConnectionAbortedError()):
            return ProbeFailed("tls", "handshake failed") if is_tls else ProbeFailed("reset")
        case aiohttp.ClientSSLError():
            return ProbeFailed("tls", "handshake failed")
        case aiohttp.InvalidURL():
            return ProbeFailed("bad_address")
        case aiohttp.ServerDisconnectedError():
            return ProbeFailed("closed")
        case aiohttp.ClientPayloadError():
            return ProbeFailed("broken_off")
        case zlib.error():
            return ProbeFailed("bad_encoding")
        case OSError(errno=errno.ECONNREFUSED):
            return ProbeFailed("refused")
        case OSError(errno=errno.ECONNRESET | errno.EPIPE):
            return ProbeFailed("reset")
        case OSError(errno=errno.ETIMEDOUT):
            return ProbeFailed("timeout", STAGE.get())
        case OSError(errno=code):
            return ProbeFailed("network", "" if code is None else errno.errorcode.get(code, ""))
        case _:
            return ProbeFailed("bad_http")
