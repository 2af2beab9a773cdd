"""Replies that no real server is brought to give: tests/integration/test_server.py has the others, to the letter."""

import gzip
import json
from typing import Final

import pytest

from lookout.documents.api import paths
from lookout.documents.document import Document, etag, with_compressed
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_LIVE,
    Reply,
    convenience_resource,
    endpoint,
    make_reply,
    respond,
    too_many_requests,
)

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
NOSNIFF: Final = {"x-content-type-options": "nosniff"}
BOTH: Final = pytest.mark.parametrize("path", [LIVE, HISTORY], ids=["live", "history"])


def headers_of(reply: Reply) -> dict[str, str]:
    """Its headers, none of which is listed twice."""
    assert len(dict(reply.headers)) == len(reply.headers)
    return dict(reply.headers)


@BOTH
@pytest.mark.clause("A15")
def test_a_document_without_a_gzip_form_is_plain_for_everybody_and_varies_all_the_same(path: str) -> None:
    resources = {path: endpoint(DOCUMENTS[path], CACHING[path])}
    reply = respond(resources, "GET", path, None, prefers_gzip=True)
    assert (reply.http_code, reply.body) == (200, DOCUMENTS[path].body)
    headers = headers_of(reply)
    assert "content-encoding" not in headers
    assert (headers["vary"], headers["x-lookout-etags"]) == ("Accept-Encoding", DOCUMENTS[path].etag)
    assert respond(resources, "GET", path, PACKED[path].etag, prefers_gzip=True).http_code == 200


@BOTH
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("if_none_match", [None, "*", '""'])
@pytest.mark.clause("A6", "A7", "A8", "A11", "A12")
def test_without_a_document_a_path_is_unavailable(path: str, method: str, if_none_match: str | None) -> None:
    reply = respond(EMPTY, method, path, if_none_match)
    assert reply.http_code == 503
    assert headers_of(reply) == CORS | NOSNIFF | {
        "retry-after": "30" if path == HISTORY else "15",
        "content-type": JSON,
        "cache-control": "no-store",
        "content-length": str(len(reply.body)),
    }
    assert list(json.loads(reply.body)) == ["error"]
    assert respond(EMPTY, "OPTIONS", path, None).http_code == 204
    assert respond(EMPTY, "POST", path, None).http_code == 405


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
    reply = respond(own, "GET", "/own", None, prefers_gzip=True)
    headers = headers_of(reply)
    assert (headers.get("content-encoding"), headers["etag"]) == (coding, etag(reply.body))
    assert (gzip.decompress(reply.body) if coding else reply.body) == body
    assert respond(own, "GET", "/own", None).body == body
    for tag in (etag(body), headers["etag"]):
        not_modified = respond(own, "GET", "/own", tag, prefers_gzip=True)
        assert (not_modified.http_code, headers_of(not_modified)["etag"]) == (304, tag)


@pytest.mark.clause("A6", "A15")
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


@pytest.mark.parametrize("with_body", [True, False], ids=["GET", "HEAD"])
@pytest.mark.parametrize("keeps_open", [True, False], ids=["another may follow", "the last"])
def test_a_reply_is_encoded_once_a_second_for_each_way_to_ask(with_body: bool, keeps_open: bool) -> None:
    reply, date = make_reply(404, (("a", "b"), ("c", "d")), b"body"), b"date: now\r\n"
    (found,) = encoded = reply.encode(date, with_body=with_body, keeps_open=keeps_open)
    lines = (
        b"HTTP/1.1 404 Not Found\r\ndate: now\r\na: b\r\nc: d\r\ncontent-length: 4\r\nx-content-type-options: nosniff"
    )
    close, body = b"" if keeps_open else b"\r\nconnection: close", b"body" if with_body else b""
    assert found == lines + close + b"\r\n\r\n" + body
    assert reply.encode(date, with_body=with_body, keeps_open=keeps_open) is encoded


@pytest.mark.parametrize(("size", "parts"), [(65_536, 1), (65_537, 2)])
def test_a_large_body_is_not_copied_for_each_second(size: int, parts: int) -> None:
    reply = make_reply(200, (), bytes(size))
    first, second = (reply.encode(b"date: %d\r\n" % second, with_body=True, keeps_open=True) for second in (1, 2))
    assert (len(first), len(b"".join(first)), first[0] != second[0]) == (parts, len(b"".join(second)), True)
    assert parts == 1 or first[1] is second[1] is reply.body
