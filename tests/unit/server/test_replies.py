"""Every reply there is: which one a request gets, and its headers to the letter."""

import gzip
import json
from typing import Final

import pytest

from lookout.documents.document import Document, etag, with_compressed
from lookout.documents.routes import paths
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_LIVE,
    Reply,
    convenience_resource,
    endpoint,
    too_many_requests,
)
from lookout.server.responder import respond

LIVE, HISTORY = paths("protocol")
LIVE_DOCUMENT: Final = Document(b'{"checks":[]}', etag(b'{"checks":[]}'), 1)
HISTORY_DOCUMENT: Final = Document(b'{"rows":[]}', etag(b'{"rows":[]}'), 2)
STORED: Final = with_compressed({"live": LIVE_DOCUMENT, "history": HISTORY_DOCUMENT})
LOADED: Final = {
    LIVE: endpoint(STORED["live"], LIVE_CACHING, STORED["live.gzip"]),
    HISTORY: endpoint(STORED["history"], HISTORY_CACHING, STORED["history.gzip"]),
}
EMPTY: Final = {LIVE: NO_LIVE, HISTORY: NO_HISTORY}
OWN: Final = {"/openapi.json": convenience_resource("application/json; charset=utf-8", b"{}")}

JSON: Final = "application/json; charset=utf-8"
CORS: Final = {"access-control-allow-origin": "*", "access-control-expose-headers": "ETag"}
CACHING: Final = {
    LIVE: "public, max-age=15, s-maxage=30, stale-while-revalidate=30, stale-if-error=300",
    HISTORY: "public, max-age=60, s-maxage=120, stale-while-revalidate=60, stale-if-error=300",
}
DOCUMENTS: Final = {LIVE: LIVE_DOCUMENT, HISTORY: HISTORY_DOCUMENT}
PACKED: Final = {LIVE: STORED["live.gzip"], HISTORY: STORED["history.gzip"]}
ETAGS: Final = {path: f"{DOCUMENTS[path].etag}, {PACKED[path].etag}" for path in (LIVE, HISTORY)}
NOSNIFF: Final = {"x-content-type-options": "nosniff"}
OTHER_METHODS: Final = ("POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "Get", "", "FOO", "GET ", "OPTION")
BOTH: Final = pytest.mark.parametrize("path", [LIVE, HISTORY], ids=["live", "history"])


def headers_of(reply: Reply) -> dict[str, str]:
    """Its headers, none of which is there twice, and the same in both forms."""
    assert [(name.encode(), text.encode()) for name, text in reply.headers] == reply.raw_headers
    assert len(dict(reply.headers)) == len(reply.headers)
    return dict(reply.headers)


@pytest.mark.clause("A1")
def test_the_paths_have_the_protocol_in_them() -> None:
    assert paths("x") == ("/api/v1/x/liveness", "/api/v1/x/liveness/history")


@BOTH
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.clause("A1", "A2", "A3", "A4", "A6", "A9", "A10")
def test_a_document_is_found_with_exactly_its_headers(path: str, method: str) -> None:
    reply = respond(LOADED, method, path, None)
    document = DOCUMENTS[path]
    assert (reply.http_code, reply.body) == (200, document.body)
    assert headers_of(reply) == CORS | NOSNIFF | {
        "content-type": JSON,
        "cache-control": CACHING[path],
        "etag": document.etag,
        "vary": "Accept-Encoding",
        "x-lookout-etags": ETAGS[path],
        "content-length": str(len(document.body)),
    }


@BOTH
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.clause("A2", "A3", "A4", "A6", "A9", "A10", "A15")
def test_who_understands_gzip_gets_the_stored_form_with_its_own_etag_and_length(path: str, method: str) -> None:
    reply = respond(LOADED, method, path, None, "gzip, deflate, br, zstd")
    assert (reply.http_code, gzip.decompress(reply.body)) == (200, DOCUMENTS[path].body)
    assert headers_of(reply) == CORS | NOSNIFF | {
        "content-type": JSON,
        "content-encoding": "gzip",
        "cache-control": CACHING[path],
        "etag": etag(reply.body),
        "vary": "Accept-Encoding",
        "x-lookout-etags": ETAGS[path],
        "content-length": str(len(reply.body)),
    }


@BOTH
@pytest.mark.clause("A15")
def test_a_document_without_a_gzip_form_is_plain_for_everybody_and_varies_all_the_same(path: str) -> None:
    resources = {path: endpoint(DOCUMENTS[path], CACHING[path])}
    reply = respond(resources, "GET", path, None, "gzip")
    assert (reply.http_code, reply.body) == (200, DOCUMENTS[path].body)
    headers = headers_of(reply)
    assert "content-encoding" not in headers
    assert (headers["vary"], headers["x-lookout-etags"]) == ("Accept-Encoding", DOCUMENTS[path].etag)
    assert respond(resources, "GET", path, PACKED[path].etag, "gzip").http_code == 200


UNCHANGED: Final = [
    pytest.param("{plain}", None, "plain", id="the plain one's ETag, asked for plain"),
    pytest.param("{plain}", "gzip", "plain", id="the plain one's ETag, asked for gzip: the copy is still current"),
    pytest.param("{gzip}", "gzip", "gzip", id="the gzip one's ETag, asked for gzip"),
    pytest.param("{gzip}", None, "gzip", id="the gzip one's ETag, asked for plain"),
    pytest.param('"x", W/{gzip}', None, "gzip", id="weakly, in a list"),
    pytest.param("{plain}, {gzip}", None, "plain", id="both, asked for plain: the one that would be sent"),
    pytest.param("{plain}, {gzip}", "gzip", "gzip", id="both, asked for gzip: the one that would be sent"),
    pytest.param("*", None, "plain", id="a star, asked for plain"),
    pytest.param("*", "gzip", "gzip", id="a star, asked for gzip"),
    pytest.param("*", "gzip;q=0", "plain", id="a star from who refuses gzip"),
]


@BOTH
@pytest.mark.parametrize(("if_none_match", "accept_encoding", "matched"), UNCHANGED)
@pytest.mark.clause("A4", "A5", "A15")
def test_a_304_carries_the_etag_that_matched(
    path: str, if_none_match: str, accept_encoding: str | None, matched: str
) -> None:
    tags = {"plain": DOCUMENTS[path].etag, "gzip": PACKED[path].etag}
    for method in ("GET", "HEAD"):
        reply = respond(LOADED, method, path, if_none_match.format(**tags), accept_encoding)
        assert (reply.http_code, reply.body) == (304, b"")
        assert headers_of(reply) == CORS | {
            "cache-control": CACHING[path],
            "etag": tags[matched],
            "vary": "Accept-Encoding",
            "x-lookout-etags": ETAGS[path],
        }


@BOTH
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.clause("A5", "A6")
def test_what_a_client_has_is_not_sent_again(path: str, method: str) -> None:
    reply = respond(LOADED, method, path, f'"x", W/{DOCUMENTS[path].etag}')
    assert (reply.http_code, reply.body) == (304, b"")
    assert headers_of(reply)["etag"] == DOCUMENTS[path].etag
    assert respond(LOADED, method, path, '"another"').http_code == 200


@BOTH
@pytest.mark.parametrize("resources", [LOADED, EMPTY], ids=["with a document", "without one"])
@pytest.mark.clause("A2", "A6", "A7")
def test_a_preflight_is_answered_whether_there_is_a_document_or_not(path: str, resources: object) -> None:
    reply = respond(LOADED if resources is LOADED else EMPTY, "OPTIONS", path, "*")
    assert (reply.http_code, reply.body) == (204, b"")
    assert headers_of(reply) == CORS | {
        "access-control-allow-methods": "GET, HEAD, OPTIONS",
        "access-control-allow-headers": "Accept, Content-Type, If-None-Match",
        "access-control-max-age": "86400",
    }


@BOTH
@pytest.mark.parametrize("method", OTHER_METHODS)
@pytest.mark.clause("A2", "A6", "A8")
def test_no_other_method_is_allowed(path: str, method: str) -> None:
    for resources in (LOADED, EMPTY):
        reply = respond(resources, method, path, "*")
        assert reply.http_code == 405
        assert headers_of(reply) == CORS | NOSNIFF | {
            "content-type": JSON,
            "cache-control": "no-store",
            "allow": "GET, HEAD, OPTIONS",
            "content-length": str(len(reply.body)),
        }
        assert_an_error(reply)


@BOTH
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("if_none_match", [None, "*", '""'])
@pytest.mark.clause("A6", "A8", "A11", "A12")
def test_without_a_document_a_path_is_unavailable(path: str, method: str, if_none_match: str | None) -> None:
    reply = respond(EMPTY, method, path, if_none_match)
    assert reply.http_code == 503
    assert headers_of(reply) == CORS | NOSNIFF | {
        "retry-after": "30" if path == HISTORY else "15",
        "content-type": JSON,
        "cache-control": "no-store",
        "content-length": str(len(reply.body)),
    }
    assert_an_error(reply)


@pytest.mark.clause("A11")
def test_the_live_endpoints_503_says_what_is_unavailable() -> None:
    assert json.loads(respond(EMPTY, "GET", LIVE, None).body) == {"error": "the liveness report is unavailable"}


def assert_an_error(reply: Reply) -> None:
    document = json.loads(reply.body)
    assert list(document) == ["error"]
    assert isinstance(document["error"], str)


NOWHERE: Final = [
    *("", "/", "*", "//", "/api/v1/protocol", f"{LIVE}/", f"{LIVE}//history", f"{HISTORY}/", LIVE[1:], f"/{LIVE}"),
    *(LIVE.upper(), f"{LIVE}?a=1", f"{LIVE}#a", f"{LIVE}\0", f"{LIVE} ", f"{LIVE};a", "/api/v1/other/liveness"),
    *("/api/v1/x/../protocol/liveness", "/api/v1/./protocol/liveness", "/api/v1/protocol/%6civeness", "/\udcff"),
]


@pytest.mark.parametrize("path", NOWHERE, ids=repr)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "FOO"])
@pytest.mark.clause("E1")
def test_any_other_path_is_the_gateways_404(path: str, method: str) -> None:
    reply = respond(LOADED | OWN, method, path, "*")
    assert reply.http_code == 404
    assert headers_of(reply) == NOSNIFF | {"content-type": JSON, "cache-control": "no-store", "content-length": "27"}
    assert json.loads(reply.body) == {"message": "no such route"}


