"""The one place that talks HTTP: a request in, the body's bytes out, or ProbeFailed with a reason that reveals nothing
secret."""

import asyncio
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import unquote_to_bytes

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from lookout.base.certificates import trust_only
from lookout.base.concurrency import DaemonThread
from lookout.protocols.client.connector import Connector
from lookout.protocols.client.diagnosis import explain_error, explain_refusal
from lookout.protocols.client.exhaustion import own_fault
from lookout.protocols.client.failure import OwnFault, ProbeFailed, ProxyRefusedFailed, TooLongFailed
from lookout.protocols.client.request import STAGE, Request
from lookout.protocols.client.resolver import ThreadPerLookup
from lookout.protocols.client.turns import Turns

_Parsed = TypeVar("_Parsed")

_SHORT_BYTES: Final = 65_536  # parsed in a few milliseconds
_PIECE_BYTES: Final = 65_536  # decompressed at a time


@dataclass(frozen=True, slots=True)
class Session:
    """What all sources share: the HTTP client, and how long a probe may last."""

    http: aiohttp.ClientSession
    timeout_s: float
    hear_date: Callable[[str, str], None] = lambda _host, _date: None
    """Called with an answer's host and `Date` header."""

    async def fetch(self, request: Request) -> bytes:
        """The body of an answer, decompressed; ProbeFailed for anything else that an upstream or the network can do,
        OwnFault if it is this machine that lacks something."""
        STAGE.set("connect")
        try:
            async with asyncio.timeout(self.timeout_s):
                return await self._fetch(request)
        except TimeoutError:
            raise ProbeFailed("timeout", STAGE.get()) from None
        except (aiohttp.ClientError, HttpProcessingError, OSError, zlib.error, MemoryError) as error:
            raise own_fault(error) or explain_error(error, request) from None

    async def parse(self, body: bytes, parse: Callable[[], _Parsed]) -> _Parsed:
        """What ``parse`` makes of this body. Of a long one with many values that takes long, and the event loop goes on
        meanwhile (M6)."""
        if len(body) <= _SHORT_BYTES:
            return parse()
        with ExitStack() as stack:
            try:
                thread = stack.enter_context(DaemonThread("parse"))
            except RuntimeError:  # the library's way to say that the system gives no thread
                raise OwnFault("threads") from None
            return await thread.call(parse)

    async def _fetch(self, request: Request) -> bytes:
        access = request.access
        headers, to_proxy = _headers(request), CIMultiDict[str]()
        url = _url(request.url, headers, "Authorization")
        proxy = _url(access.proxy, to_proxy, "Proxy-Authorization") if access.proxy else None
        by_proxy = proxy is not None and url.scheme == "http"  # it reads the request; in a tunnel it never answers
        if by_proxy:
            headers.update(to_proxy)
            headers.setdefault("Cache-Control", "no-cache")  # an old answer would be taken for a new one
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
                raise ProxyRefusedFailed(response.status)
            STAGE.set("body")
            if "Age" not in response.headers:  # a cache repeats the time at which it was asked
                self.hear_date(url.authority, response.headers.get("Date", ""))
            if response.status != request.expect_code:
                raise explain_refusal(response, request)
            return await _read_body(response, request.limit_bytes)


@asynccontextmanager
async def open_session(timeout_s: float) -> AsyncIterator[Session]:
    """Requests for as long as the block lasts. Their number is not limited: a source has one request under way, and
    waiting for a free connection would let hanging sources delay others (M6).
    """
    connector = Connector(limit=0, limit_per_host=0, resolver=ThreadPerLookup())
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # Session.fetch alone decides
        auto_decompress=False,
        trust_env=False,
        headers={"User-Agent": "lookout", "Accept": "application/json"},
    ) as http:
        yield Session(http, timeout_s)


def _headers(request: Request) -> CIMultiDict[str]:
    headers = CIMultiDict({"Content-Type": "application/json"} if request.body is not None else {})
    # A value from the environment often ends in the newline of the file it came from.
    headers.update({name: value.strip() for name, value in request.access.headers.items()})
    headers["Accept-Encoding"] = "gzip"
    return headers


def _url(text: str, headers: CIMultiDict[str], header: str) -> URL:
    """Without its user and password, which go into this header unless it has a value."""
    try:
        url = URL(text)
    except ValueError:
        raise ProbeFailed("bad_address") from None
    if url.raw_user is None and url.raw_password is None:
        return url
    headers.setdefault(header, _basic(url))
    return url.with_user(None)


def _basic(url: URL) -> str:
    """The bytes that the address stands for, as curl sends them; aiohttp would send its text in Latin-1, which servers
    whose passwords are UTF-8 refuse."""
    credentials = f"{url.raw_user or ''}:{url.raw_password or ''}"
    return f"Basic {b64encode(unquote_to_bytes(credentials)).decode()}"


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
        if unzip is None:
            body += chunk
        else:
            async for piece in _unzip(unzip, chunk):
                body += piece
                if len(body) > limit_bytes:
                    break
        if max(received, len(body)) > limit_bytes:
            raise TooLongFailed(limit_bytes)
    if unzip is not None and not unzip.eof:
        raise ProbeFailed("broken_off")
    return bytes(body)


async def _unzip(unzip: "zlib._Decompress", chunk: bytes) -> AsyncIterator[bytes]:
    """What the chunk stands for, in pieces: a small one may stand for MiB (M6)."""
    turns = Turns()
    while not unzip.eof:
        piece = unzip.decompress(chunk, _PIECE_BYTES)
        yield piece
        if len(piece) < _PIECE_BYTES:
            return
        chunk = unzip.unconsumed_tail
        await turns.end_if_over()
