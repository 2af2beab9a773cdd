"""Clients that a server has to outlive: senders of garbage, the slow, and the many."""

import json
import time
from collections.abc import Iterator
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
    with a_raw_server(folder) as running:
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
        pytest.param(lines("PRI * HTTP/2.0", "", "SM"), id="a client that insists on HTTP/2"),
    ],
)
@pytest.mark.clause("A6", "A8")
def test_what_is_no_request_is_refused_like_an_error_of_the_api(server: RawServer, raw: bytes) -> None:
    answer = parsed(server.exchange(raw))
    assert answer.http_code == (431 if len(raw) > 32_768 else 400)
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


@pytest.mark.parametrize("times", [1, 50], ids=["once", "fifty times"])
def test_who_hangs_up_in_the_middle_hurts_nobody(server: RawServer, times: int) -> None:
    for _ in range(times):
        with server.connect() as connection:
            connection.sendall(a_request("GET", HISTORY)[:-2])
        with server.connect() as connection:
            connection.sendall(a_request("GET", HISTORY) * 5)
    assert_it_lives(server)