@pytest.mark.clause("E1")
def test_the_operators_own_routes_are_found_and_have_validators_too() -> None:
    reply = respond(OWN, "GET", "/openapi.json", None)
    assert (reply.http_code, reply.body) == (200, b"{}")
    assert headers_of(reply) == CORS | NOSNIFF | {
        "content-type": JSON,
        "cache-control": "public, max-age=300",
        "etag": etag(b"{}"),
        "vary": "Accept-Encoding",
        "x-lookout-etags": etag(b"{}"),
        "content-length": "2",
    }
    assert respond(OWN, "HEAD", "/openapi.json", etag(b"{}")).http_code == 304
    assert respond(OWN, "PUT", "/openapi.json", None).http_code == 405


@pytest.mark.clause("E1")
@pytest.mark.parametrize(
    ("body", "coding"),
    [
        pytest.param(b"a" * 1_000, "gzip", id="a body that gzip makes smaller is sent smaller"),
        pytest.param(b"{}", None, id="one that it would make larger is sent as it is"),
    ],
)
def test_the_operators_own_routes_are_compressed_where_that_helps(body: bytes, coding: str | None) -> None:
    own = {"/own": convenience_resource("text/plain", body)}
    reply = respond(own, "GET", "/own", None, "gzip")
    headers = headers_of(reply)
    assert (headers.get("content-encoding"), headers["etag"]) == (coding, etag(reply.body))
    assert (gzip.decompress(reply.body) if coding else reply.body) == body
    assert respond(own, "GET", "/own", None).body == body
    for tag in (etag(body), headers["etag"]):
        not_modified = respond(own, "GET", "/own", tag, "gzip")
        assert (not_modified.http_code, headers_of(not_modified)["etag"]) == (304, tag)


