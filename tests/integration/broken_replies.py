"""Replies that break a clause each, and which one."""

import json
import zlib
from collections.abc import Callable
from email.utils import formatdate
from typing import Final

from lookout.base.instants import format_instant, parse_instant
from lookout.documents.document import compress, etag
from lookout.server.responder import respond
from tests.integration.planted import Asked, Break, Sent, documents, resources
from tests.integration.served import HISTORY, LIVE

ALLOW_ORIGIN: Final = "access-control-allow-origin"


def is_document(asked: Asked, sent: Sent) -> bool:
    return sent.http_code == 200 and asked.path in (LIVE, HISTORY)


def no_cors_on_304(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 304:
        del sent[ALLOW_ORIGIN]


def etag_without_quotes(_asked: Asked, sent: Sent) -> None:
    if sent["etag"]:
        sent["etag"] = (sent["etag"] or "").strip('"')


def weak_etag(_asked: Asked, sent: Sent) -> None:
    if sent["etag"]:
        sent["etag"] = f"W/{sent['etag']}"


def no_etag(_asked: Asked, sent: Sent) -> None:
    del sent["etag"]


def ignored(what: Callable[[str], bool]) -> Break:
    """Some forms of If-None-Match are not understood."""

    def breaks(asked: Asked, sent: Sent) -> None:
        if sent.http_code == 304 and asked.method == "GET" and what(asked.headers["if-none-match"]):
            anew = respond(resources(*documents()), "GET", asked.path, None, asked.headers.get("accept-encoding"))
            sent.http_code, sent.headers, sent.body = anew.http_code, list(anew.headers), anew.body

    return breaks


def every_tag_matches(asked: Asked, sent: Sent) -> None:
    if asked.method == "GET" and "if-none-match" in asked.headers and sent.http_code == 200:
        sent.http_code, sent.body = 304, b""
        del sent["content-length"]
        del sent["content-type"]


def body_on_304(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 304:
        sent.body = b"{}"


def no_caching_on_304(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 304:
        del sent["cache-control"]


def head_of_another_type(asked: Asked, sent: Sent) -> None:
    if asked.method == "HEAD" and sent.http_code == 200:
        sent["content-type"] = "text/plain"


def head_without_length(asked: Asked, sent: Sent) -> None:
    if asked.method == "HEAD":
        del sent["content-length"]


def head_with_a_body(asked: Asked, sent: Sent) -> None:
    if asked.method == "HEAD" and sent.http_code == 200:
        sent.body = b"{}"


def no_head(asked: Asked, sent: Sent) -> None:
    if asked.method == "HEAD":
        sent.http_code = 404


def no_allow(_asked: Asked, sent: Sent) -> None:
    del sent["allow"]


def allows_post(_asked: Asked, sent: Sent) -> None:
    if sent["allow"]:
        sent["allow"] = "GET, HEAD, OPTIONS, POST"


def obeys_post(asked: Asked, sent: Sent) -> None:
    if asked.method == "POST":
        sent.http_code, sent.body = 204, b""
        del sent["content-length"]


def error_with_two_fields(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 405:
        sent.rewrite(b'{"error": "no", "code": 405}')


def error_to_be_kept(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 405:
        sent["cache-control"] = "public, max-age=15"


def error_as_text(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 405:
        sent["content-type"] = "text/plain"


def vary_origin(_asked: Asked, sent: Sent) -> None:
    sent["vary"] = "Accept-Encoding, Origin"


def credentials(_asked: Asked, sent: Sent) -> None:
    sent["access-control-allow-credentials"] = "true"


def echoes_origin(asked: Asked, sent: Sent) -> None:
    if "origin" in asked.headers:
        sent[ALLOW_ORIGIN] = asked.headers["origin"]


def two_origins(_asked: Asked, sent: Sent) -> None:
    if sent[ALLOW_ORIGIN]:
        sent.headers.append((ALLOW_ORIGIN, "*"))


def exposes_nothing(_asked: Asked, sent: Sent) -> None:
    del sent["access-control-expose-headers"]


def other_caching(path: str) -> Break:
    def breaks(asked: Asked, sent: Sent) -> None:
        if asked.path == path and sent.http_code in (200, 304):
            sent["cache-control"] = "public, max-age=60"

    return breaks


def no_charset(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 200:
        sent["content-type"] = "application/json"


def html(asked: Asked, sent: Sent) -> None:
    if asked.path == LIVE and sent.http_code == 200:
        page = b"<!doctype html><title>Welcome</title>"
        page = compress(page) if sent["content-encoding"] else page
        sent["content-type"] = "text/html"
        sent["content-length"] = str(len(page))
        sent.body = b"" if asked.method == "HEAD" else page


def query_filters(asked: Asked, sent: Sent) -> None:
    if asked.query and asked.path == LIVE:
        report = json.loads(sent.body)
        report["checks"] = report["checks"][:1]
        sent["etag"] = '"fedcba9876543210"'
        sent.rewrite(json.dumps(report).encode())


def query_is_refused(asked: Asked, sent: Sent) -> None:
    if asked.query:
        sent.become(400, b'{"error": "no parameters"}')


def range_is_obeyed(asked: Asked, sent: Sent) -> None:
    if "range" in asked.headers and sent.http_code == 200:
        sent.http_code = 206
        sent.rewrite(sent.body[:10])


def accept_is_obeyed(asked: Asked, sent: Sent) -> None:
    if asked.headers.get("accept") == "text/html":
        sent.become(406, b"{}")


def always_compressed(asked: Asked, sent: Sent) -> None:
    if is_document(asked, sent) and not sent["content-encoding"]:
        sent["content-encoding"] = "gzip"
        sent.body = zlib.compress(sent.body, 1, 31) if sent.body else b""
        del sent["content-length"]


def cut_short(asked: Asked, sent: Sent) -> None:
    if sent.http_code == 200 and asked.path == HISTORY:
        sent.body = sent.body[:-1]


def options_is_200(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 204:
        sent.http_code = 200
        sent["content-length"] = "0"


def preflight_without_if_none_match(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 204:
        sent["access-control-allow-headers"] = "Accept, Content-Type"


def preflight_for_a_minute(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 204:
        sent["access-control-max-age"] = "60"


def body_on_204(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 204:
        sent.body = b"ok"


def wants_a_key(asked: Asked, sent: Sent) -> None:
    if asked.path in (LIVE, HISTORY) and asked.method in ("GET", "HEAD"):
        sent.become(401, b'{"error": "who are you?"}')


def wants_a_user_agent(asked: Asked, sent: Sent) -> None:
    if "user-agent" not in asked.headers:
        sent.become(400, b'{"error": "who are you?"}')


def sets_a_cookie(_asked: Asked, sent: Sent) -> None:
    sent["set-cookie"] = "id=1"


def no_message(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 404:
        sent.rewrite(b'{"error": "no such route"}')


def any_path_is_a_page(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 404:
        sent.become(200, b"<!doctype html>", "text/html")


def moved(asked: Asked, sent: Sent) -> None:
    if asked.path == LIVE and asked.method == "GET":
        sent.become(301, b"")
        sent["location"] = "https://elsewhere.example/\x1b[31m"


def no_live_at_all(asked: Asked, sent: Sent) -> None:
    if asked.path == LIVE:
        sent.become(404, b'{"message": "no such route"}')


def history_is_away(asked: Asked, sent: Sent) -> None:
    if asked.path == HISTORY and sent.http_code in (200, 304):
        cors = [header for header in sent.headers if header[0].startswith("access-control")]
        sent.become(503, b"" if asked.method == "HEAD" else b'{"error": "the liveness history is unavailable"}')
        sent.headers += [*cors, ("cache-control", "no-store")]


def live_is_silent_about_being_away(asked: Asked, sent: Sent) -> None:
    if asked.path == LIVE and sent.http_code in (200, 304):
        cors = [header for header in sent.headers if header[0].startswith("access-control")]
        sent.become(503, b"" if asked.method == "HEAD" else b'{"error": "oops"}')
        sent.headers += [*cors, ("cache-control", "no-store")]


def schema_is_closed(asked: Asked, sent: Sent) -> None:
    if asked.path == "/schemas/history.json":
        sent.rewrite(json.dumps(json.loads(sent.body) | {"additionalProperties": False}).encode())


def openapi_is_old(asked: Asked, sent: Sent) -> None:
    if asked.path == "/openapi.json":
        sent.rewrite(json.dumps(json.loads(sent.body) | {"openapi": "3.0.3"}).encode())


def openapi_forgets_a_code(asked: Asked, sent: Sent) -> None:
    if asked.path == "/openapi.json":
        description = json.loads(sent.body)
        del description["paths"][LIVE]["get"]["responses"]["503"]
        del description["paths"][LIVE]["head"]["responses"]["503"]
        sent.rewrite(json.dumps(description).encode())


def head_without_etag(asked: Asked, sent: Sent) -> None:
    if asked.method == "HEAD":
        del sent["etag"]


def head_without_coding(asked: Asked, sent: Sent) -> None:
    if asked.method == "HEAD":
        del sent["content-encoding"]


def another_etag_on_304(_asked: Asked, sent: Sent) -> None:
    if sent.http_code == 304:
        sent["etag"] = '"fedcba9876543210"'


def etag_of_gzip_on_304_to_star(asked: Asked, sent: Sent) -> None:
    if sent.http_code == 304 and asked.headers["if-none-match"] == "*":
        sent["etag"] = etag(compress(documents()[asked.path == HISTORY]))


def sets_vary(vary: str, *http_codes: int) -> Break:
    def breaks(_asked: Asked, sent: Sent) -> None:
        if sent.http_code in http_codes:
            sent["vary"] = vary

    return breaks


def no_vary(_asked: Asked, sent: Sent) -> None:
    del sent["vary"]


def plain(asked: Asked, sent: Sent) -> None:
    """No other form is there; so it is only the plain one whose ETag can match."""
    tag = asked.headers.get("if-none-match")
    real = respond(resources(*documents()), asked.method, asked.path, tag)
    sent.http_code, sent.headers = real.http_code, list(real.headers)
    sent.body = b"" if asked.method == "HEAD" else real.body


def gzip_for(accept: str | None) -> Break:
    """This Accept-Encoding gets gzip, although it should not."""

    def breaks(asked: Asked, sent: Sent) -> None:
        if is_document(asked, sent) and asked.headers.get("accept-encoding") == accept:
            anew = respond(resources(*documents()), asked.method, asked.path, None, "gzip")
            sent.headers, sent.body = list(anew.headers), anew.body

    return breaks


def refuses(accept: str) -> Break:
    def breaks(asked: Asked, sent: Sent) -> None:
        if is_document(asked, sent) and asked.headers.get("accept-encoding") == accept:
            sent.become(406, b'{"error": "nothing that you accept"}')

    return breaks


def another_document(body: bytes) -> bytes:
    document = json.loads(body)
    document.get("checks", document.get("rows")).pop()
    return compress(json.dumps(document).encode())


def older_document(body: bytes) -> bytes:
    document = json.loads(body)
    document["generatedAt"] = format_instant(parse_instant(document["generatedAt"]) - 60_000)
    return compress(json.dumps(document).encode())


def weak_gzip(_asked: Asked, sent: Sent) -> None:
    if sent["content-encoding"]:
        sent["etag"] = f"W/{sent['etag']}"


def etags_of_gzip_match_nothing(asked: Asked, sent: Sent) -> None:
    tags = [etag(compress(body)) for body in documents()]
    if sent.http_code == 304 and any(tag in asked.headers["if-none-match"] for tag in tags):
        ignored(lambda _: True)(asked, sent)


def dated(_asked: Asked, sent: Sent) -> None:
    sent["date"] = formatdate(usegmt=True)


def behind(cache: str, breaks: Break) -> Break:
    """The same, with a sign of a cache that cannot have done it."""

    def broken(asked: Asked, sent: Sent) -> None:
        breaks(asked, sent)
        sent["via"] = cache

    return broken


def options_without_cors(asked: Asked, sent: Sent) -> None:
    if asked.method == "OPTIONS":
        sent.headers = []


# Ways to make gzip of a document that break A15.
BROKEN_GZIP: Final[dict[str, Callable[[bytes], bytes]]] = {
    "none at all": lambda body: body[:-1],
    "cut": lambda body: compress(body)[:-9],
    "more behind it": lambda body: compress(body) + b"more",
    "another document": another_document,
    "an older document": older_document,
}
BROKEN_REPLIES: Final[dict[str, tuple[Break, str]]] = {
    "304 without CORS": (no_cors_on_304, "A5 A6"),
    "ETag without quotes": (etag_without_quotes, "A4"),
    "weak ETag": (weak_etag, "A4"),
    "no ETag": (no_etag, "A4 A5"),
    "ETag itself not understood": (ignored(lambda tag: tag.startswith('"') and "," not in tag), "A5"),
    "304 with another ETag": (another_etag_on_304, "A4"),
    "304 to * with the ETag of gzip": (etag_of_gzip_on_304_to_star, "A4"),
    "weak ETag of gzip": (weak_gzip, "A4"),
    "ETags of gzip match nothing": (etags_of_gzip_match_nothing, "A5"),
    "HEAD without an ETag": (head_without_etag, "A2"),
    "HEAD without its coding": (head_without_coding, "A2"),
    "Vary: *": (sets_vary("*", 200, 304), "A15"),
    "Vary: * beside another": (sets_vary("Accept-Encoding, *", 200), "A15"),
    "no Vary": (no_vary, "A15"),
    "another Vary on 304": (sets_vary("Accept", 304), "A15"),
    "no gzip at all": (plain, "A15"),
    "gzip for those who refuse it": (gzip_for("gzip;q=0"), "A15"),
    "gzip for those who say nothing": (gzip_for(None), "A15"),
    "gzip for those who name no coding": (gzip_for("identity;q=0"), "A15"),
    "identity refused gets 406": (refuses("identity;q=0"), "A15"),
    "any coding gets 406": (refuses("*"), "A15"),
    "Accept obeyed, behind a cache": (behind("1.1 cache", accept_is_obeyed), "A15"),
    "a User-Agent is wanted, behind a cache": (behind("1.1 cache", wants_a_user_agent), "A14"),
    "a cookie is set, behind a cache": (behind("1.1 cache", sets_a_cookie), "A14"),
    "OPTIONS without CORS, behind a cache": (behind("1.1 cache", options_without_cors), "A6 A7"),
    "HEAD without an ETag, behind a cache": (behind("1.1 cache", head_without_etag), "A2"),
    "304 with another ETag, behind a cache": (behind("1.1 cache", another_etag_on_304), "A4"),
    "no Vary, behind a cache": (behind("1.1 cache", no_vary), "A15"),
    "W/ not understood": (ignored(lambda tag: tag.startswith("W/")), "A5"),
    "lists not understood": (ignored(lambda tag: "," in tag), "A5"),
    "* not understood": (ignored(lambda tag: tag == "*"), "A5"),
    "304 for any tag": (every_tag_matches, "A5"),
    "304 with a body": (body_on_304, "A5 A2"),
    "304 without Cache-Control": (no_caching_on_304, "A5"),
    "HEAD of another type": (head_of_another_type, "A2"),
    "HEAD without a length": (head_without_length, "A2"),
    "HEAD with a body": (head_with_a_body, "A2"),
    "no HEAD": (no_head, "A2"),
    "405 without Allow": (no_allow, "A2"),
    "405 that allows POST": (allows_post, "A2"),
    "POST obeyed": (obeys_post, "A2"),
    "error with two fields": (error_with_two_fields, "A8"),
    "error that may be kept": (error_to_be_kept, "A8"),
    "error as text": (error_as_text, "A8"),
    "Vary: Origin": (vary_origin, "A6"),
    "credentials allowed": (credentials, "A6"),
    "origin echoed": (echoes_origin, "A6"),
    "origin allowed twice": (two_origins, "A6"),
    "ETag not exposed": (exposes_nothing, "A5 A6"),
    "other caching of the live report": (other_caching(LIVE), "A9"),
    "other caching of the history": (other_caching(HISTORY), "A10"),
    "JSON without a charset": (no_charset, "A3"),
    "HTML with 200": (html, "A3 R1"),
    "query string filters": (query_filters, "A1"),
    "query string refused": (query_is_refused, "A1"),
    "Range obeyed": (range_is_obeyed, "A15"),
    "Accept obeyed": (accept_is_obeyed, "A15"),
    "compressed without being asked": (always_compressed, "A15"),
    "body cut short": (cut_short, "A15"),
    "OPTIONS gets 200": (options_is_200, "A7"),
    "preflight without If-None-Match": (preflight_without_if_none_match, "A7"),
    "preflight for a minute": (preflight_for_a_minute, "A7"),
    "204 with a body": (body_on_204, "A7"),
    "a key is wanted": (wants_a_key, "A14"),
    "a User-Agent is wanted": (wants_a_user_agent, "A14"),
    "a cookie is set": (sets_a_cookie, "A14"),
    "404 without a message": (no_message, "E1"),
    "any path is a page": (any_path_is_a_page, "E1"),
    "live report moved": (moved, "A1"),
    "no live report": (no_live_at_all, "A1 A2 A7"),
    "503 of the history without Retry-After": (history_is_away, "A12"),
    "503 of the live report without a word": (live_is_silent_about_being_away, "A11"),
    "schema that refuses additions": (schema_is_closed, "V1"),
    "OpenAPI of an old version": (openapi_is_old, "V2"),
    "OpenAPI without a code": (openapi_forgets_a_code, "V2"),
}
