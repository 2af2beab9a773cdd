"""Every reply there is, ready to be sent: made once per publication, never per request."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from lookout.core.cors import ALLOWED_METHODS, CORS, PREFLIGHT_HEADERS, Headers
from lookout.core.wire import Document, etag
from lookout.feeds.making import JSON, File, Made

LIVE_CACHING: Final = "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300"  # A9
HISTORY_CACHING: Final = "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300"  # A10
OWN_CACHING: Final = "public, max-age=300"
PAGE_CACHING: Final = "no-cache"
HISTORY_RETRY_S: Final = 30  # A12

# A picture or a feed that is opened by itself runs nothing, loads nothing and is taken for nothing else.
_SEALED: Final[Headers] = (("content-security-policy", "default-src 'none'"), ("x-content-type-options", "nosniff"))


class Reply(NamedTuple):
    """A code, headers in the two forms that servers want, and a body, which a HEAD request is not sent."""

    http_code: int
    headers: list[tuple[str, str]]
    raw_headers: list[tuple[bytes, bytes]]
    body: bytes


class Resource(NamedTuple):
    """The replies of one path. Without an ETag there is nothing yet that a client could have."""

    found: Reply
    preflight: Reply
    not_allowed: Reply
    etag: str = ""
    not_modified: Reply | None = None


class Passing(NamedTuple):
    """Replies that time makes untrue: to be made anew after ``holds_ms``, unless that is None. ``later`` makes those
    that few ask for."""

    ready: Mapping[str, Resource]
    later: Callable[[str], Resource | None]
    holds_ms: int | None


NOTHING_PASSING: Final = Passing({}, lambda _: None, None)


class Table(Mapping[str, Resource]):
    """Replies by path. What ``later`` makes is made once, and kept for as long as the table."""

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


def reply(http_code: int, headers: Headers, body: bytes = b"") -> Reply:
    if http_code not in (204, 304):  # those have no content, and so no length of it
        headers = (*headers, ("content-length", str(len(body))))
    return Reply(http_code, list(headers), [(name.encode(), text.encode()) for name, text in headers], body)


PREFLIGHT: Final = reply(204, PREFLIGHT_HEADERS)


def api_error(http_code: int, message: str, *headers: tuple[str, str]) -> Reply:
    """An error of the API itself (A8)."""
    return reply(
        http_code,
        (("content-type", JSON), ("cache-control", "no-store"), *headers, *CORS),
        msgspec.json.encode({"error": message}),
    )


NOT_ALLOWED: Final = api_error(405, f"only {ALLOWED_METHODS} are allowed here", ("allow", ALLOWED_METHODS))
NO_CALLER: Final = api_error(400, "X-Forwarded-For is not ASCII")
NO_LIVE: Final = Resource(api_error(503, "the liveness report is unavailable"), PREFLIGHT, NOT_ALLOWED)
NO_HISTORY: Final = Resource(
    api_error(503, "the liveness history is unavailable", ("retry-after", str(HISTORY_RETRY_S))), PREFLIGHT, NOT_ALLOWED
)

# The gateway's, and so neither an error of the API nor readable for scripts of other origins (E1).
NOT_FOUND: Final = reply(
    404, (("content-type", JSON), ("cache-control", "no-store")), msgspec.json.encode({"message": "no such route"})
)


def endpoint(document: Document, caching: str) -> Resource:
    """The replies of an endpoint while this is its document."""
    validators: Headers = (("cache-control", caching), ("etag", document.etag), *CORS)
    return Resource(
        found=reply(200, (("content-type", JSON), *validators), document.body),
        preflight=PREFLIGHT,
        not_allowed=NOT_ALLOWED,
        etag=document.etag,
        not_modified=reply(304, validators),
    )


def operators_own(content_type: str, body: bytes, *headers: tuple[str, str], caching: str = OWN_CACHING) -> Resource:
    """A route of the operator's own: a convenience, no part of the API."""
    tag = etag(body)
    validators: Headers = (("cache-control", caching), ("etag", tag), *CORS, *headers)
    return Resource(
        found=reply(200, (("content-type", content_type), *validators), body),
        preflight=PREFLIGHT,
        not_allowed=NOT_ALLOWED,
        etag=tag,
        not_modified=reply(304, validators),
    )


def passing(made: Made) -> Passing:
    """What other tools read of how things are: no copy of it is used for longer than it may be true."""

    def resource(file: File) -> Resource:
        caching = f"public, max-age={made.max_age_s}, must-revalidate"
        return operators_own(file.media_type, file.body, *_SEALED, caching=caching)

    def later(path: str) -> Resource | None:
        badge = made.badge_of_row(path)
        return None if badge is None else resource(badge)

    ready = {path: NO_LIVE if file is None else resource(file) for path, file in made.files.items()}
    return Passing(ready, later, made.holds_ms)


def too_many_requests(retry_after_s: int) -> Reply:
    """The edge's page for a caller that asks too often (E2); scripts of other origins cannot read it."""
    return reply(
        429,
        (
            ("content-type", "text/plain; charset=utf-8"),
            ("cache-control", "no-store"),
            ("retry-after", str(retry_after_s)),
        ),
        f"error code: 1015\n\nYou are being rate limited. Try again in {retry_after_s} s.\n".encode(),
    )
