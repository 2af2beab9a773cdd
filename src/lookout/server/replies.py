"""The replies of a process, built once per publication and never per request, and the choice among them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol, get_args

import msgspec

from lookout.documents.api import ALLOWED_METHODS, CORS, PREFLIGHT_HEADERS, Headers
from lookout.documents.document import Document, compress, etag
from lookout.public.feeds import JSON
from lookout.server.connection import KEPT_HEADS, Closed, Connection
from lookout.server.limiter import CallerOnPath, Limiter
from lookout.server.request import Callers, HttpRequest, Wire

LIVE_CACHING: Final = "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"  # A9
HISTORY_CACHING: Final = "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"  # A10
OWN_CACHING: Final = "public, max-age=300"
LIVE_RETRY_S: Final = 15  # no reader asks more often (C10)
HISTORY_RETRY_S: Final = 30  # A12

CODES: Final = (200, 204, 304, 400, 404, 405, 429, 503)
ENDPOINTS: Final = ("live", "history")
ROUTES: Final = (*ENDPOINTS, "other")
_VARY: Final = ("vary", "Accept-Encoding")
_LARGE: Final = 65_536
_OWN: Final = "own"  # the operator's own routes count together under it
_FILES: Final = "/assets/"  # the page's files count separately, since a single view loads all
# A tag with the comma or the end of the list after it; tags may hold commas, but no quotation mark.
_TAG: Final = re.compile(r'(?:\A|,)[ \t]*(?:W/)?("[^"]*")(?=[ \t]*(?:,|\Z))')


@dataclass(slots=True)
class Reply:
    """A code, headers, and a body, which the answer to HEAD omits."""

    http_code: int
    headers: Headers
    body: bytes
    _date: bytes = field(default=b"", compare=False, repr=False)
    _encoded: dict[tuple[bool, bool], Wire] = field(default_factory=dict, compare=False, repr=False)

    def encode(self, date: bytes, *, with_body: bool, keeps_open: bool) -> Wire:
        """The bytes to send, with this date line; cached by arguments. A large body is not copied for a new date: slow
        readers share it."""
        if date is not self._date:
            self._date = date
            self._encoded.clear()
        found = self._encoded.get((with_body, keeps_open))
        if found is None:
            first = f"HTTP/1.1 {self.http_code} {HTTPStatus(self.http_code).phrase}\r\n".encode()
            lines = "".join(f"{name}: {text}\r\n" for name, text in self.headers).encode()
            last = b"\r\n" if keeps_open else b"connection: close\r\n\r\n"
            head, body = b"".join((first, date, lines, last)), self.body if with_body else b""
            found = (head, body) if len(body) > _LARGE else (head + body,)
            self._encoded[with_body, keeps_open] = found
        return found


class Form(NamedTuple):
    """The replies of one representation. Without an ETag no client can have a copy yet."""

    found: Reply
    etag: str = ""
    not_modified: Reply | None = None


class Resource(NamedTuple):
    """The replies of one path: plain and, if available, gzip."""

    plain: Form
    preflight: Reply
    not_allowed: Reply
    gzip: Form | None = None


def make_reply(http_code: int, headers: Headers, body: bytes = b"") -> Reply:
    if http_code not in (204, 304):  # they have no content, so neither its length nor its type
        headers = (*headers, ("content-length", str(len(body))), ("x-content-type-options", "nosniff"))
    return Reply(http_code, headers, body)


PREFLIGHT: Final = make_reply(204, PREFLIGHT_HEADERS)


def api_error(http_code: int, message: str, *headers: tuple[str, str]) -> Reply:
    """An error of the API itself (A8)."""
    return make_reply(
        http_code,
        (("content-type", JSON), ("cache-control", "no-store"), *headers, *CORS),
        msgspec.json.encode({"error": message}),
    )


NOT_ALLOWED: Final = api_error(405, f"only {ALLOWED_METHODS} are allowed here", ("allow", ALLOWED_METHODS))
# For bytes that are not a request which can be answered.
_REFUSALS: Final = {
    400: "not a valid HTTP/1.1 request",
    414: "the request's target is longer than 32 KiB",
    431: "the request's head is longer than 32 KiB",
    501: "chunked is the only supported transfer coding",
    505: "only HTTP/1.x is supported",
}
REFUSALS: Final = {http_code: api_error(http_code, message) for http_code, message in _REFUSALS.items()}
NO_HOST: Final = api_error(400, "exactly one valid Host header is required")

# The gateway's errors: neither the API's, nor readable for scripts of other origins (E1).
NOT_FOUND: Final = make_reply(
    404, (("content-type", JSON), ("cache-control", "no-store")), msgspec.json.encode({"message": "no such route"})
)


def _missing(what: str, retry_after_s: int) -> Resource:
    error = api_error(503, f"{what} is unavailable", ("retry-after", str(retry_after_s)))
    return Resource(Form(error), PREFLIGHT, NOT_ALLOWED)


NO_LIVE: Final = _missing("the liveness report", LIVE_RETRY_S)
NO_HISTORY: Final = _missing("the liveness history", HISTORY_RETRY_S)


def endpoint(document: Document, caching: str, packed: Document | None = None) -> Resource:
    forms = [(form.body, form.etag) for form in (document, packed) if form is not None]
    return _found(JSON, forms, (("cache-control", caching), *CORS))


def convenience_resource(
    content_type: str, body: bytes, *headers: tuple[str, str], caching: str = OWN_CACHING
) -> Resource:
    """A route of the operator's own: a convenience, not part of the API."""
    packed = compress(body)
    bodies = (body, packed) if len(packed) < len(body) else (body,)
    return _found(content_type, [(form, etag(form)) for form in bodies], (("cache-control", caching), *CORS, *headers))


