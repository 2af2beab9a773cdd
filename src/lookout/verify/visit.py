"""The requests of one visit, always the same ones, each on a connection of its own, and what came back, as it came:
duplicate headers, and bodies where none belongs."""

import gzip
import re
import socket
import ssl
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.text import shorten
from lookout.base.url import BaseUrl
from lookout.verify.documents import Unread, VisitedHistory, VisitedReport, read_document
from lookout_reader.urllib_fetch import explain_failure

_MOST_BYTES: Final = 32 * 1024 * 1024


class HttpAnswer(NamedTuple):
    """An answer, with the names of headers in lower case. Without a whole one ``http_code`` is None, and ``problem``
    says why."""

    http_code: int | None
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    problem: str = ""

    def header(self, name: str) -> str | None:
        lines = [text for of, text in self.headers if of == name]
        return ", ".join(lines) if lines else None

    @property
    def coding(self) -> str:
        return (self.header("content-encoding") or "identity").lower()

    @property
    def plain_body(self) -> bytes | None:
        """The body without its coding; None if it is not what its coding says."""
        if self.coding == "identity":
            return self.body
        try:
            return gzip.decompress(self.body) if self.coding == "gzip" else None
        except (OSError, EOFError, zlib.error):
            return None


class _Received(BytesIO):
    def makefile(self, _mode: str) -> BytesIO:
        return self


def parse_answer(method: str, received: bytes, problem: str = "") -> HttpAnswer:
    """The answer in what came on a connection; ``problem`` is why no more came, if it was not the end."""
    connection = _Received(received)
    response = HTTPResponse(connection, method=method)  # type: ignore[arg-type]
    try:
        response.begin()
        ends_with_connection = response.length is None and not response.chunked
        # Also where no body may be: whatever follows is kept.
        body = connection.read() if response.length == 0 else response.read()
    except (HTTPException, ValueError) as error:
        what = f"not HTTP, or not whole ({type(error).__name__}): {shorten(ascii(received), 60)}"
        return HttpAnswer(None, problem=problem or (what if received else "no answer: the connection was closed"))
    if problem and ends_with_connection:
        return HttpAnswer(None, problem=problem)
    headers = tuple((name.lower(), text.strip()) for name, text in response.getheaders())
    return HttpAnswer(response.status, headers, body)


_MOST_LOOKS: Final = 10
# A caller may be let through up to twice the limit where an edge counts by calendar minute (E2).
LIMIT_PER_MINUTE: Final = 120
_MOST_TO_BE_REFUSED: Final = 2 * LIMIT_PER_MINUTE + 5
_LIMIT_WITHIN_MS: Final = 60_000
_MOST_UNANSWERED: Final = 3

_USUAL: Final = {"User-Agent": "lookout-verify", "Accept": "*/*", "Accept-Encoding": "identity"}
_ORIGIN: Final = {"Origin": "https://wallet.example"}
_OTHER_TAG: Final = '"0000000000000000"'
# What stands in a request for the newest ETag of the document in a coding.
_TAG_OF: Final = {"PLAIN": "identity", "GZIP": "gzip"}
_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')
# What a cache leaves in the headers of its answers. nginx is here because one with proxy_cache gives no other sign.
_CACHE_HEADER: Final = re.compile(
    "age|via|cache-status|x-(proxy-|vercel-)?cache.*|x-varnish|x-served-by|x-amz-cf-id|cf-.*"
)
_CACHE_SERVER: Final = re.compile("cloudflare|varnish|akamai|cloudfront|fastly|bunnycdn|nginx", re.IGNORECASE)


class Ask(NamedTuple):
    """A request, the clause that it is about, and the code that it has to get. ``tag`` is what is sent in
    If-None-Match."""

    name: str
    clause: str
    http_code: int
    method: str = "GET"
    headers: Mapping[str, str] = {}
    suffix: str = ""
    accept: str = "identity"
    tag: str = ""
    usual: Mapping[str, str] = _USUAL


