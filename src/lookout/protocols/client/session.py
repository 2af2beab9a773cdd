"""One request to an upstream: the body of its answer, or the cause why there is none."""

import ssl
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from multidict import CIMultiDict
from yarl import URL

from lookout.base.setting_types import trust_only
from lookout.protocols.client.connection import ClientConnection, RawAnswer, proxy_refused
from lookout.protocols.client.failure import ProbeFailed, own_fault, too_long
from lookout.protocols.client.request import STAGE, Request, at_most


@dataclass(frozen=True, slots=True)
class Session:
    """What all sources ask with, and the time limit of a probe."""

    tls: ssl.SSLContext
    """Trusts the authorities that the system trusts."""
    timeout_s: float
    hear_date: Callable[[str, str], None] = lambda _host, _date: None
    """Called with an answer's host and `Date` header."""
    hear_certificate: Callable[[int], None] = lambda _ends_at: None
    """Called with the instant until which the certificate of an upstream that was reached over TLS is valid."""

    async def fetch(self, request: Request) -> bytes:
        """The body of an answer, as ``ask`` gives it."""
        return (await self.ask(request)).body

    async def ask(self, request: Request) -> RawAnswer:
        """An answer with its body decompressed; ProbeFailed for anything else that an upstream or the network can do,
        OwnFault if a local resource ran out."""
        STAGE.set("connect")
        connection = ClientConnection(request.limit_bytes, request.expect_code)
        try:
            async with at_most(self.timeout_s):
                return await self._fetch(request, connection)
        except (zlib.error, MemoryError) as error:
            raise own_fault(error) or ProbeFailed("bad_encoding") from None

    async def _fetch(self, request: Request, connection: ClientConnection) -> RawAnswer:
        access = request.access
        url, credentials = _split_credentials(request.url)
        proxy, proxy_credentials = _split_credentials(access.proxy) if access.proxy else (None, "")
        headers = _headers(request, url, credentials)
        to_proxy = {"Proxy-Authorization": proxy_credentials} if proxy_credentials else {}
        tls = None if url.scheme == "http" else trust_only(access.ca_file) if access.ca_file else self.tls
        by_proxy = proxy is not None and tls is None  # the proxy sees the request; in a tunnel it does not
        if by_proxy:
            headers.update(to_proxy)
            headers.setdefault("Cache-Control", "no-cache")  # a cached answer would pass for a new one
        try:
            await connection.connect(url, tls, proxy, to_proxy)
            if ends_at := connection.certificate_ends_at():
                self.hear_certificate(ends_at)
            STAGE.set("first byte")
            target = str(url) if by_proxy else url.raw_path_qs
            answer = await connection.ask(f"{request.method} {target}", headers, request.body or b"")
        finally:
            if connection.http_code is not None:
                STAGE.set("body")
            connection.close()
        if by_proxy and answer.http_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            raise proxy_refused(answer.http_code)
        if b"age" not in answer.headers:  # a cached answer has an old Date
            self.hear_date(url.authority, answer.headers.get(b"date", b"").decode("latin-1"))
        if answer.http_code != request.expect_code:
            raise _explain_refusal(answer)
        return answer._replace(body=_decompress(answer, request.limit_bytes))


@asynccontextmanager
async def open_session(timeout_s: float) -> AsyncIterator[Session]:
    """A session for the block."""
    yield Session(_trust_system(), timeout_s)


@cache
def _trust_system() -> ssl.SSLContext:
    """Made before any request: without a file descriptor left, it would trust no authority from then on."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context


def _headers(request: Request, url: URL, credentials: str) -> CIMultiDict[str]:
    headers = CIMultiDict({"Host": url.host_port_subcomponent or ""})
    headers.update({"User-Agent": "lookout", "Accept": "application/json"})
    if credentials:
        headers["Authorization"] = credentials
    if request.body is not None:
        headers.update({"Content-Type": "application/json", "Content-Length": str(len(request.body))})
    # A value from the environment often ends in the newline of the file it came from.
    headers.update({name: value.strip() for name, value in request.access.headers.items()})
    headers.update({"Accept-Encoding": "gzip", "Connection": "close"})
    return headers


def _split_credentials(text: str) -> tuple[URL, str]:
    """The URL without user and password, and the header's value that they become, or an empty one."""
    try:
        url = URL(text).with_fragment(None)
    except ValueError:
        raise ProbeFailed("bad_address") from None
    if not url.raw_host or url.scheme not in ("http", "https"):
        raise ProbeFailed("bad_address")
    if url.raw_user is None and url.raw_password is None:
        return url, ""
    # The percent-decoded bytes, as curl sends them.
    credentials = unquote_to_bytes(f"{url.raw_user or ''}:{url.raw_password or ''}")
    return url.with_user(None), f"Basic {b64encode(credentials).decode()}"


def _decompress(answer: RawAnswer, limit_bytes: int) -> bytes:
    """The body, of at most ``limit_bytes`` also decompressed."""
    encoding = answer.headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding in (b"identity", b""):
        return answer.body
    if encoding not in (b"gzip", b"x-gzip"):
        raise ProbeFailed("bad_encoding")
    unzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
    body = unzip.decompress(answer.body, limit_bytes + 1)
    if len(body) > limit_bytes:
        raise too_long(limit_bytes)
    if not unzip.eof:
        raise ProbeFailed("broken_off")
    return body


def _explain_refusal(answer: RawAnswer) -> ProbeFailed:
    http_code = answer.http_code
    if http_code == HTTPStatus.TOO_MANY_REQUESTS:
        return ProbeFailed("rate_limited", code=http_code)
    is_redirect = 300 <= http_code < 400 and b"location" in answer.headers
    return ProbeFailed("redirect" if is_redirect else "http_status", code=http_code)
