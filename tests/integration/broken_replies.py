"""Replies that break a clause each, and which one; and replies by which a clause cannot be seen."""

import json
from collections.abc import Callable
from typing import Final

from lookout.documents.document import compress
from lookout.server.replies import respond
from lookout.server.request import prefers_gzip
from tests.integration.planted import Asked, Break, Sent, documents, resources
from tests.integration.served import HISTORY, LIVE


def header(name: str, text: str | None) -> Break:
    """With another text, or left out."""

    def breaks(_asked: Asked, sent: Sent) -> None:
        if text is None:
            del sent[name]
        else:
            sent[name] = text

    return breaks


def body(content: bytes) -> Break:
    """Another one, without a word of its length."""
    return lambda _asked, sent: setattr(sent, "body", content)


def rewritten(content: bytes) -> Break:
    return lambda _asked, sent: sent.rewrite(content)


def becomes(http_code: int, content: bytes, kind: str = "application/json; charset=utf-8") -> Break:
    return lambda _asked, sent: sent.become(http_code, content, kind)


def only(breaks: Break, *http_codes: int, method: str = "", path: str = "") -> Break:
    """The same, but only what has one of these codes, and answers this method on this path."""

    def broken(asked: Asked, sent: Sent) -> None:
        is_meant = method in ("", asked.method) and path in ("", asked.path)
        if is_meant and (not http_codes or sent.http_code in http_codes):
            breaks(asked, sent)

    return broken


def away(error: str) -> Break:
    """A 503 as the API has it, but for Retry-After."""

    def breaks(asked: Asked, sent: Sent) -> None:
        cors = [header for header in sent.headers if header[0].startswith("access-control")]
        sent.become(503, b"" if asked.method == "HEAD" else json.dumps({"error": error}).encode())
        sent.headers += [*cors, ("cache-control", "no-store")]

    return breaks


def wants_a_key(asked: Asked, sent: Sent) -> None:
    if asked.path in (LIVE, HISTORY) and asked.method in ("GET", "HEAD"):
        sent.become(401, b'{"error": "who are you?"}')


def ignored(what: Callable[[str], bool]) -> Break:
    """Some forms of If-None-Match are not understood."""

    def breaks(asked: Asked, sent: Sent) -> None:
        if sent.http_code == 304 and asked.method == "GET" and what(asked.headers["if-none-match"]):
            whole = respond(
                resources(*documents()),
                "GET",
                asked.path,
                None,
                prefers_gzip=prefers_gzip(asked.headers.get("accept-encoding", "")),
            )
            sent.http_code, sent.headers, sent.body = whole.http_code, list(whole.headers), whole.body

    return breaks


def every_tag_matches(asked: Asked, sent: Sent) -> None:
    if asked.method == "GET" and "if-none-match" in asked.headers and sent.http_code == 200:
        sent.http_code, sent.body = 304, b""
        del sent["content-length"]
        del sent["content-type"]


def obeys_post(asked: Asked, sent: Sent) -> None:
    if asked.method == "POST":
        sent.http_code, sent.body = 204, b""
        del sent["content-length"]


def query_is_refused(asked: Asked, sent: Sent) -> None:
    if asked.query:
        sent.become(400, b'{"error": "no parameters"}')


def range_is_obeyed(asked: Asked, sent: Sent) -> None:
    if "range" in asked.headers and sent.http_code == 200:
        sent.http_code = 206
        sent.rewrite(sent.body[:10])


def cut_short(asked: Asked, sent: Sent) -> None:
    if sent.http_code == 200 and asked.path == HISTORY:
        sent.body = sent.body[:-1]


def another_document(body: bytes) -> bytes:
    document = json.loads(body)
    document.get("checks", document.get("rows")).pop()
    return compress(json.dumps(document).encode())


def behind(cache: str, breaks: Break) -> Break:
    """The same, with a sign of a cache that cannot have done it."""

    def broken(asked: Asked, sent: Sent) -> None:
        breaks(asked, sent)
        sent["via"] = cache

    return broken


OTHER_TAG: Final = '"fedcba9876543210"'
# Ways to make gzip of a document that break A15.
BROKEN_GZIP: Final[dict[str, Callable[[bytes], bytes]]] = {
    "cut": lambda body: compress(body)[:-9],
    "another document": another_document,
}
BROKEN_REPLIES: Final[dict[str, tuple[Break, str]]] = {
    "no ETag": (header("etag", None), "A2 A4"),
    "304 with another ETag": (only(header("etag", OTHER_TAG), 304), "A4"),
    "no Vary": (header("vary", None), "A15"),
    "OPTIONS without CORS, behind a cache": (
        behind("1.1 cache", only(lambda _, sent: sent.headers.clear(), method="OPTIONS")),
        "A6 A7",
    ),
    "W/ not understood": (ignored(lambda tag: tag.startswith("W/")), "A5"),
    "* not understood": (ignored(lambda tag: tag == "*"), "A5"),
    "304 for any tag": (every_tag_matches, "A4 A5"),
    "304 with a body": (only(body(b"{}"), 304), "A5"),
    "304 without Cache-Control": (only(header("cache-control", None), 304), "A10 A9"),
    "HEAD with a body": (only(body(b"{}"), 200, method="HEAD"), "A2"),
    "405 without Allow": (header("allow", None), "A2"),
    "POST obeyed": (obeys_post, "A2 A7"),
    "error with two fields": (only(rewritten(b'{"error": "no", "code": 405}'), 405), "A8"),
    "credentials allowed": (header("access-control-allow-credentials", "true"), "A6"),
    "JSON without a charset": (only(header("content-type", "application/json"), 200), "A3"),
    "query string refused": (query_is_refused, "A1"),
    "Range obeyed": (range_is_obeyed, "A15"),
    "body cut short": (cut_short, "A1"),
    "preflight without If-None-Match": (
        only(header("access-control-allow-headers", "Accept, Content-Type"), 204),
        "A7",
    ),
    "a key is wanted": (wants_a_key, "A1 A14"),
    "404 without a message": (only(rewritten(b'{"error": "no such route"}'), 404), "E1"),
    "503 of the history without Retry-After": (
        only(away("the liveness history is unavailable"), 200, 304, path=HISTORY),
        "A12",
    ),
    "503 of the live report without a word": (only(away("oops"), 200, 304, path=LIVE), "A11"),
    "copies that are too old": (header("age", "421"), "E3"),
    "429 as JSON": (only(becomes(429, b"{}"), 200, 304, path=HISTORY), "E2"),
}

_NO_ROUTE: Final = becomes(404, b'{"message": "no such route"}')
_OF_LIVE: Final = "R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 S1 S3 S7 S10 S11 S12 S13 S14 A9"
_OF_HISTORY: Final = "H1 H2 H3 H4 H5 H9 H10 H11 H12 A10"
# Replies, and the clauses that these alone could not have broken, though the whole ones could.
POOR_REPLIES: Final[dict[str, tuple[Break, str]]] = {
    "no live report": (only(_NO_ROUTE, path=LIVE), _OF_LIVE),
    "no history": (only(_NO_ROUTE, path=HISTORY), _OF_HISTORY),
    "neither": (_NO_ROUTE, f"{_OF_LIVE} {_OF_HISTORY} A2 A3 A4 A5 A6 A7 A8 A14 A15"),
}