def _found(content_type: str, forms: Sequence[tuple[bytes, str]], headers: Headers) -> Resource:
    """A resource in one or two forms, given as body and ETag. With ``x-lookout-etags`` a cache in front can answer
    If-None-Match for both forms, whichever it has."""
    headers = (*headers, ("x-lookout-etags", ", ".join(tag for _, tag in forms)))
    kind = ("content-type", content_type)
    plain, *packed = forms
    gzip = _form((kind, ("content-encoding", "gzip")), *packed[0], headers) if packed else None
    return Resource(_form((kind,), *plain, headers), PREFLIGHT, NOT_ALLOWED, gzip)


def _form(kind: Headers, body: bytes, tag: str, headers: Headers) -> Form:
    validators: Headers = (("etag", tag), _VARY, *headers)
    return Form(make_reply(200, (*kind, *validators), body), tag, make_reply(304, validators))


@lru_cache  # by seconds: few values
def too_many_requests(retry_after_s: int) -> Reply:
    """The edge's page for a caller that asks too often (E2); scripts of other origins cannot read it."""
    return make_reply(
        429,
        (
            ("content-type", "text/plain; charset=utf-8"),
            ("cache-control", "no-store"),
            ("retry-after", str(retry_after_s)),
        ),
        f"error code: 1015\n\nYou are being rate limited. Try again in {retry_after_s} s.\n".encode(),
    )


def respond(
    resources: Mapping[str, Resource], method: str, path: str, if_none_match: str | None, *, prefers_gzip: bool = False
) -> Reply:
    """The reply to a request. ``path`` is without the query, which has no effect (A1); methods are
    case-sensitive."""
    if method == "CONNECT":
        return NOT_ALLOWED
    if path == "*":
        return PREFLIGHT
    resource = _find(resources, path)
    if resource is None:
        return NOT_FOUND
    if method in ("GET", "HEAD"):
        chosen, other = resource.plain, resource.gzip
        if other is not None and prefers_gzip:
            chosen, other = other, chosen
        if if_none_match is None:
            return chosen.found
        return _unchanged(if_none_match, chosen) or _unchanged(if_none_match, other) or chosen.found
    return resource.preflight if method == "OPTIONS" else resource.not_allowed


def _find(resources: Mapping[str, Resource], path: str) -> Resource | None:
    try:
        return resources[path]  # ``get`` would not build a reply on demand
    except KeyError:
        return None


def _unchanged(if_none_match: str, form: Form | None) -> Reply | None:
    if form is None or form.not_modified is None:
        return None
    return form.not_modified if matches(if_none_match, form.etag) else None


def matches(if_none_match: str, etag: str) -> bool:
    """Whether the header names this ETag, by RFC 9110 (A5), by weak comparison: ``W/`` is ignored. ``*`` matches any
    ETag."""
    if if_none_match == etag:
        return True
    return etag in _TAG.findall(if_none_match) if etag in if_none_match else if_none_match.strip(" \t") == "*"


