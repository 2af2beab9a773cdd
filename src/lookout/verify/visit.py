"""The requests of one visit, always the same ones, and what came back."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from lookout.base.clock import Clock
from lookout.base.url import BaseUrl
from lookout.verify.client import Client, Headers, HttpAnswer, HttpOutcome, HttpRequest, NoAnswer
from lookout.verify.documents import quote

MOST_PER_PATH: Final = 40
_MOST_UNANSWERED: Final = 3
# A caller may be let through up to twice the limit where an edge counts by calendar minute (E2).
LIMIT_PER_MINUTE: Final = 120
_MOST_TO_BE_REFUSED: Final = 2 * LIMIT_PER_MINUTE + 5

_NAME: Final = "lookout-verify"
_IDENTITY: Final = ("Accept-Encoding", "identity")
_USUAL: Final[Headers] = (("User-Agent", _NAME), ("Accept", "*/*"), _IDENTITY)
# Every way to ask for a coding that has a rule of its own (A15).
CODINGS: Final = {
    "gzip": "gzip",
    "gzip of a browser": "gzip, deflate, br, zstd",
    "any coding": "*",
    "gzip refused": "gzip;q=0",
    "identity refused": "identity;q=0",
}
_ORIGIN: Final = ("Origin", "https://wallet.example")
# What a misguided server might take for parameters.
QUERY: Final = "?service=indexer&chainId=1&limit=1"
OTHER_TAG: Final = '"0000000000000000"'
# Methods that change nothing even where they are wrongly obeyed; an empty POST and PATCH come nearest to it.
OTHER_METHODS: Final = ("POST", "PATCH", "PROPFIND")
# What a cache leaves in the headers of its answers.
_CACHE_SIGNS: Final = (
    *("age", "via", "cache-status", "x-cache", "x-cache-status", "x-cache-hits", "x-proxy-cache", "x-varnish"),
    *("x-served-by", "x-vercel-cache", "x-amz-cf-id", "cf-cache-status", "cf-ray"),
)
# nginx is here because one with proxy_cache gives no other sign.
_CACHE_SERVERS: Final = ("cloudflare", "varnish", "akamai", "cloudfront", "fastly", "bunnycdn", "nginx")
_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


class Exchange(NamedTuple):
    """A request under the name of its purpose, and its outcome. ``at`` is on a clock that never jumps."""

    name: str
    request: HttpRequest
    outcome: HttpOutcome
    at: int


class EndpointVisit(NamedTuple):
    """All requests to one of the two endpoints, in order."""

    noun: str
    path: str
    exchanges: tuple[Exchange, ...]

    @property
    def is_live(self) -> bool:
        return self.noun == "live report"

    @property
    def first_code(self) -> int | None:
        """What the first GET got; None if there was no answer."""
        first = self.outcome("get")
        return first.http_code if isinstance(first, HttpAnswer) else None

    def named(self, name: str) -> Exchange | None:
        """The last request of that name."""
        return next((exchange for exchange in reversed(self.exchanges) if exchange.name == name), None)

    def outcome(self, name: str) -> HttpOutcome:
        exchange = self.named(name)
        return NoAnswer("not asked", was_sent=False) if exchange is None else exchange.outcome

    def answers(self, *http_codes: int) -> Iterator[tuple[Exchange, HttpAnswer]]:
        for exchange in self.exchanges:
            if isinstance(exchange.outcome, HttpAnswer) and exchange.outcome.http_code in http_codes:
                yield exchange, exchange.outcome

    def documents(self) -> Iterator[tuple[Exchange, bytes]]:
        """The bodies that came whole and plain to an ordinary GET."""
        for exchange, answer in self.answers(200):
            plain = exchange.request.method == "GET" and exchange.request.path == self.path
            if plain and read_coding(answer) == "identity" and not answer.problem:
                yield exchange, answer.body


class Limit(NamedTuple):
    """What came of asking until refused: after how many requests on the path in all, and within how long."""

    made: int
    took_ms: int
    refused: HttpOutcome


class Visit(NamedTuple):
    """Everything that was seen. ``at`` is the wall clock's instant of the beginning."""

    base: str
    protocol: str
    at: int
    live: EndpointVisit
    history: EndpointVisit
    elsewhere: tuple[Exchange, ...]
    limit: Limit | None = None

    @property
    def cache(self) -> str | None:
        """The first header that gives a cache away. A cache answers some requests itself. That excuses what a cache may
        do (RFC 9111), and nothing else: it refuses methods, obeys Range, compares If-None-Match with the one form it
        has, unpacks and so weakens an ETag, and keeps copies."""
        for exchange in (*self.live.exchanges, *self.history.exchanges):
            for name, text in exchange.outcome.headers if isinstance(exchange.outcome, HttpAnswer) else ():
                is_server = name == "server" and any(server in text.lower() for server in _CACHE_SERVERS)
                if name in _CACHE_SIGNS or is_server:
                    return f"{name}: {quote(text)[1:-1]}"
        return None


