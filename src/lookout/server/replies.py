"""Ready-made replies, built once per publication and never per request: the two documents and the operator's own routes
(E1, V3)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from lookout.base.logger import get_logger
from lookout.documents.document import (
    ALLOWED_METHODS,
    CORS,
    PREFLIGHT_HEADERS,
    Document,
    Headers,
    compress,
    etag,
    paths,
)
from lookout.documents.reports import build_schemas
from lookout.public import about
from lookout.public.about import Description
from lookout.public.feeds import JSON, FeedFiles, File, make_feed_files
from lookout.public.page import html
from lookout.public.page.assets import EMBED_PATH, JAVASCRIPT, encode_badge
from lookout.public.picture import Names
from lookout.server.request import Wire

LIVE_CACHING: Final = "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"  # A9
HISTORY_CACHING: Final = "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"  # A10
OWN_CACHING: Final = "public, max-age=300"
PAGE_CACHING: Final = "no-cache"
LIVE_RETRY_S: Final = 15  # no reader asks more often (C10)
HISTORY_RETRY_S: Final = 30  # A12

# A picture or a feed, opened as a page, runs and loads nothing.
_SEALED: Final[Headers] = (("content-security-policy", "default-src 'none'"),)
_VARY: Final = ("vary", "Accept-Encoding")
_LARGE: Final = 65_536


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


class TimedReplies(NamedTuple):
    """Replies that time makes untrue: to be rebuilt after ``holds_ms``, unless that is None. ``later`` builds rarely
    requested ones on demand."""

    ready: Mapping[str, Resource]
    later: Callable[[str], Resource | None]
    holds_ms: int | None


NO_TIMED_REPLIES: Final = TimedReplies({}, lambda _: None, None)

# Builds replies from both documents' bytes, the instant, and the time since the live report arrived.
Feeds = Callable[[bytes | None, bytes | None, int, int], TimedReplies]


class Site(NamedTuple):
    """The two endpoints' paths, constant replies, and the builder of replies that time makes untrue, called after every
    publication and when they expire."""

    paths: tuple[str, str]
    others: Mapping[str, Resource] = MappingProxyType({})
    feeds: Feeds = lambda *_: NO_TIMED_REPLIES


class ReplyTable(Mapping[str, Resource]):
    """Replies by path. A reply from ``later`` is built once per table."""

    def __init__(self, ready: dict[str, Resource], later: Callable[[str], Resource | None]) -> None:
        self._ready = ready
        self._later = later

    def __getitem__(self, path: str) -> Resource:
        found = self._ready.get(path)
        if found is None:
            found = self._later(path)
            if found is None:
                raise KeyError(path)
            self._ready[path] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._ready)

    def __len__(self) -> int:
        return len(self._ready)


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
# For bytes that are no request.
REFUSALS: Final = {
    400: api_error(400, "this is no request of HTTP/1.1"),
    431: api_error(431, "the head of a request may have 32 KiB"),
}
NO_HOST: Final = api_error(400, "there has to be one Host, with the name of a host in it")

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
    """A route of the operator's own: a convenience, no part of the API."""
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


def make_timed_replies(made: FeedFiles) -> TimedReplies:
    """Replies with the status for other tools; no copy is used for longer than it is true."""

    def resource(file: File) -> Resource:
        caching = f"public, max-age={made.max_age_s}, must-revalidate"
        return convenience_resource(file.media_type, file.body, *_SEALED, caching=caching)

    def later(path: str) -> Resource | None:
        badge = made.badge_of_row(path)
        return None if badge is None else resource(badge)

    ready = {path: NO_LIVE if file is None else resource(file) for path, file in made.files.items()}
    return TimedReplies(ready, later, made.holds_ms)


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


# The page loads nothing from other origins, runs only its own script, and is shown in no frame.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS: Final[Headers] = (
    ("content-security-policy", _POLICY),
    ("referrer-policy", "no-referrer"),
)

log = get_logger()


def build_site(protocol: str, description: Description, assets: dict[str, Resource]) -> Site:
    live_path, history_path = paths(protocol)
    names = Names(protocol, description.read())

    def make_replies(live: bytes | None, history: bytes | None, now: int, received_ago_ms: int) -> TimedReplies:
        """The page, the feeds, and the description with current and future notes."""
        made = make_timed_replies(make_feed_files(names, live, history, now, received_ago_ms))
        current = description.drop_past_notes(now)
        page = html.render(live, live_path, history_path, current, now, received_ago_ms)
        return made._replace(ready={**made.ready, **_about_route(current), "/": build_status_page(page)})

    return Site(
        (live_path, history_path),
        build_description_routes(protocol, replace(description, notes=[]))
        | build_embed_route(encode_badge(description))
        | assets,
        make_replies,
    )


def build_stored_site(protocol: str, own: Description, assets: dict[str, Resource], stored: bytes) -> Site:
    """The site of the stored description, or of this server's own if that cannot be read."""
    try:
        monitors = msgspec.json.decode(stored, type=Description)
    except (ValueError, RecursionError):  # ValueError: not of the type, not JSON, or not UTF-8
        log.warning("the stored description of the deployment cannot be read; that of this server's file is served")
        return build_site(protocol, own, assets)
    return build_site(protocol, own.follow_monitor(monitors), assets)


def build_description_routes(protocol: str, description: Description) -> dict[str, Resource]:
    """Both schemas, the OpenAPI description, in which ``make schemas`` left a gap for the protocol, and the
    deployment's description."""
    bodies = {f"/schemas/{name}.json": msgspec.json.encode(schema) for name, schema in build_schemas().items()}
    template = files(__package__).joinpath("openapi.json").read_bytes()
    bodies["/openapi.json"] = template.replace(b"{protocol}", protocol.encode())
    return {path: convenience_resource(JSON, body) for path, body in bodies.items()} | _about_route(description)


def _about_route(description: Description) -> dict[str, Resource]:
    return {about.PATH: _build_about(description.encode())}


@lru_cache(2)  # requested with every publication, and seldom different
def _build_about(body: bytes) -> Resource:
    return convenience_resource(JSON, body, caching=PAGE_CACHING)  # a reload or a note may change it


def build_asset_routes(files: Mapping[str, tuple[str, bytes]]) -> dict[str, Resource]:
    """The status page's files: media type and content by path."""
    return {path: convenience_resource(media_type, body, *_GUARDS) for path, (media_type, body) in files.items()}


def build_embed_route(body: bytes) -> dict[str, Resource]:
    """The badge for other sites, also for those that isolate themselves from other origins."""
    script = convenience_resource(JAVASCRIPT, body, ("cross-origin-resource-policy", "cross-origin"))
    return {EMBED_PATH: script}


def build_status_page(body: bytes) -> Resource:
    return convenience_resource("text/html; charset=utf-8", body, *_GUARDS, caching=PAGE_CACHING)