@dataclass(slots=True)
class RequestCount:
    """It is looked up once, and then only added to."""

    number: int = 0


class Counts:
    """What a server counts, as plain numbers: they are made into metrics when those are read."""

    def __init__(self) -> None:
        self.tallies = {(route, code): RequestCount() for route in ROUTES for code in CODES}
        self.closed: dict[Closed, int] = dict.fromkeys(get_args(Closed), 0)
        self.connections = 0
        self.store_errors = 0

    @property
    def requests(self) -> dict[tuple[str, int], int]:
        """By route and code."""
        return {key: tally.number for key, tally in self.tallies.items()}


@dataclass(frozen=True, slots=True)
class _Ready:
    """The answer to a request, valid for these resources."""

    resources: Mapping[str, Resource]
    tally: RequestCount
    wire: Wire


class Served(Protocol):
    """What is served now. ``resources`` is replaced as a whole."""

    resources: Mapping[str, Resource]


class Responder:
    """Answers requests in one process, counts them, and refuses callers that ask too often (E2)."""

    def __init__(
        self, served: Served, paths: Sequence[str], callers: Callers, limiter: Limiter | None, counts: Counts
    ) -> None:
        """``paths`` are those of the two endpoints."""
        self._served = served
        self._callers = callers
        self._limiter = limiter
        self._counts = counts
        self._route = dict(zip(paths, ENDPOINTS, strict=True))
        self._date = b""
        self._ready: dict[HttpRequest, _Ready] = {}  # for heads cached in this second

    def answer(self, request: HttpRequest, connection: Connection) -> Wire:
        banned_ms = 0
        if self._limiter is not None:
            caller = connection.located.get(request.path) or self._locate(self._limiter, request, connection)
            if caller is not None:
                banned_ms = self._limiter.count_request(caller)
        ready = self._ready.get(request)
        if banned_ms:
            ready = self._encode(request, too_many_requests(-(-banned_ms // 1000)), {})
        elif ready is None or ready.resources is not self._served.resources:
            ready = self._prepare(request)
        ready.tally.number += 1
        return ready.wire

    def refuse(self, http_code: int, *, with_body: bool) -> Wire:
        return REFUSALS[http_code].encode(self._date, with_body=with_body, keeps_open=False)

    def note_closed(self, reason: Closed) -> None:
        self._counts.closed[reason] += 1

    def begin_second(self, date: bytes, connections: int) -> None:
        self._date = date
        self._ready.clear()
        self._counts.connections = connections
        if self._limiter is not None:
            self._limiter.begin_second()

    def _prepare(self, request: HttpRequest) -> _Ready:
        reply, resources = NO_HOST, self._served.resources
        if request.names_one_host:
            tags = request.if_none_match
            reply = respond(resources, request.method, request.path, tags, prefers_gzip=request.prefers_gzip)
        ready = self._encode(request, reply, resources)
        if request.may_be_kept and len(self._ready) < KEPT_HEADS:
            self._ready[request] = ready
        return ready

    def _encode(self, request: HttpRequest, reply: Reply, resources: Mapping[str, Resource]) -> _Ready:
        wire = reply.encode(self._date, with_body=request.method != "HEAD", keeps_open=request.keeps_open)
        return _Ready(resources, self._counts.tallies[self._route.get(request.path, "other"), reply.http_code], wire)

    def _locate(self, limiter: Limiter, request: HttpRequest, connection: Connection) -> CallerOnPath | None:
        """The caller, on the path by which the request is counted; None if there is no such path."""
        path, peer = request.path if request.path in self._route else self._group(request.path), connection.caller
        if path is None:
            return None
        if not peer.is_trusted:  # a proxy's next request may be another caller's
            located = connection.located[request.path] = limiter.locate_caller(path, peer.network)
            return located
        forwarded = request.join("x-forwarded-for")
        caller = peer if forwarded is None else self._callers.follow(peer, forwarded)
        return limiter.locate_caller(path, caller.network)

    def _group(self, path: str) -> str | None:
        """The name under which a path is counted; None for an unknown path."""
        if _find(self._served.resources, path) is None:
            return None
        return path if path.startswith(_FILES) else _OWN