class VisitOptions(NamedTuple):
    """How a visit is to be made. Its last request begins within ``within_s``; to watch and to try the limit take their
    time after that."""

    protocol: str = "protocol"
    timeout_s: float = 5
    wait_s: float = 0
    rate_limit: bool = False
    within_s: float = 30
    limit_within_s: float = 50


def visit(
    base: BaseUrl,
    options: VisitOptions,
    clock: Clock,
    sleep: Callable[[float], None],
    progress: Callable[[str], None] = lambda _: None,
) -> Visit:
    """Ask for everything once; after a first request without an answer, nothing more is asked."""
    visitor = _Visitor(Client(base, clock), options, clock, progress)
    at = clock.now()
    live_path = f"/api/v1/{options.protocol}/liveness"
    live, history = _Path(visitor, "live report", live_path), _Path(visitor, "history", f"{live_path}/history")
    elsewhere = _Path(visitor, "elsewhere", "")
    limit = None
    if isinstance(live.ask("get"), HttpAnswer):
        for path in (live, history):
            _ask_everything(path, f"{QUERY}&at={at}")
        _ask_elsewhere(elsewhere, live_path)
        live.ask("last")  # after the history, whose rows are compared with it (H2)
        if options.wait_s > 0:
            _watch((live, history), visitor, sleep)
        if options.rate_limit:
            limit = _ask_until_refused(live, visitor)
    return Visit(
        str(base), options.protocol, at, live.endpoint(), history.endpoint(), tuple(elsewhere.exchanges), limit
    )


def parse_opaque_tag(etag: str | None) -> str | None:
    """The quoted part of an ETag, or None if it is not one."""
    match = _ENTITY_TAG.fullmatch(etag or "")
    return None if match is None else match[1]


def find_newest_tag(exchanges: Iterable[Exchange], coding: str) -> str | None:
    """The quoted part of the last ETag that a document came with, in that coding."""
    for _, _, outcome, _ in reversed(list(exchanges)):
        if isinstance(outcome, HttpAnswer) and outcome.http_code == 200 and read_coding(outcome) == coding:
            return parse_opaque_tag(outcome.header("etag"))
    return None


def read_coding(answer: HttpAnswer) -> str:
    return (answer.header("content-encoding") or "identity").lower().replace("x-gzip", "gzip")


class _Visitor:
    """Asks until the time for everything together is over. A request that has begun gets all of its own time: none
    that the visit itself cut short could be distinguished from one that the deployment did not answer."""

    def __init__(self, client: Client, options: VisitOptions, clock: Clock, progress: Callable[[str], None]) -> None:
        self.options = options
        self.clock = clock
        self.progress = progress
        self._client = client
        self._unanswered = 0  # in a row
        self.allow(options.within_s)

    def allow(self, within_s: float) -> None:
        """Let requests begin for so long from now."""
        self._within_s = within_s
        self._begin_by = self.clock.elapsed_ms() + int(within_s * 1000)

    def ask(self, request: HttpRequest) -> HttpOutcome:
        if self.clock.elapsed_ms() >= self._begin_by:
            return NoAnswer(f"not asked: the visit had taken {self._within_s:g} s already", was_sent=False)
        if self._unanswered >= _MOST_UNANSWERED:
            return NoAnswer(f"not asked: {_MOST_UNANSWERED} requests in a row had no whole answer", was_sent=False)
        self.progress(f"{request.method} {request.path}")
        outcome = self._client.send(request, self.options.timeout_s)
        whole = isinstance(outcome, HttpAnswer) and not outcome.problem
        self._unanswered = 0 if whole else self._unanswered + 1
        return outcome


