"""What ``lookout verify`` reads is kept as it came, and what is not HTTP/1.1 is said to be none."""

import pytest

from lookout.verify.visit import parse_answer

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = OK + b"Content-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "received", "http_code", "body"),
    [
        pytest.param("GET", OK + b"\r\nhello", 200, b"hello", id="a body that ends with the connection"),
        pytest.param("GET", SIZED + b"hello, world", 200, b"hello", id="more than its length"),
        pytest.param("GET", CHUNKED + b"2;x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", 200, b"hello", id="chunks"),
        pytest.param("HEAD", SIZED, 200, b"", id="HEAD"),
        pytest.param("HEAD", SIZED + b"hello", 200, b"hello", id="HEAD with a body, which is seen"),
        pytest.param("GET", b"HTTP/1.1 304 x\r\n\r\nhello", 304, b"hello", id="a 304 with a body, which is seen"),
    ],
)
def test_an_answer(method: str, received: bytes, http_code: int, body: bytes) -> None:
    answer = parse_answer(method, received)
    assert (answer.http_code, answer.body, answer.problem) == (http_code, body, "")


def test_a_header_that_is_there_twice_is_kept_so() -> None:
    answer = parse_answer("GET", OK + b"X: b\r\nx:a\r\n\r\n")
    assert answer.headers == (("x", "b"), ("x", "a"))
    assert answer.header("x") == "b, a"


@pytest.mark.parametrize(
    ("received", "problem"),
    [
        pytest.param(SIZED + b"hell", "", id="too short"),
        pytest.param(CHUNKED + b"9\r\nhello", "", id="an unfinished chunk"),
        pytest.param(CHUNKED + b"5\r\nhello\r\nfour\r\nmore", "", id="no chunk"),
        pytest.param(OK + b"\r\nhello", "no end within 5 s", id="a connection that did not end"),
    ],
)
def test_a_body_that_is_not_whole(received: bytes, problem: str) -> None:
    answer = parse_answer("GET", received, problem)
    assert answer.http_code == 200
    assert answer.problem
    assert answer.plain_body is None


@pytest.mark.parametrize(
    "received", [b"", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"\x16\x03\x01\x00\xff", OK + b"X: y\r\n" * 200]
)
def test_what_is_no_answer(received: bytes) -> None:
    answer = parse_answer("GET", received)
    assert answer.http_code is None
    assert answer.problem