_GET: Final = Ask("get", "A1", 200)
_WATCH: Final = Ask("watch", "A1", 200)
_LIMIT: Final = Ask("limit", "", 429)
_ASKS: Final = (
    _GET,
    Ask("head", "A2", 200, "HEAD"),
    Ask("query", "A1", 200, suffix="?service=indexer&chainId=1&limit=1"),  # what might be taken for parameters
    Ask("range", "A15", 200, headers={"Range": "bytes=0-9"}),
    Ask("accept", "A15", 200, headers={"Accept": "text/html"}),
    Ask("origin", "A15", 200, headers=_ORIGIN),
    Ask("bare", "A14", 200, accept="", usual={}),
    Ask("gzip", "A15", 200, accept="gzip"),
    Ask("gzip head", "A2", 200, "HEAD", accept="gzip"),
    Ask("gzip of a browser", "A15", 200, accept="gzip, deflate, br, zstd"),
    Ask("any coding", "A15", 200, accept="*"),
    Ask("gzip refused", "A15", 200, accept="gzip;q=0"),
    Ask("identity refused", "A15", 200, accept="identity;q=0"),
    Ask("exact", "A5", 304, tag="PLAIN"),
    Ask("weak", "A5", 304, tag="W/PLAIN"),
    Ask("list", "A5", 304, tag=f"{_OTHER_TAG}, W/PLAIN"),
    Ask("conditional head", "A5", 304, "HEAD", tag="PLAIN"),
    Ask("star", "A5", 304, tag="*"),
    Ask("other tag", "A5", 200, tag=_OTHER_TAG),
    Ask("gzip exact", "A5", 304, tag="GZIP", accept="gzip"),
    Ask("gzip for identity", "A5", 304, tag="GZIP"),
    Ask("identity for gzip", "A5", 304, tag="PLAIN", accept="gzip"),
    Ask("options", "A7", 204, "OPTIONS"),
    Ask(
        "preflight",
        "A7",
        204,
        "OPTIONS",
        _ORIGIN | {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "if-none-match"},
    ),
    # Methods that change nothing even where they are wrongly obeyed; an empty POST and PATCH come nearest to it.
    *(Ask(method, "A2", 405, method, {"Content-Length": "0"}) for method in ("POST", "PATCH", "PROPFIND")),
    Ask("other path", "E1", 404, suffix="/no-such-thing"),
    Ask("slash", "E1", 404, suffix="/"),
)
DESCRIPTIONS: Final = ("/schemas/liveness.json", "/schemas/history.json", "/openapi.json")
NOT_ASKED: Final = "not asked, since earlier answers were not whole, or had no ETag"


class Exchange(NamedTuple):
    """A request and its answer. ``at`` is on a clock that never jumps."""

    ask: Ask
    path: str
    headers: Mapping[str, str]
    answer: HttpAnswer
    at: int

    @property
    def method(self) -> str:
        return self.ask.method

    def __str__(self) -> str:
        unusual = ", ".join(f"{name}: {text}" for name, text in self.headers.items() if _USUAL.get(name) != text)
        return f"{self.method} {self.path}{' with ' if unusual else ''}{unusual}"


class EndpointVisit(NamedTuple):
    noun: str
    path: str
    shape: type[VisitedReport] | type[VisitedHistory]
    exchanges: tuple[Exchange, ...]

    @property
    def is_served(self) -> bool:
        return bool(self.exchanges) and self.exchanges[0].answer.http_code == 200

    def documents(self) -> Iterator[bytes]:
        """The different documents that came as plain text, the oldest first."""
        answers = (
            exchange.answer
            for exchange in self.exchanges
            if exchange.answer.http_code == 200 and exchange.method == "GET" and exchange.path == self.path
        )
        yield from dict.fromkeys(answer.body for answer in answers if answer.coding == "identity")


@dataclass(frozen=True)
class Visit:
    """Everything that was seen. ``at`` is the wall clock's instant of the beginning."""

    at: int
    live: EndpointVisit
    history: EndpointVisit
    descriptions: dict[str, HttpAnswer] = field(default_factory=dict)  # by path, of those that are served

    @property
    def endpoints(self) -> tuple[EndpointVisit, EndpointVisit]:
        return self.live, self.history

    @cached_property
    def cache(self) -> str | None:
        """The first header that gives away a cache in front, which answers some requests itself."""
        exchanges = (*self.live.exchanges, *self.history.exchanges)
        for name, text in (header for exchange in exchanges for header in exchange.answer.headers):
            if _CACHE_HEADER.fullmatch(name) or (name == "server" and _CACHE_SERVER.search(text)):
                return f"{name}: {text}"
        return None

    @cached_property
    def reports(self) -> list[VisitedReport | Unread]:
        return [read_document(body, VisitedReport) for body in self.live.documents()]

    @cached_property
    def histories(self) -> list[VisitedHistory | Unread]:
        return [read_document(body, VisitedHistory) for body in self.history.documents()]


class VisitOptions(NamedTuple):
    protocol: str = "protocol"
    timeout_s: float = 5
    wait_s: float = 0
    rate_limit: bool = False


