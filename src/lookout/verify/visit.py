"""The requests of one visit, always the same ones, each on a connection of its own, and what came back, as it came:
headers that are there twice, and bodies where none belongs."""

import re
import socket
import ssl
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.text import shorten
from lookout.base.url import BaseUrl
from lookout.verify.documents import History, LiveReport, Remark, read_document
from lookout_reader.urllib_fetch import explain_failure

_MOST_BYTES: Final = 32 * 1024 * 1024
_GZIP: Final = 31  # zlib's number for gzip's format


class HttpAnswer(NamedTuple):
    """An answer, with the names of headers in lower case. ``problem`` says why its body is not whole, or why there is
    no answer: ``http_code`` is then None."""

    http_code: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    problem: str = ""

    def header(self, name: str) -> str | None:
        lines = [text for of, text in self.headers if of == name]
        return ", ".join(lines) if lines else None

    @property
    def coding(self) -> str:
        return (self.header("content-encoding") or "identity").lower()

    @property
    def plain_body(self) -> bytes | None:
        """The body without its coding; None if it is not whole, or not what its coding says."""
        if self.problem or self.coding not in ("identity", "gzip"):
            return None
        if self.coding == "identity":
            return self.body
        unpacking = zlib.decompressobj(_GZIP)
        try:
            body = unpacking.decompress(self.body, _MOST_BYTES)
        except zlib.error:
            return None
        return body if unpacking.eof and not unpacking.unused_data else None


