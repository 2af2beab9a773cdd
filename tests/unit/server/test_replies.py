"""Replies that no real server is brought to give: tests/integration/test_server.py has the others, to the letter."""

import gzip

import pytest

from lookout.documents.document import etag
from lookout.server.replies import (
    Reply,
    convenience_resource,
    make_reply,
    respond,
)


def headers_of(reply: Reply) -> dict[str, str]:
    """Its headers, none of which is listed twice."""
    assert len(dict(reply.headers)) == len(reply.headers)
    return dict(reply.headers)


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
