"""Hostile bytes to the real server, in short; and wrong answers, which have to be found out."""

import re
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.fuzz.cuts import CUTS
from tests.fuzz.http_answers import requests_in
from tests.fuzz.hunt import Found, judge, read_kept
from tests.fuzz.requests import SMUGGLED
from tests.fuzz.web import HTTP, Came, Known, Reply, a_server, judge_exchange, judging, learn_replies
from tests.integration.raw import a_request
from tests.integration.served import HISTORY, LIVE

ATTACKS = read_kept("http")
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of a case with a long head


@pytest.mark.clause("A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A15")
def test_every_answer_to_a_known_attack_is_asked_for_and_is_one_that_there_is() -> None:
    assert len(ATTACKS) > 80
    assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in ATTACKS)
    with judging() as judge_all:
        judge_all(list(ATTACKS.values()))


@pytest.mark.clause("A2", "A3", "A4", "A5", "A6", "A7", "A8", "A11", "A15")
def test_whatever_bytes_come_every_answer_is_asked_for_and_is_one_that_there_is() -> None:
    assert len(judge(HTTP, 8)) > 5


@pytest.mark.clause("A16")
def test_bytes_that_come_in_pieces_are_answered_as_in_one() -> None:
    assert len(judge(CUTS, 200)) > 10


@pytest.mark.clause("A16")
@pytest.mark.parametrize("size", [1, 997])
def test_a_known_attack_that_comes_in_pieces_is_answered_as_in_one(size: int) -> None:
    with CUTS.judging() as judge_one:
        for case in (*ATTACKS.values(), *read_kept("cuts").values()):
            if len(case) < 3_000 or size > 1:
                judge_one((case, [case[at : at + size] for at in range(0, len(case), size)], Random(size)))


@pytest.fixture(scope="module")
def real() -> Iterator[Known]:
    with a_server() as server:
        yield learn_replies((server.host, server.port))


def raw(reply: Reply) -> bytes:
    headers = b"".join(name + b": " + text + b"\r\n" for name, text in reply.headers)
    return b"HTTP/1.1 %d So\r\n%s\r\n%s" % (reply.http_code, headers, reply.body)


ASKED = a_request("GET", LIVE)
SMUGGLING = f"POST {LIVE} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
IN_A_CHUNK = SMUGGLING + b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        pytest.param(lambda said: said * 2, "2 answers to 1 requests", id="a second answer"),
        pytest.param(lambda said: said.replace(b"200 So", b"500 So"), "was answered 500", id="a 5xx"),
        pytest.param(
            lambda said: said.replace(b"\r\n", b"\r\nx-seen: evil\r\n", 1), "was answered 200", id="a reflection"
        ),
        pytest.param(lambda said: said[:-1] + b"!", "was answered 200", id="another body"),
        pytest.param(lambda said: said[:-1], "cut off", id="a body cut off"),
        pytest.param(lambda said: said.replace(b"HTTP/1.1", b"HTTP/2"), "not HTTP/1.1", id="another protocol"),
        pytest.param(lambda said: b"HTTP/1.1 400 No\r\n\r\n" + said, "length", id="a refusal, and going on"),
        pytest.param(lambda said: said.replace(b"content-length", b"x-length"), "length", id="no length"),
    ],
)
def test_an_answer_that_is_not_as_it_should_be_is_found_out(
    real: Known, spoil: Callable[[bytes], bytes], problem: str
) -> None:
    answer = raw(real.replies["GET", LIVE])
    judge_exchange(real, ASKED, Came(answer, True))
    with pytest.raises(Found, match=problem):
        judge_exchange(real, ASKED, Came(spoil(answer), True))


def test_a_connection_left_open_a_304_and_a_smuggled_request_are_found_out(real: Known) -> None:
    with pytest.raises(Found, match="left open"):
        judge_exchange(real, ASKED, Came(raw(real.replies["GET", LIVE]), False))
    with pytest.raises(Found, match="was answered 304"):
        judge_exchange(real, ASKED, Came(raw(real.replies["304", LIVE]), True))
    judge_exchange(real, a_request("GET", HISTORY, "If-None-Match: *"), Came(raw(real.replies["304", HISTORY]), True))
    refused = raw(real.replies["POST", LIVE])
    judge_exchange(real, IN_A_CHUNK, Came(refused, True))
    with pytest.raises(Found, match="2 answers to 1 requests"):
        judge_exchange(real, IN_A_CHUNK, Came(refused + raw(real.replies["OPTIONS", LIVE]), True))


def test_a_strict_reader_finds_the_requests_that_there_are() -> None:
    plain = a_request(close=False)
    assert [each.method for each in requests_in(plain + SMUGGLED).whole] == [b"GET", b"OPTIONS"]
    assert requests_in(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx").whole == ()
    assert requests_in(ASKED + plain).whole == requests_in(ASKED).whole
    assert requests_in(b"garbage\r\n\r\n" + plain).heads == ()