@pytest.mark.clause("E2")
def test_the_page_for_those_who_ask_too_often_is_the_edges() -> None:
    reply = too_many_requests(60)
    assert reply.http_code == 429
    assert headers_of(reply) == NOSNIFF | {
        "content-type": "text/plain; charset=utf-8",
        "cache-control": "no-store",
        "retry-after": "60",
        "content-length": str(len(reply.body)),
    }
    assert b"error code: 1015" in reply.body


@pytest.mark.clause("A6")
@pytest.mark.clause("A15")
def test_no_reply_speaks_of_credentials_or_varies_by_origin() -> None:
    resources = (*LOADED.values(), *EMPTY.values(), *OWN.values())
    forms = [form for resource in resources for form in (resource.plain, resource.gzip) if form is not None]
    found = [form.found for form in forms] + [form.not_modified for form in forms if form.not_modified is not None]
    replies = [*found, *(reply for resource in resources for reply in resource if isinstance(reply, Reply))]
    assert {r.http_code for r in replies} == {200, 204, 304, 405, 503}
    for reply in replies:
        assert headers_of(reply).items() >= CORS.items()
        assert headers_of(reply).get("vary") == ("Accept-Encoding" if reply.http_code in (200, 304) else None)
    for reply in (*replies, too_many_requests(1), respond({}, "GET", "/", None)):
        assert "access-control-allow-credentials" not in headers_of(reply)
