"""What ``lookout verify`` reads is kept as it came, and what is not HTTP/1.1 is said to be none."""

import time

import pytest

from lookout.base.clock import SystemClock
from lookout.base.url import parse_base_url
from lookout.verify.client import Client, HttpAnswer, HttpOutcome, HttpRequest, NoAnswer
from tests.integration.planted import a_listener

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def receive(raw: bytes, method: str = "GET") -> HttpOutcome:
    with a_listener(lambda _: raw) as base:
        return Client(parse_base_url(base), SystemClock()).send(HttpRequest(method, "/", ()), 20)


@pytest.mark.parametrize(
    ("raw", "headers", "body"),
    [
        pytest.param(
            b"HTTP/1.1 200\r\n\r\nhello", (), b"hello", id="no reason phrase, and a body that ends at the end"
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\n", (), b"", id="HTTP/1.0"),
        pytest.param(OK + b"X: b\r\nx:a\r\n\r\n", (("x", "b"), ("x", "a")), b"", id="a header twice, in their order"),
        pytest.param(b"HTTP/1.1 103 x\r\nX: y\r\n\r\n" + OK + b"\r\n", (), b"", id="after an answer that comes before"),
        pytest.param(CHUNKED + b"2;x\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n", None, b"hello", id="chunks"),
        pytest.param(OK + b"Content-Length: 5\r\n\r\nhello, world", None, b"hello", id="more than its length"),
        pytest.param(
            OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
            (("content-length", "5"), ("content-length", "5")),
            b"hello",
            id="its length twice",
        ),
    ],
)
def test_an_answer(raw: bytes, headers: tuple[tuple[str, str], ...] | None, body: bytes) -> None:
    answer = receive(raw)
    assert isinstance(answer, HttpAnswer)
    assert (answer.http_code, answer.body, answer.problem) == (200, body, "")
    assert headers in (None, answer.headers)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_body_where_none_belongs_is_seen(method: str) -> None:
    answer = receive(b"HTTP/1.1 %d said\r\nContent-Length: 5\r\n\r\nhello" % (304 if method == "GET" else 200), method)
    assert isinstance(answer, HttpAnswer)
    assert (answer.body, answer.problem) == (b"hello", "")


@pytest.mark.parametrize(
    ("raw", "body", "problem"),
    [
        (OK + b"Content-Length: 9\r\n\r\nhello", b"hello", "(received 5 bytes, expected 9)"),
        (CHUNKED + b"9\r\nhello", b"hello", "incomplete chunked read"),
        (CHUNKED + b"5\r\nhello\r\nfour\r\nmore", b"hello", "illegal chunk header: b'four\\r\\n'"),
        (CHUNKED + b"5\r\nhelloXX0\r\n\r\n", b"hello", "malformed chunk footer"),
        (CHUNKED + b"5;" + b" " * 60_000 + b"\n\r\nhello", b"", "Receive buffer too long"),
    ],
    ids=["too short", "an unfinished chunk", "no chunk", "no end of a chunk", "a chunk that is slow to read"],
)
def test_a_body_that_is_not_whole(raw: bytes, body: bytes, problem: str) -> None:
    answer = receive(raw)
    assert isinstance(answer, HttpAnswer)
    assert (answer.http_code, answer.body) == (200, body)
    assert answer.problem.startswith("its body is not as HTTP has it: ")
    assert problem in answer.problem


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "no answer: the connection was closed after nothing"),
        (OK, "no answer: the connection was closed after b'HTTP/1.1 200 OK\\r\\n'"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP: illegal status line: b'SSH-2.0-OpenSSH_9.2'"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "not HTTP/1.1: 'HTTP/2.0 200 OK'"),
        (OK + b"no colon\r\n\r\n", "not HTTP: illegal header line: b'no colon'"),
        (OK + b"X: y\r\n folded\r\n\r\n", "not HTTP: the headers have b'TP/1.1 200 OK\\r\\nX: y\\r\\n '"),
        (OK + b"X: y\nZ: z\r\n\r\n", "not HTTP: the headers have b'TTP/1.1 200 OK\\r\\nX: y\\n'"),
        (OK + b"X:" + b" " * 60_000 + b"\0\r\n\r\n", f"not HTTP: the headers have {b' ' * 20 + bytes(1)!r}"),
        (OK + b"X: a\rb\r\n\r\n", "not HTTP: the headers have b'TTP/1.1 200 OK\\r\\nX: a\\r'"),
        (OK + b"X:" + b" " * 60_000 + b"\n\r\n\r\n", f"not HTTP: the headers have b'{' ' * 20}\\n'"),
        (OK + b"X : y\r\n\r\n", "not HTTP: illegal header line: b'X : y'"),
        (OK + b"Content-Length: -1\r\n\r\n", "not HTTP: bad Content-Length"),
        (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "not HTTP: conflicting Content-Length headers"),
        (OK + b"Content-Length: 5, 5\r\n\r\nhello", "not HTTP: the Content-Length '5, 5'"),
    ],
)
def test_what_is_no_answer(raw: bytes, why: str) -> None:
    began = time.monotonic()
    assert receive(raw) == NoAnswer(why)
    assert time.monotonic() - began < 10