class Client:
    def __init__(self, base: BaseUrl, clock: Clock) -> None:
        self._base = base
        self._clock = clock
        self._tls = ssl.create_default_context() if base.scheme == "https" else None

    def send(self, method: str, path: str, headers: Mapping[str, str], timeout_s: float) -> HttpAnswer:
        """The answer as far as it came within ``timeout_s``."""
        until = self._clock.elapsed_ms() + int(timeout_s * 1000)
        received, problem = bytearray(), ""
        try:
            with self._connect(timeout_s) as connection:
                connection.sendall(self._encode(method, path, headers))
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

    def _connect(self, timeout_s: float) -> socket.socket:
        connection = socket.create_connection((self._base.host, self._base.port), timeout_s)
        return connection if self._tls is None else self._tls.wrap_socket(connection, server_hostname=self._base.host)

    def _encode(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        sent = {"Host": self._base.authority, **headers, "Connection": "close"}
        lines = [f"{method} {self._base.prefix}{path} HTTP/1.1", *map(": ".join, sent.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")


class _Received(BytesIO):
    def makefile(self, _mode: str) -> BytesIO:
        return self


def parse_answer(method: str, received: bytes, problem: str = "") -> HttpAnswer:
    """The answer in what came on a connection; ``problem`` is why no more came, if it was not the end."""
    connection = _Received(received)
    response = HTTPResponse(connection, method=method)  # type: ignore[arg-type]
    try:
        response.begin()
    except (HTTPException, ValueError) as error:
        why = problem or f"not HTTP ({type(error).__name__}): {shorten(ascii(received), 60)}"
        if not received and ": " not in problem:
            why = f"no answer: {problem or 'the connection was closed'}"
        return HttpAnswer(None, (), b"", why)
    headers = tuple((name.lower(), text.strip()) for name, text in response.getheaders())
    if response.length == 0:  # also where no body may be: whatever follows is kept
        return HttpAnswer(response.status, headers, connection.read())
    ends_with_connection = response.length is None and not response.chunked
    try:
        return HttpAnswer(response.status, headers, response.read(), problem if ends_with_connection else "")
    except (HTTPException, ValueError) as error:
        return HttpAnswer(response.status, headers, b"", problem or f"its body is not whole ({type(error).__name__})")


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
# What a cache leaves in the headers of its answers.
_CACHE_SIGNS: Final = (
    *("age", "via", "cache-status", "x-cache", "x-cache-status", "x-cache-hits", "x-proxy-cache", "x-varnish"),
    *("x-served-by", "x-vercel-cache", "x-amz-cf-id", "cf-cache-status", "cf-ray"),
)
# nginx is here because one with proxy_cache gives no other sign.
_CACHE_SERVERS: Final = ("cloudflare", "varnish", "akamai", "cloudfront", "fastly", "bunnycdn", "nginx")


class Ask(NamedTuple):
    """A request under the name of its purpose; ``tag`` is what is sent in If-None-Match."""

    name: str
    method: str = "GET"
    headers: Mapping[str, str] = {}
    suffix: str = ""
    accept: str = "identity"
    tag: str = ""
    usual: Mapping[str, str] = _USUAL


_GET: Final = Ask("get")
_LAST: Final = Ask("last")
_WATCH: Final = Ask("watch")
# Those whose bodies are the documents that all others are compared with.
_ORDINARY: Final = ("get", "again", "last", "watch")
_ASKS: Final = (
    _GET,
    Ask("head", "HEAD"),
    Ask("query", suffix="?service=indexer&chainId=1&limit=1"),  # what a misguided server might take for parameters
    Ask("range", headers={"Range": "bytes=0-9"}),
    Ask("accept", headers={"Accept": "text/html"}),
    Ask("origin", headers=_ORIGIN),
    Ask("bare", accept="", usual={}),
    Ask("again"),
    Ask("gzip", accept="gzip"),
    Ask("gzip head", "HEAD", accept="gzip"),
    Ask("gzip of a browser", accept="gzip, deflate, br, zstd"),
    Ask("any coding", accept="*"),
    Ask("gzip refused", accept="gzip;q=0"),
    Ask("identity refused", accept="identity;q=0"),
    Ask("exact", tag="PLAIN"),
    Ask("weak", tag="W/PLAIN"),
    Ask("list", tag=f"{_OTHER_TAG}, W/PLAIN"),
    Ask("conditional head", "HEAD", tag="PLAIN"),
    Ask("star", tag="*"),
    Ask("other tag", tag=_OTHER_TAG),
    Ask("gzip exact", tag="GZIP", accept="gzip"),
    Ask("gzip for identity", tag="GZIP"),
    Ask("identity for gzip", tag="PLAIN", accept="gzip"),
    Ask("options", "OPTIONS"),
    Ask(
        "preflight",
        "OPTIONS",
        _ORIGIN | {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "if-none-match"},
    ),
    # Methods that change nothing even where they are wrongly obeyed; an empty POST and PATCH come nearest to it.
    *(Ask(method, method, {"Content-Length": "0"}) for method in ("POST", "PATCH", "PROPFIND")),
    Ask("other path", suffix="/no-such-thing"),
    Ask("slash", suffix="/"),
    _LAST,
)
DESCRIPTIONS: Final = ("/schemas/liveness.json", "/schemas/history.json", "/openapi.json")


class Exchange(NamedTuple):
    """A request under the name of its purpose, and its answer. ``at`` is on a clock that never jumps."""

    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    answer: HttpAnswer
    at: int

    def __str__(self) -> str:
        unusual = ", ".join(f"{name}: {text}" for name, text in self.headers.items() if _USUAL.get(name) != text)
        return f"{self.method} {self.path}{' with ' if unusual else ''}{unusual}"


class EndpointVisit(NamedTuple):
    noun: str
    path: str
    exchanges: tuple[Exchange, ...]

    @property
    def is_served(self) -> bool:
        first = self.find(_GET.name)
        return first is not None and first.answer.http_code == 200

    def find(self, name: str) -> Exchange | None:
        return next((exchange for exchange in self.exchanges if exchange.name == name), None)

    def answers(self, *http_codes: int) -> Iterator[tuple[Exchange, HttpAnswer]]:
        for exchange in self.exchanges:
            if exchange.answer.http_code in http_codes:
                yield exchange, exchange.answer

    def documents(self) -> list[bytes]:
        ordinary = [answer for exchange, answer in self.answers(200) if exchange.name in _ORDINARY]
        bodies = [answer.body for answer in ordinary if answer.coding == "identity" and not answer.problem]
        return list(dict.fromkeys(bodies))


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

    def find_silence(self) -> str | None:
        """Why nothing was answered at all; None if something was."""
        answers = [exchange.answer for endpoint in self.endpoints for exchange in endpoint.exchanges]
        return answers[0].problem if answers and all(answer.http_code is None for answer in answers) else None

    @cached_property
    def cache(self) -> str | None:
        """The first header that gives away a cache in front, which answers some requests itself."""
        exchanges = (*self.live.exchanges, *self.history.exchanges)
        for name, text in (header for exchange in exchanges for header in exchange.answer.headers):
            is_server = name == "server" and any(server in text.lower() for server in _CACHE_SERVERS)
            if name in _CACHE_SIGNS or is_server:
                return f"{name}: {text}"
        return None

    @cached_property
    def reports(self) -> list[LiveReport | Remark]:
        return [read_document(body, LiveReport) for body in self.live.documents()]

    @cached_property
    def histories(self) -> list[History | Remark]:
        return [read_document(body, History) for body in self.history.documents()]


Rule = Callable[[Visit], Iterable[Remark]]


class VisitOptions(NamedTuple):
    protocol: str = "protocol"
    timeout_s: float = 5
    wait_s: float = 0
    rate_limit: bool = False


def visit(
    base: BaseUrl,
    options: VisitOptions,
    clock: Clock,
    sleep: Callable[[float], None],
    progress: Callable[[str], None] = lambda _: None,
) -> Visit:
    """Ask for everything once; if nothing answers the first request, nothing more is asked."""
    visitor = _Visitor(Client(base, clock), options, clock, progress)
    at = clock.now()
    descriptions: dict[str, HttpAnswer] = {}
    live_path = f"/api/v1/{options.protocol}/liveness"
    history_path = f"{live_path}/history"
    first = visitor.ask(live_path, _GET)
    if first is not None and first.http_code is not None:
        for ask in _ASKS[1:]:
            visitor.ask(live_path, ask)
        for ask in _ASKS:
            visitor.ask(history_path, ask)
        answers = [(path, visitor.ask(path, _GET)) for path in DESCRIPTIONS]
        descriptions = {path: answer for path, answer in answers if answer is not None and answer.http_code == 200}
        visitor.ask(live_path, _LAST)  # after the history, whose rows are compared with it (H2)
        if options.wait_s > 0:
            _watch(visitor, (live_path, history_path), sleep)
        if options.rate_limit:
            _ask_until_refused(visitor, live_path)
    return Visit(
        at,
        EndpointVisit("live report", live_path, tuple(visitor.exchanges[live_path])),
        EndpointVisit("history", history_path, tuple(visitor.exchanges[history_path])),
        descriptions,
    )


def parse_opaque_tag(etag: str | None) -> str | None:
    """The quoted part of an ETag; None if it is not one."""
    match = _ENTITY_TAG.fullmatch(etag or "")
    return None if match is None else match[1]


class _Visitor:
    """Asks, until several requests had no whole answer."""

    def __init__(self, client: Client, options: VisitOptions, clock: Clock, progress: Callable[[str], None]) -> None:
        self.options = options
        self.clock = clock
        self.exchanges: defaultdict[str, list[Exchange]] = defaultdict(list)  # by path
        self._client = client
        self._progress = progress
        self._unanswered = 0

    def ask(self, path: str, ask: Ask) -> HttpAnswer | None:
        """The answer; None if nothing is asked any more, or if no ETag is known that would have to be sent back."""
        sent = ask.tag
        for mark, coding in _TAG_OF.items():
            sent = sent.replace(mark, _find_newest_tag(self.exchanges[path], coding) or mark)
        if self._unanswered >= _MOST_UNANSWERED or any(mark in sent for mark in _TAG_OF):
            return None
        more = {"Accept-Encoding": ask.accept, "If-None-Match": sent}
        headers = {**ask.usual, **{name: text for name, text in more.items() if text}, **ask.headers}
        at, target = self.clock.elapsed_ms(), path + ask.suffix
        self._progress(f"{ask.method} {target}")
        answer = self._client.send(ask.method, target, headers, self.options.timeout_s)
        self._unanswered += bool(answer.problem)
        self.exchanges[path].append(Exchange(ask.name, ask.method, target, headers, answer, at))
        return answer


def _find_newest_tag(exchanges: list[Exchange], coding: str) -> str | None:
    for exchange in reversed(exchanges):
        if exchange.answer.http_code == 200 and exchange.answer.coding == coding:
            return parse_opaque_tag(exchange.answer.header("etag"))
    return None


def _watch(visitor: _Visitor, paths: tuple[str, ...], sleep: Callable[[float], None]) -> None:
    wait_s = visitor.options.wait_s
    times = max(1, min(int(wait_s), _MOST_LOOKS))
    began = visitor.clock.elapsed_ms()
    for look in range(times + 1):
        due_in_s = look * wait_s / times - (visitor.clock.elapsed_ms() - began) / 1000
        if due_in_s > 0:
            sleep(due_in_s)
        for path in paths:
            visitor.ask(path, _WATCH)


def _ask_until_refused(visitor: _Visitor, path: str) -> None:
    """Ask until refused (E2), and then once more for the whole page; HEAD requests count too, and cost least."""
    until = visitor.clock.elapsed_ms() + _LIMIT_WITHIN_MS
    for _ in range(_MOST_TO_BE_REFUSED):
        answer = visitor.ask(path, Ask("limit", "HEAD"))
        if answer is None or answer.http_code == 429 or visitor.clock.elapsed_ms() > until:
            break
    visitor.ask(path, Ask("limit"))