def visit(base: BaseUrl, options: VisitOptions, clock: Clock, sleep: Callable[[float], None]) -> Visit:
    """Ask for everything once."""
    visitor = _Visitor(base, options, clock)
    at = clock.now()
    live_path = f"/api/v1/{options.protocol}/liveness"
    history_path = f"{live_path}/history"
    for path in (live_path, history_path):
        for ask in _ASKS:
            visitor.ask(path, ask)
    answers = [(path, visitor.ask(path, _GET)) for path in DESCRIPTIONS]
    if options.wait_s > 0:
        visitor.watch((live_path, history_path), sleep)
    if options.rate_limit:
        visitor.ask_until_refused(live_path)
    return Visit(
        at,
        EndpointVisit("live report", live_path, VisitedReport, tuple(visitor.exchanges[live_path])),
        EndpointVisit("history", history_path, VisitedHistory, tuple(visitor.exchanges[history_path])),
        {path: answer for path, answer in answers if answer.http_code == 200},
    )


def parse_opaque_tag(etag: str | None) -> str | None:
    """The quoted part of an ETag; None if it is not one."""
    match = _ENTITY_TAG.fullmatch(etag or "")
    return None if match is None else match[1]


class _Visitor:
    """Asks, until several requests had no whole answer."""

    def __init__(self, base: BaseUrl, options: VisitOptions, clock: Clock) -> None:
        self.exchanges: defaultdict[str, list[Exchange]] = defaultdict(list)  # by path
        self._base = base
        self._options = options
        self._clock = clock
        self._tls = ssl.create_default_context() if base.scheme == "https" else None
        self._unanswered = 0

    def ask(self, path: str, ask: Ask) -> HttpAnswer:
        sent = ask.tag
        for mark, coding in _TAG_OF.items():
            sent = sent.replace(mark, _find_newest_tag(self.exchanges[path], coding) or mark)
        more = {"Accept-Encoding": ask.accept, "If-None-Match": sent}
        headers = {**ask.usual, **{name: text for name, text in more.items() if text}, **ask.headers}
        at, target, answer = self._clock.elapsed_ms(), path + ask.suffix, HttpAnswer(None, problem=NOT_ASKED)
        if self._unanswered < _MOST_UNANSWERED and not any(mark in sent for mark in _TAG_OF):
            answer = self._send(ask.method, target, headers)
            self._unanswered += answer.http_code is None
        self.exchanges[path].append(Exchange(ask, target, headers, answer, at))
        return answer

    def watch(self, paths: tuple[str, ...], sleep: Callable[[float], None]) -> None:
        wait_s = self._options.wait_s
        looks = max(1, min(int(wait_s), _MOST_LOOKS))
        for look in range(looks + 1):
            sleep(wait_s / looks if look else 0)
            for path in paths:
                self.ask(path, _WATCH)

    def ask_until_refused(self, path: str) -> None:
        """Ask until refused (E2), and then once more for the whole page; HEAD requests count too, and cost least."""
        until = self._clock.elapsed_ms() + _LIMIT_WITHIN_MS
        for _ in range(_MOST_TO_BE_REFUSED):
            answer = self.ask(path, _LIMIT._replace(method="HEAD"))
            if answer.http_code in (None, 429) or self._clock.elapsed_ms() > until:
                break
        self.ask(path, _LIMIT)

    def _send(self, method: str, path: str, headers: Mapping[str, str]) -> HttpAnswer:
        """The answer, if all of it came in time."""
        base, timeout_s = self._base, self._options.timeout_s
        sent = {"Host": base.authority, **headers, "Connection": "close"}
        lines = [f"{method} {base.prefix}{path} HTTP/1.1", *map(": ".join, sent.items()), "", ""]
        until = self._clock.elapsed_ms() + int(timeout_s * 1000)
        received, problem = bytearray(), ""
        try:
            with self._connect() as connection:
                connection.sendall("\r\n".join(lines).encode("latin-1"))
                while len(received) <= _MOST_BYTES and (part := connection.recv(65_536)):
                    received += part
                    connection.settimeout(max(0.001, (until - self._clock.elapsed_ms()) / 1000))
        except TimeoutError:
            problem = f"no end within {timeout_s:g} s"
        except (OSError, UnicodeError) as error:
            problem = explain_failure(error)
        if len(received) > _MOST_BYTES:
            problem = f"more than {_MOST_BYTES >> 20} MB"
        return parse_answer(method, bytes(received), problem)

    def _connect(self) -> socket.socket:
        connection = socket.create_connection((self._base.host, self._base.port), self._options.timeout_s)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=self._base.host)


def _find_newest_tag(exchanges: list[Exchange], coding: str) -> str | None:
    for exchange in reversed(exchanges):
        if exchange.answer.http_code == 200 and exchange.answer.coding == coding:
            return parse_opaque_tag(exchange.answer.header("etag"))
    return None
