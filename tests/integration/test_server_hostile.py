"""Clients that a server has to outlive: senders of garbage, the slow, and the many."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from tests.integration.raw import RawServer, a_raw_server, a_request, parsed, store
from tests.integration.served import HISTORY, LIVE

LARGE: Final = b'{"history":"' + b"c" * 500_000 + b'"}'
TLS_HELLO: Final = bytes.fromhex("16030100c8010000c40303") + bytes(range(200))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawServer]:
    folder = tmp_path_factory.mktemp("served")
    store(folder, live=b'{"live":1}', history=LARGE)
    with a_raw_server(folder, with_admin=True) as running:
        yield running


def assert_it_lives(server: RawServer) -> None:
    began = time.monotonic()
    assert server.ask().body == b'{"live":1}'
    assert time.monotonic() - began < 15


def lines(*text: str) -> bytes:
    return "\r\n".join((*text, "", "")).encode("latin-1")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(TLS_HELLO, id="a TLS hello"),
        pytest.param(b"\xff" * 100_000, id="a lot of bytes that are no text"),
        pytest.param(b"\r\n" * 50 + b"garbage\r\n\r\n", id="no request line"),
        pytest.param(lines(f"GET {LIVE}\0 HTTP/1.1"), id="a NUL in the path"),
        pytest.param(lines("GET /\xff HTTP/1.1"), id="a path that is not ASCII"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", "no colon"), id="a header without a colon"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", "X: a\0b"), id="a NUL in a header"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", "Content-Length: -1"), id="a negative length"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", "Content-Length: 1", "Content-Length: 2"), id="two lengths"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", "Transfer-Encoding: gzip"), id="a coding nobody knows"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", "X: " + "a" * 700_000), id="hundreds of kilobytes of one header"),
        pytest.param(lines(f"GET {LIVE} HTTP/1.1", *["X: a"] * 1_000), id="a thousand headers"),
    ],
)
@pytest.mark.clause("A6", "A8")
def test_what_is_no_request_is_refused_like_an_error_of_the_api(server: RawServer, raw: bytes) -> None:
    answer = parsed(server.exchange(raw))
    assert answer.http_code == (400 if len(raw) <= 32_768 else 431 if b"\r\n" in raw else 414)
    assert dict(answer.headers)["connection"] == "close"
    assert answer.ours == {
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "ETag",
        "cache-control": "no-store",
        "content-length": str(len(answer.body)),
        "content-type": "application/json; charset=utf-8",
        "x-content-type-options": "nosniff",
    }
    assert list(json.loads(answer.body)) == ["error"]
    assert_it_lives(server)


HOST: Final = "Host: lookout"
LAST: Final = "Connection: close"
LONG: Final = "a" * 33_000


@pytest.mark.parametrize(
    ("first", "headers", "http_code", "admin_code"),
    [
        pytest.param("GET {path} HTTP/1.1", [HOST], 200, 200, id="a request"),
        pytest.param("GET {path} HTTP/1.1", [], 400, 400, id="no Host"),
        pytest.param("GET {path} HTTP/1.1", ["Host:"], 400, 400, id="an empty Host"),
        pytest.param("GET {path} HTTP/1.1", [HOST, HOST], 400, 400, id="Host twice"),
        pytest.param("GET {path} HTTP/1.1", ["Host: a b"], 400, 400, id="a malformed Host"),
        pytest.param("GET {path} HTTP/1.0", [], 200, 200, id="an old client, which need not send a Host"),
        pytest.param("GET {path} HTTP/1.2", [HOST], 200, 200, id="a later minor version"),
        pytest.param("GET {path} HTTP/2.0", [HOST], 505, 505, id="a later major version"),
        pytest.param("PRI * HTTP/2.0", [], 505, 505, id="a client that insists on HTTP/2"),
        pytest.param("GET {path} HTTP/0.9", [HOST], 505, 505, id="an earlier major version"),
        pytest.param("GET {path} HTTP/1.10", [HOST], 400, 400, id="no version"),
        pytest.param(f"GET {{path}}?{LONG} HTTP/1.1", [HOST], 414, 414, id="a target over 32 KiB"),
        pytest.param("GET {path} HTTP/1.1", [HOST, f"X: {LONG}"], 431, 431, id="headers over 32 KiB"),
        pytest.param("OPTIONS * HTTP/1.1", [HOST], 204, 204, id="what the server as a whole takes"),
        pytest.param("GET * HTTP/1.1", [HOST], 400, 400, id="an asterisk for another method"),
        pytest.param("CONNECT a:443 HTTP/1.1", [HOST], 405, 405, id="a tunnel"),
        pytest.param("GET {path}#x HTTP/1.1", [HOST], 400, 400, id="a fragment"),
        pytest.param("GET {path}?x#y HTTP/1.1", [HOST], 400, 400, id="a fragment after a query"),
        pytest.param("GET hTTp://a:80{path}?x HTTP/1.1", [HOST], 200, 200, id="a proxy's form"),
        pytest.param("GET https://[::1]{path} HTTP/1.1", [HOST], 200, 200, id="a proxy's form, with TLS"),
        pytest.param("GET http://{path} HTTP/1.1", [HOST], 400, 400, id="a proxy's form without a host"),
        pytest.param("GET http://a:b{path} HTTP/1.1", [HOST], 400, 400, id="a proxy's form with a port of letters"),
        pytest.param("GET http://b@a{path} HTTP/1.1", [HOST], 400, 400, id="a proxy's form with a user"),
        pytest.param("GET http://a#{path} HTTP/1.1", [HOST], 400, 400, id="a proxy's form with a fragment"),
        pytest.param("GET ftp://a{path} HTTP/1.1", [HOST], 400, 400, id="another scheme"),
        pytest.param("GET {path} HTTP/1.1", [HOST, "Transfer-Encoding: gzip, chunked"], 501, 501, id="another coding"),
        pytest.param("POST {path} HTTP/1.1", [HOST, "Transfer-Encoding: gzip"], 400, 400, id="a body without an end"),
        pytest.param("GET {path} HTTP/1.1", [HOST, "If-Match: x", "Expect: x"], 200, 200, id="what is ignored"),
    ],
)
def test_http_is_taken_as_its_standard_says(
    server: RawServer, first: str, headers: list[str], http_code: int, admin_code: int
) -> None:
    """On both ports; the suites of others have these cases."""
    public, admin = server, replace(server, port=server.admin_port)
    for port, path, expected in ((public, LIVE, http_code), (admin, "/healthz", admin_code)):
        answer = parsed(port.exchange(lines(first.replace("{path}", path), *headers, LAST)))
        assert answer.http_code == expected, answer
        assert {"date", "connection"} <= dict(answer.headers).keys()
        assert ("allow" in dict(answer.headers)) == (expected in (204, 405))


@pytest.mark.parametrize("times", [1, 50], ids=["once", "fifty times"])
def test_who_hangs_up_in_the_middle_hurts_nobody(server: RawServer, times: int) -> None:
    for _ in range(times):
        with server.connect() as connection:
            connection.sendall(a_request("GET", HISTORY)[:-2])
        with server.connect() as connection:
            connection.sendall(a_request("GET", HISTORY) * 5)
    assert_it_lives(server)