class _Path:
    """The requests on one path, of which there are never more than allowed."""

    def __init__(self, visitor: _Visitor, noun: str, path: str) -> None:
        self.noun = noun
        self.path = path
        self.exchanges: list[Exchange] = []
        self._visitor = visitor
        self._bodies: dict[bytes, bytes] = {}  # a body that comes often is kept once

    @property
    def left(self) -> int:
        return MOST_PER_PATH - len(self.exchanges)

    def ask(self, name: str, method: str = "GET", *more: tuple[str, str], suffix: str = "") -> HttpOutcome:
        given = {header for header, _ in more}
        usual = tuple(header for header in _USUAL if header[0] not in given)
        return self.ask_exactly(name, HttpRequest(method, self.path + suffix, (*usual, *more)))

    def ask_exactly(self, name: str, request: HttpRequest) -> HttpOutcome:
        if self.left <= 0:
            return NoAnswer(f"not asked: {MOST_PER_PATH} requests were made on this path", was_sent=False)
        at = self._visitor.clock.elapsed_ms()
        outcome = self._visitor.ask(request)
        if isinstance(outcome, HttpAnswer):
            outcome = outcome._replace(body=self._bodies.setdefault(outcome.body, outcome.body))
        self.exchanges.append(Exchange(name, request, outcome, at))
        return outcome

    def ask_with_tag(
        self, name: str, form: str = "TAG", method: str = "GET", *, of: str = "identity", accept: str = "identity"
    ) -> None:
        """Send the newest ETag of a coding back, as ``form`` has it; again if the document has just changed."""
        for _ in range(3):
            tag = find_newest_tag(self.exchanges, of)
            if tag is None:
                return
            headers = (("If-None-Match", form.replace("TAG", tag)), ("Accept-Encoding", accept))
            outcome = self.ask(name, method, *headers)
            if isinstance(outcome, HttpAnswer) and outcome.http_code == 200 and of != accept:
                self.ask("refresh", "GET", ("Accept-Encoding", of))
            if find_newest_tag(self.exchanges, of) == tag:
                return

    def endpoint(self) -> EndpointVisit:
        return EndpointVisit(self.noun, self.path, tuple(self.exchanges))


def _ask_everything(path: _Path, query: str) -> None:
    """``query`` is one that nobody has asked for before, so that no cache has a copy of its own for it (E4)."""
    if not path.exchanges:
        path.ask("get")
    path.ask("head", "HEAD")
    path.ask("query", suffix=query)
    path.ask("again")
    path.ask_with_tag("exact")
    path.ask_with_tag("weak", "W/TAG")
    path.ask_with_tag("list", f"{OTHER_TAG}, W/TAG")
    path.ask_with_tag("conditional head", method="HEAD")
    path.ask("star", "GET", ("If-None-Match", "*"))
    path.ask("other tag", "GET", ("If-None-Match", OTHER_TAG))
    path.ask("range", "GET", ("Range", "bytes=0-9"))
    path.ask("accept", "GET", ("Accept", "text/html"))
    for name, accept in CODINGS.items():
        path.ask(name, "GET", ("Accept-Encoding", accept))
    path.ask("gzip head", "HEAD", ("Accept-Encoding", "gzip"))
    path.ask_with_tag("gzip exact", of="gzip", accept="gzip")
    path.ask_with_tag("gzip for identity", of="gzip")
    path.ask_with_tag("identity for gzip", accept="gzip")
    path.ask("origin", "GET", _ORIGIN)
    path.ask_exactly("bare", HttpRequest("GET", path.path, ()))
    path.ask("options", "OPTIONS")
    path.ask(
        "preflight",
        "OPTIONS",
        _ORIGIN,
        ("Access-Control-Request-Method", "GET"),
        ("Access-Control-Request-Headers", "if-none-match"),
    )
    for method in OTHER_METHODS:
        path.ask(method, method, ("Content-Length", "0"))
    path.ask("last")


def _ask_elsewhere(elsewhere: _Path, live_path: str) -> None:
    elsewhere.ask("other path", suffix=f"{live_path}/no-such-thing")
    elsewhere.ask("slash", suffix=f"{live_path}/")
    for path in ("/schemas/liveness.json", "/schemas/history.json", "/openapi.json"):
        elsewhere.ask(path, suffix=path)


def _watch(paths: tuple[_Path, ...], visitor: _Visitor, sleep: Callable[[float], None]) -> None:
    """Look at both documents now and then for ``wait_s``, as often as the number of requests allows."""
    wait_s = visitor.options.wait_s
    times = max(1, min(int(wait_s), *(path.left for path in paths)) - 1)
    visitor.allow(wait_s + (times + 1) * len(paths) * visitor.options.timeout_s)
    began = visitor.clock.elapsed_ms()
    for path in paths:
        path.ask("watch")
    for look in range(1, times + 1):
        due_in_s = look * wait_s / times - (visitor.clock.elapsed_ms() - began) / 1000
        if due_in_s > 0:
            sleep(due_in_s)
        for path in paths:
            path.ask("watch")


def _ask_until_refused(live: _Path, visitor: _Visitor) -> Limit:
    """Ask until refused (E2), and then once more for the whole page; HEAD requests count too, and cost least."""
    visitor.allow(visitor.options.limit_within_s)
    head, get = (HttpRequest(method, live.path, _USUAL) for method in ("HEAD", "GET"))
    first_at, before = live.exchanges[0].at, len(live.exchanges)
    made, outcome = before + 1, visitor.ask(head)
    while isinstance(outcome, HttpAnswer) and outcome.http_code != 429 and made < before + _MOST_TO_BE_REFUSED:
        made, outcome = made + 1, visitor.ask(head)
    took_ms = visitor.clock.elapsed_ms() - first_at
    refused = isinstance(outcome, HttpAnswer) and outcome.http_code == 429
    return Limit(made, took_ms, visitor.ask(get) if refused else outcome)
